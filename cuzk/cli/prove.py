"""`cuzk prove` and `cuzk verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import cuzk
from cuzk import view
from cuzk.cli.options import (
    PATH,
    Integers,
    device_option,
    file_argument,
    json_option,
    params_option,
    require_destination,
    threads_option,
    top_command,
    vram_option,
)
from cuzk.view.proof import show_proof, show_verdict

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.sector.pieces import SideInputs


@top_command("prove")
@file_argument
@click.option("--out", type=PATH, help="Write the proof's bytes to this file.")
@json_option
@params_option
@device_option
@vram_option
@threads_option
@click.option("--partition", "partitions", multiple=True, type=click.IntRange(min=0), metavar="K",
              help="Prove this partition only; may be repeated.")  # fmt: skip
@click.option("--explain", is_flag=True, help="Show how a proof would be computed; prove nothing.")
@click.option("--check", is_flag=True, help="Also evaluate every row: if one does not hold, it is named.")
@click.option(
    "--insecure-rs",
    type=Integers("R", "S"),
    help="Fix the randomness. For tests: the proof is not zero-knowledge.",
)
@click.pass_context
def prove(
    ctx: click.Context,
    file: Path,
    beside: SideInputs,
    out: Path | None,
    as_json: bool,
    settings: Config,
    params: Path | None,
    device: str | None,
    vram_limit: int | None,
    threads: int | None,
    partitions: tuple[int, ...],
    explain: bool,
    check: bool,
    insecure_rs: tuple[int, int] | None,
) -> None:
    """Prove what FILE is about and verify the proof.

    FILE is a Commit 1 output, or vanilla proofs of another kind: an envelope that says what they are, or a
    bare list (a JSON array of base64 strings) with options that say it.
    """
    device, threads = device or settings.device, threads or settings.threads
    if explain:
        from cuzk.cli.plan import show_plan
        from cuzk.proofs.sources import read_input
        from cuzk.reports.plan import explain as explain_proof

        shape = read_input(file, beside).shape
        plan = explain_proof(shape, device=device, threads=threads, vram_limit=vram_limit)
        show_plan(ctx, plan, as_json=as_json)
        return
    from cuzk.groth16.files import replace_atomically

    if out is not None:
        require_destination(out, file)
    with view.live(as_json=as_json) as on_event:
        result = cuzk.prove(
            file,
            beside=beside,
            params=params or settings.params,
            device=device,
            vram_limit=vram_limit,
            threads=threads,
            partitions=partitions or None,
            insecure_rs=insecure_rs,
            check=check,
            on_event=on_event,
        )
    if out is not None:
        replace_atomically(out, result.proof)
    show_proof(result, out=out, as_json=as_json)


@top_command("verify")
@file_argument
@click.argument("proof", type=PATH)
@params_option
@json_option
def verify(
    file: Path, proof: Path, beside: SideInputs, settings: Config, params: Path | None, as_json: bool
) -> None:
    """Check PROOF, raw bytes or hexadecimal digits, of what FILE is about; see `cuzk prove`."""
    with view.live(as_json=as_json) as on_event:
        result = cuzk.verify(file, proof, beside=beside, params=params or settings.params, on_event=on_event)
    show_verdict(result, as_json=as_json)
