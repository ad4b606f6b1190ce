"""Between our types and the contract's messages: results, status, and which error is which code of gRPC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import grpc

from cuzk.engine.jobs import Status
from cuzk.engine.status import DeviceStatus, EngineStatus
from cuzk.errors import CuzkError, EngineError, InputError, ResourceError, UsageError
from cuzk.server import proving_pb2 as pb
from cuzk.server.book import Book, Entry
from cuzk.server.card_readings import CardReading
from cuzk.server.circuits import circuit_id

_STATUSES = {
    Status.COMPLETED: pb.AwaitProofResponse.COMPLETED,
    Status.FAILED: pb.AwaitProofResponse.FAILED,
    Status.CANCELLED: pb.AwaitProofResponse.CANCELLED,
    Status.TIMEOUT: pb.AwaitProofResponse.TIMEOUT,
}
_TEXT_BYTES = 4096


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
    """Of an error of gRPC."""
    if isinstance(error, CuzkError):
        return cut(str(error))
    return cut(f"this is a mistake in cuzk: {type(error).__name__}: {error}")


def cut(text: str) -> str:
    """As gRPC can send it with an error, where it refuses more than 8 KiB: a longer one lacks its middle."""
    text = text.encode(errors="backslashreplace").decode()
    if _beginning(text, _TEXT_BYTES) == text:
        return text
    end = _beginning(text[::-1], _TEXT_BYTES // 2)[::-1]
    return f"{_beginning(text, _TEXT_BYTES // 2)} ... {end}"


def _beginning(text: str, limit: int) -> str:
    """What of it takes so many bytes: all but plain ASCII is sent as %XX, byte by byte."""
    for k, one in enumerate(text):
        limit -= 1 if " " <= one <= "~" and one != "%" else 3 * len(one.encode())
        if limit < 0:
            return text[:k]
    return text


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


def status_message(
    status: EngineStatus, book: Book, cards: Mapping[str, CardReading]
) -> pb.GetStatusResponse:
    """cards: what the driver said last, by the names of devices."""
    host = status.memory
    return pb.GetStatusResponse(
        gpus=[_gpu(device, cards.get(device.name)) for device in status.devices],
        loaded_srs=loaded_srs(status),
        queues=_queues(status, book),
        total_proofs_completed=sum(book.completed.values()),
        total_proofs_failed=sum(book.failed.values()),
        uptime_seconds=int(status.uptime_s),
        pinned_memory_bytes=sum(memory.used for memory in host),
        pinned_memory_limit_bytes=sum(memory.total for memory in host),
    )


def _gpu(device: DeviceStatus, reading: CardReading | None) -> pb.GPUStatus:
    """A device, once for all its workers. Memory is the card's, or where no driver tells it the engine's."""
    name, total, used = device.name, device.memory.total, device.memory.used
    if reading is not None:
        name = reading.name or name
        if reading.memory_total_bytes is not None and reading.memory_used_bytes is not None:
            total, used = reading.memory_total_bytes, reading.memory_used_bytes
    busy = next((worker for worker in device.workers if worker.job_id is not None), None)
    return pb.GPUStatus(
        ordinal=device.ordinal,
        name=name,
        vram_total_bytes=total,
        vram_free_bytes=total - used,
        current_job_id="" if busy is None else busy.job_id,
        current_proof_kind="" if busy is None else busy.kind,
    )


def loaded_srs(status: EngineStatus) -> list[pb.SRSStatus]:
    """Each circuit once, with what it takes of the host's and of all devices' memory."""
    names = dict.fromkeys(setup.name for device in status.devices for setup in device.opened)
    users = Counter(job.setup for job in status.jobs)
    return [
        pb.SRSStatus(
            circuit_id=circuit_id(name),
            tier=pb.SRSStatus.HOT,
            size_bytes=status.parameters_bytes(name),
            ref_count=users[name],
        )
        for name in names
    ]


def _queues(status: EngineStatus, book: Book) -> list[pb.QueueStatus]:
    """Jobs by kind, each once, and requests that may become some: their kind is unknown while they come."""
    arriving = Counter(arrival.kind for arrival in book.arrivals)
    under_way = Counter(entry.kind.name for entry in book.under_way) + arriving
    pending = Counter(entry.kind.name for entry in book.waiting(status)) + arriving
    return [
        pb.QueueStatus(proof_kind=name, pending=pending[name], in_progress=count - pending[name])
        for name, count in sorted(under_way.items())
    ]
