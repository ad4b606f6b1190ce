"""Between our types and the contract's messages: results, status, and which error is which code of gRPC."""

from __future__ import annotations

from collections import Counter
from typing import Any

import grpc

from cuzk.engine.jobs import Status
from cuzk.engine.status import EngineStatus
from cuzk.errors import CuzkError, EngineError, InputError, ResourceError, UsageError
from cuzk.server import proving_pb2 as pb
from cuzk.server.book import Book, Entry
from cuzk.server.kinds import circuit_id

_STATUSES = {
    Status.COMPLETED: pb.AwaitProofResponse.COMPLETED,
    Status.FAILED: pb.AwaitProofResponse.FAILED,
    Status.CANCELLED: pb.AwaitProofResponse.CANCELLED,
    Status.TIMEOUT: pb.AwaitProofResponse.TIMEOUT,
}


def code_of(error: Exception) -> Any:
    """The code of gRPC for what a call cannot do."""
    if isinstance(error, InputError | UsageError):
        return grpc.StatusCode.INVALID_ARGUMENT
    if isinstance(error, ResourceError):
        return grpc.StatusCode.RESOURCE_EXHAUSTED
    if isinstance(error, EngineError):
        return grpc.StatusCode.UNAVAILABLE
    return grpc.StatusCode.INTERNAL


def text_of(error: Exception) -> str:
    if isinstance(error, CuzkError):
        return str(error)
    return f"this is a mistake in cuzk: {type(error).__name__}: {error}"


def result_message(entry: Entry) -> pb.AwaitProofResponse:
    """Of a job that has ended."""
    outcome = entry.outcome
    assert outcome is not None, entry.id
    took = outcome.timings
    return pb.AwaitProofResponse(
        job_id=entry.id,
        status=_STATUSES[outcome.status],
        proof=outcome.proof,
        error_message=outcome.error_text,
        queue_wait_ms=took.queue_ms,
        srs_load_ms=took.srs_ms,
        synthesis_ms=took.synth_ms,
        gpu_compute_ms=took.gpu_ms,
        total_ms=took.total_ms,
    )


def late_message(entry: Entry, position: int) -> pb.AwaitProofResponse:
    """Of a job that has not ended within the time that the client gave."""
    where = f"{position} jobs come before it" if position else "it is under way"
    return pb.AwaitProofResponse(
        job_id=entry.id,
        status=pb.AwaitProofResponse.TIMEOUT,
        error_message=f"not done within the time that was given; {where}",
    )


def status_message(status: EngineStatus, book: Book) -> pb.GetStatusResponse:
    host = status.memory
    return pb.GetStatusResponse(
        gpus=_gpus(status),
        loaded_srs=_loaded(status),
        queues=_queues(status, book),
        total_proofs_completed=sum(book.completed.values()),
        total_proofs_failed=sum(book.failed.values()),
        uptime_seconds=int(status.uptime_s),
        pinned_memory_bytes=sum(memory.used for memory in host),
        pinned_memory_limit_bytes=sum(memory.total for memory in host),
    )


def _gpus(status: EngineStatus) -> list[pb.GPUStatus]:
    """A device once, whatever its workers; memory is what the engine may take, and has not."""
    found = []
    for device in status.devices:
        busy = [worker for worker in device.workers if worker.job_id is not None]
        found.append(
            pb.GPUStatus(
                ordinal=device.ordinal,
                name=device.name,
                vram_total_bytes=device.memory.total,
                vram_free_bytes=device.memory.total - device.memory.used,
                current_job_id=busy[0].job_id if busy else "",
                current_proof_kind=busy[0].kind if busy else "",
            )
        )
    return found


def _loaded(status: EngineStatus) -> list[pb.SRSStatus]:
    """Each circuit once, with what it takes of the host's and of all devices' memory."""
    used: Counter[str] = Counter()
    names = dict.fromkeys(setup.name for device in status.devices for setup in device.opened)
    for memory in status.memory:
        for name in names:
            used[name] += memory.by_purpose.get(f"parameters {name}", 0)
    for device in status.devices:
        for setup in device.opened:
            used[setup.name] += setup.nbytes
    users = Counter(job.setup for job in status.jobs)
    return [
        pb.SRSStatus(
            circuit_id=circuit_id(name),
            tier=pb.SRSStatus.HOT,
            size_bytes=used[name],
            ref_count=users[name],
        )
        for name in names
    ]


def _queues(status: EngineStatus, book: Book) -> list[pb.QueueStatus]:
    """Jobs by kind; each is counted once."""
    begun = {job.job_id for job in status.jobs if job.status is not Status.WAITING}
    pending: Counter[str] = Counter()
    running: Counter[str] = Counter()
    for entry in book.under_way:
        has_begun = entry.job is not None and entry.job.id in begun
        (running if has_begun else pending)[entry.kind.name] += 1
    return [
        pb.QueueStatus(proof_kind=name, pending=pending[name], in_progress=running[name])
        for name in sorted(pending.keys() | running.keys())
    ]
