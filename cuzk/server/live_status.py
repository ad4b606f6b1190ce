"""What the page shows, as a document: `GET /api/status`, and the events of `/events`.

Moments are milliseconds of one clock, whose reading comes with them as `now_ms`: a reader needs no clock that
agrees with ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import cuzk
from cuzk import errors
from cuzk.engine.events import EngineEvent
from cuzk.engine.jobs import Status
from cuzk.engine.status import DeviceStatus, JobStatus, MemoryStatus, WorkerStatus
from cuzk.server.contract_status import Took, TookOf
from cuzk.server.gpu_time import GpuTime, GpuTimes
from cuzk.server.history import Ended
from cuzk.server.observation import Sight, WaitingJob
from cuzk.server.recent import Recent
from cuzk.timeline.spans import Kind, Span

#: Jobs that are shown one by one; the others are counted.
JOBS_SHOWN = 30
WINDOWS_S = (60, 300)
_SHOWN = (Kind.SYNTHESIS, Kind.QUEUE, Kind.CALL, Kind.WAIT, Kind.KERNEL)


def live_status(sight: Sight, took_of: TookOf) -> dict[str, Any]:
    engine, told, now = sight.engine, sight.told, sight.recent.now_ms
    times = GpuTimes(sight.recent)
    return {
        "version": cuzk.__version__,
        "now_ms": now,
        "uptime_s": round(engine.uptime_s, 3),
        "not_ready": sight.not_ready,
        "closing": engine.closing,
        "queue": {
            "jobs_waiting": sight.jobs_waiting,
            "jobs_running": len(engine.jobs) + len(sight.waiting) - sight.jobs_waiting,
            "partitions_pending": engine.pending,
            "partitions_ready": engine.ready,
            "waits_for_memory": engine.waits_for_memory,
        },
        "jobs": _jobs(sight, took_of),
        "devices": [_device(sight, times, device) for device in engine.devices],
        "memory": [_memory(memory) for memory in engine.memory],
        "totals": {status.value: told.count(status) for status in _ENDS},
        "last_hour": told.last_hour,
        "rejected": sight.rejected,
        "failures_by_cause": dict(told.causes),
        "retries": dict(told.retries),
        "results": [_result(at, ended) for at, ended in reversed(told.results)],
        "failures": [_failure(at, ended) for at, ended in reversed(told.failures)],
        "refused": [{"at_ms": at, **_reason(error)} for at, error in reversed(told.refused)],
        "incidents": [_incident(at, event) for at, event in reversed(told.incidents)],
    }


_ENDS = (Status.COMPLETED, Status.FAILED, Status.TIMEOUT, Status.CANCELLED)


def _jobs(sight: Sight, took_of: TookOf) -> list[dict[str, Any]]:
    """Those under way first, then those that wait, by priority and age, up to a limit."""
    now = sight.recent.now_ms
    in_order = sorted(sight.engine.jobs, key=lambda job: (job.status is Status.WAITING, -job.priority))
    jobs = [_job(job, now, took_of(job.job_id)) for job in in_order[:JOBS_SHOWN]]
    return jobs + [_waiting(job, now) for job in sight.waiting[: JOBS_SHOWN - len(jobs)]]


def _job(job: JobStatus, now_ms: int, took: Took) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "kind": job.kind,
        "status": job.status.value,
        "priority": job.priority.name,
        "callers": job.callers,
        "since_ms": _since(now_ms, job.for_s),
        "partitions": [
            {
                "index": part.partition,
                "stage": part.stage.value,
                "since_ms": _since(now_ms, part.for_s),
                "synth_ms": took.get(part.partition, (None, None))[0],
                "gpu_ms": took.get(part.partition, (None, None))[1],
            }
            for part in job.partitions
        ],
    }


def _waiting(job: WaitingJob, now_ms: int) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "kind": job.kind,
        "status": Status.WAITING.value,
        "priority": job.priority.name,
        "callers": None,
        "since_ms": _since(now_ms, job.for_s),
        "partitions": [],
    }


def _since(now_ms: int, for_s: float) -> int:
    return now_ms - round(for_s * 1000)


def _device(sight: Sight, times: GpuTimes, device: DeviceStatus) -> dict[str, Any]:
    reading, ordinal = sight.cards.get(device.name), device.ordinal
    has_clock = ordinal in sight.kernel_ms
    return {
        "name": device.name,
        "ordinal": device.ordinal,
        "set_aside": device.set_aside,
        "strikes": device.strikes,
        "wrong_proofs": device.wrong_proofs,
        "unfit": device.unfit,
        "opened": [asdict(setup) for setup in device.opened],
        "workers": [_worker(worker, sight.recent.now_ms) for worker in device.workers],
        "memory": _memory(device.memory),
        "time": {str(s): _time(times.of(ordinal, s * 1000, has_clock=has_clock)) for s in WINDOWS_S},
        "kernel_ms": sight.kernel_ms.get(ordinal),
        "card": None if reading is None else asdict(reading),
    }


def _worker(worker: WorkerStatus, now_ms: int) -> dict[str, Any]:
    return {
        "number": worker.number,
        "job_id": worker.job_id,
        "kind": worker.kind,
        "partition": worker.partition,
        "since_ms": _since(now_ms, worker.for_s) if worker.job_id is not None else None,
        "stalled": worker.stalled,
    }


def _time(time: GpuTime | None) -> dict[str, Any] | None:
    if time is None:
        return None
    return {"parts_ms": time.parts_ms, "efficiency_percent": time.efficiency_percent}


def _memory(memory: MemoryStatus) -> dict[str, Any]:
    return {
        "name": memory.name,
        "total_bytes": memory.total,
        "used_bytes": memory.used,
        "peak_bytes": memory.peak,
        "by_purpose": memory.by_purpose,
    }


def _result(at_ms: int, ended: Ended) -> dict[str, Any]:
    return {
        "job_id": ended.job_id,
        "kind": ended.kind,
        "status": ended.status.value,
        "at_ms": at_ms,
        "partitions": len(ended.partitions),
        **asdict(ended.timings),
    }


def _failure(at_ms: int, ended: Ended) -> dict[str, Any]:
    assert ended.error is not None, ended.job_id
    return {
        "job_id": ended.job_id,
        "kind": ended.kind,
        "status": ended.status.value,
        "at_ms": at_ms,
        "cause": ended.cause,
        **_reason(ended.error),
    }


def _reason(error: Exception) -> dict[str, str | None]:
    if isinstance(error, errors.CuzkError):
        return {"what": error.what, "where": error.where, "next": error.next}
    return {"what": f"{type(error).__name__}: {error}", "where": None, "next": None}


def _incident(at_ms: int, event: EngineEvent) -> dict[str, Any]:
    return {
        "what": event.what.value,
        "at_ms": at_ms,
        "job_id": event.job_id,
        "partition": event.partition,
        "device": event.device,
        "text": event.text,
    }


# ---- spans ----


def live_spans(recent: Recent) -> dict[str, Any]:
    """Spans as short rows: kind, device, worker, job's place in `jobs`, partition, start, end, failed."""
    jobs: dict[str, int] = {}
    return {
        "now_ms": recent.now_ms,
        "ended": _rows(recent.ended, jobs),
        "open": _rows(recent.open, jobs),
        "jobs": list(jobs),
    }


def _rows(spans: Iterable[Span], jobs: dict[str, int]) -> list[list[Any]]:
    return [
        [
            span.kind.value,
            span.device,
            span.worker,
            jobs.setdefault(span.job, len(jobs)),
            span.partition,
            span.start_ms,
            span.end_ms,
            int(span.failed),
        ]
        for span in spans
        if span.kind in _SHOWN
    ]
