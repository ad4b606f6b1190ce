"""What a daemon's clients show: the reports that storage providers' scripts know, to the letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cuzk.server import proving_pb2 as pb

_MIB = 1 << 20
_ID_SHOWN = 8


def facts(message: Any) -> dict[str, Any]:
    """A message of protobuf as JSON has it: every field, names of enums; numbers stay numbers, also those of
    64 bits, which protobuf's own JSON makes strings of."""
    return {field.name: _fact(getattr(message, field.name), field) for field in message.DESCRIPTOR.fields}


def _fact(value: Any, field: Any) -> Any:
    if isinstance(value, int) and field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    if isinstance(value, str | int):
        return value
    return [facts(one) for one in value]  # of messages, which all lists are


def show_status(status: pb.GetStatusResponse) -> None:
    """Lists only where there is something in them."""
    click.echo("=== cuzk daemon status ===")
    click.echo(f"uptime:           {status.uptime_seconds}s")
    click.echo(f"proofs completed: {status.total_proofs_completed}")
    click.echo(f"proofs failed:    {status.total_proofs_failed}")
    click.echo(f"pinned memory:    {status.pinned_memory_bytes} / {status.pinned_memory_limit_bytes} bytes")
    _show_list("GPUs", [_gpu(gpu) for gpu in status.gpus])
    _show_list("Loaded SRS", [_srs(srs) for srs in status.loaded_srs])
    _show_list("Queues", [_queue(queue) for queue in status.queues])


def _show_list(title: str, lines: list[str]) -> None:
    if lines:
        click.echo(f"\n{title}:")
        for line in lines:
            click.echo(f"  {line}")


def _gpu(gpu: pb.GPUStatus) -> str:
    job = gpu.current_job_id
    doing = f"proving {gpu.current_proof_kind} ({job[:_ID_SHOWN]})" if job else "idle"
    free, total = gpu.vram_free_bytes // _MIB, gpu.vram_total_bytes // _MIB
    return f"[{gpu.ordinal}] {gpu.name} \N{EM DASH} {free} MiB / {total} MiB VRAM \N{EM DASH} {doing}"


def _srs(srs: pb.SRSStatus) -> str:
    return f"{srs.circuit_id} (tier={srs.tier}, size={srs.size_bytes} bytes, refs={srs.ref_count})"


def _queue(queue: pb.QueueStatus) -> str:
    return f"{queue.proof_kind}: pending={queue.pending}, in_progress={queue.in_progress}"
