"""The status document of Curio's daemon, `GET /status`: field for field, and true.

Where the original shows what is not so, this shows what is: `synthesis.max_concurrent` is the number of
threads there are, jobs that failed leave `pipelines` like all others, a partition that failed says so, and a
worker that is idle is idle. Of `buffers`, those that there are no such things of here stay 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from cuzk.engine.jobs import Stage, Status
from cuzk.engine.status import JobStatus, PartitionStatus, SetupStatus, WorkerStatus
from cuzk.server.circuits import circuit_id
from cuzk.server.history import FAILURES, Ended
from cuzk.server.observation import Sight

#: Jobs that ended are shown for so long.
KEPT_MS = 30_000
_STATES = {
    Stage.PENDING: "pending",
    Stage.PREPARING: "synthesizing",
    Stage.READY: "synth_done",
    Stage.PROVING: "gpu",
    Stage.PROVED: "done",
    Stage.DROPPED: "failed",
}

#: Milliseconds of synthesis and of the last call of a job's partitions, as far as they ended.
Took = Mapping["int | None", "tuple[int | None, int | None]"]
#: The same by job.
TookOf = Callable[[str], Took]


def contract_status(sight: Sight, took_of: TookOf) -> dict[str, Any]:
    engine = sight.engine
    used, total = sum(m.used for m in engine.memory), sum(m.total for m in engine.memory)
    stages = Counter(part.stage for job in engine.jobs for part in job.partitions)
    workers = [(device.ordinal, worker) for device in engine.devices for worker in device.workers]
    return {
        "uptime_secs": engine.uptime_s,
        "memory": {"total_bytes": total, "used_bytes": used, "available_bytes": total - used},
        "synthesis": {
            "max_concurrent": sight.settings.partition_workers,
            "active": stages[Stage.PREPARING],
        },
        "pipelines": [
            *(_running(job, took_of(job.job_id)) for job in engine.jobs),
            *_ended(sight, took_of),
        ],
        "gpu_workers": [_worker(ordinal, worker) for ordinal, worker in workers],
        "allocations": {"srs": _srs(sight), "pce": []},
        "counters": _counters(sight),
        "buffers": {
            "synth_in_flight": stages[Stage.PREPARING],
            "provers_in_flight": stages[Stage.PROVING],
            "aux_in_flight": stages[Stage.READY] + stages[Stage.PROVING],
            "shells_in_flight": 0,
            "pending_handles": 0,
        },
    }


def _running(job: JobStatus, took: Took) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "proof_kind": job.kind,
        "started_secs_ago": job.for_s,
        "total_partitions": len(job.partitions),
        "partitions_done": sum(part.stage is Stage.PROVED for part in job.partitions),
        "partitions": [_partition(part, took.get(part.partition, (None, None))) for part in job.partitions],
    }


def _partition(part: PartitionStatus, took: tuple[int | None, int | None]) -> dict[str, Any]:
    """Times that go on while it is in that state."""
    synth_ms, gpu_ms = took
    now_ms = round(part.for_s * 1000)
    if part.stage is Stage.PREPARING:
        synth_ms = now_ms
    if part.stage is not Stage.PROVED:
        gpu_ms = now_ms if part.stage is Stage.PROVING else None
    return {"index": part.partition, "state": _STATES[part.stage], "synth_ms": synth_ms, "gpu_ms": gpu_ms}


def _ended(sight: Sight, took_of: TookOf) -> list[dict[str, Any]]:
    now = sight.recent.now_ms
    return [
        _ended_job(ended, now - at, took_of(ended.job_id))
        for at, ended in sight.told.results
        if now - at < KEPT_MS and ended.partitions
    ]


def _ended_job(ended: Ended, ago_ms: int, took: Took) -> dict[str, Any]:
    proven = ended.status is Status.COMPLETED
    partitions = []
    for index in ended.partitions:
        synth_ms, gpu_ms = took.get(index, (None, None))
        state = "done" if proven or gpu_ms is not None else "failed"
        partitions.append({"index": index, "state": state, "synth_ms": synth_ms, "gpu_ms": gpu_ms})
    return {
        "job_id": ended.job_id,
        "proof_kind": ended.kind,
        "started_secs_ago": (ago_ms + ended.timings.total_ms) / 1000,
        "total_partitions": len(partitions),
        "partitions_done": sum(part["state"] == "done" for part in partitions),
        "partitions": partitions,
    }


def _worker(ordinal: int, worker: WorkerStatus) -> dict[str, Any]:
    busy = worker.job_id is not None
    return {
        "worker_id": worker.number,
        "gpu_ordinal": ordinal,
        "state": "proving" if busy else "idle",
        "current_job": worker.job_id,
        "current_partition": worker.partition,
        "busy_secs": worker.for_s if busy else None,
    }


def _srs(sight: Sight) -> list[dict[str, Any]]:
    """Parameters that are open, with what they take of the host and of all devices."""
    opened: dict[str, list[SetupStatus]] = {}
    for device in sight.engine.devices:
        for setup in device.opened:
            opened.setdefault(setup.name, []).append(setup)
    return [
        {
            "circuit_id": circuit_id(name),
            "bytes": sight.engine.parameters_bytes(name),
            "last_used_secs_ago": min(0.0 if setup.users else setup.idle_s for setup in setups),
            "evictable": not any(setup.users for setup in setups),
        }
        for name, setups in opened.items()
    ]


def _counters(sight: Sight) -> dict[str, Any]:
    told = sight.told
    return {
        "total_completed": told.count(Status.COMPLETED),
        "total_failed": told.count(*FAILURES),
        "completed_by_kind": told.by_kind(Status.COMPLETED),
        "failed_by_kind": told.by_kind(*FAILURES),
        "queue_depth": sight.jobs_waiting,
    }
