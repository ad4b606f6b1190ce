"""What `prove` and `verify` show."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuzk.events import Notice
from cuzk.view.text import show_json, show_notice

if TYPE_CHECKING:
    from cuzk.api import ProveResult, VerifyResult

#: The result block shows a proof in full up to this many bytes, else the first half of them.
BLOCK_PROOF_BYTES = 256


def show_proof(result: ProveResult, *, out: Path | None, as_json: bool) -> None:
    """What `prove` made: the result block, or the same facts and the whole proof as JSON."""
    facts = {
        "status": result.status,
        "job_id": result.job_id,
        "timings_ms": asdict(result.timings),
        "wall_ms": result.wall_ms,
        "partitions": list(result.partitions),
        "proof": result.proof.hex(),
        "out": str(out) if out else None,
    }
    if as_json:
        show_json(facts)
        return
    click.echo(proof_block(result))
    if out is not None:
        click.echo(f"written:   {out}")
    elif len(result.proof) > BLOCK_PROOF_BYTES:
        show_notice(
            Notice(level="info", text="the proof is shown in part; --out FILE or --json gives all of it")
        )


def proof_block(result: ProveResult) -> str:
    """The result block, to the letter as storage providers' scripts know it."""
    proof, took = result.proof, result.timings
    shown = proof.hex() if len(proof) <= BLOCK_PROOF_BYTES else proof[: BLOCK_PROOF_BYTES // 2].hex() + "..."
    parts = f"queue={took.queue_ms} ms, srs={took.srs_ms} ms, synth={took.synth_ms} ms, gpu={took.gpu_ms} ms"
    return (
        "\n=== Proof Result ===\n"
        f"status:    {result.status}\n"
        f"job_id:    {result.job_id}\n"
        f"timings:   total={took.total_ms} ms ({parts})\n"
        f"wall time: {result.wall_ms} ms\n"
        f"proof:     {len(proof)} bytes (hex: {shown})"
    )


def show_verdict(result: VerifyResult, *, as_json: bool) -> None:
    """What `verify` found, when it found the proof good; a bad one is a ProofError."""
    if as_json:
        show_json({"verified": True, "partitions": result.partitions, "wall_ms": result.wall_ms})
    else:
        click.echo(f"verified:  {result.partitions} partition(s) in {result.wall_ms} ms")
