"""Sights of an engine, put together by hand: every value is one that a test can name."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from cuzk.engine.jobs import Priority, Stage, Status, Timings
from cuzk.engine.settings import Settings
from cuzk.engine.status import (
    DeviceStatus,
    EngineStatus,
    JobStatus,
    MemoryStatus,
    PartitionStatus,
    SetupStatus,
    WorkerStatus,
)
from cuzk.server.card_readings import CardReading
from cuzk.server.history import Ended, History, Told
from cuzk.server.observation import Sight, WaitingJob
from cuzk.server.outcome import NO_TIME
from cuzk.server.recent import Recent
from cuzk.timeline.spans import Kind, Span

NOW_MS = 400_000


def took(total_ms: int = 0, **given: int) -> Timings:
    return replace(NO_TIME, total_ms=total_ms, **given)


def memory(name: str, total: int, by_purpose: dict[str, int]) -> MemoryStatus:
    used = sum(by_purpose.values())
    return MemoryStatus(name=name, total=total, used=used, peak=used + 50, by_purpose=by_purpose)


def job(name: str, status: Status, *stages: Stage, **given: Any) -> JobStatus:
    """Each partition is in its stage for a second and one for its number."""
    facts: dict[str, Any] = {
        "kind": "porep-c2", "setup": "porep-32GiB", "priority": Priority.NORMAL, "callers": 1, "for_s": 12.5,
    }  # fmt: skip
    partitions = tuple(
        PartitionStatus(partition=k, stage=stage, for_s=1.0 + k) for k, stage in enumerate(stages)
    )
    return JobStatus(job_id=name, status=status, partitions=partitions, **{**facts, **given})


def worker(number: int, at: tuple[str, int] | None = None, *, stalled: bool = False) -> WorkerStatus:
    return WorkerStatus(
        number=number,
        job_id=at[0] if at else None,
        kind="porep-c2" if at else None,
        partition=at[1] if at else None,
        for_s=2.25 if at else 0.0,
        stalled=stalled,
    )


def device(ordinal: int = 0, **given: Any) -> DeviceStatus:
    facts: dict[str, Any] = {
        "name": f"cuda:{ordinal}",
        "ordinal": ordinal,
        "set_aside": None,
        "strikes": 0,
        "wrong_proofs": 0,
        "opened": (SetupStatus(name="porep-32GiB", nbytes=1000, users=1, idle_s=2.0),),
        "unfit": {},
        "workers": (worker(2 * ordinal), worker(2 * ordinal + 1)),
        "memory": memory(f"cuda:{ordinal}", 4000, {"parameters porep-32GiB": 1000}),
    }
    return DeviceStatus(**{**facts, **given})


#: A busy engine: a job with a partition in every stage, one that waits, on two devices.
BUSY = EngineStatus(
    uptime_s=400.25,
    closing=False,
    pending=2,
    ready=1,
    waits_for_memory=None,
    jobs=(
        job("one", Status.RUNNING, Stage.PROVED, Stage.PROVING, Stage.READY, Stage.PREPARING, Stage.PENDING),
        job("two", Status.WAITING, Stage.PENDING),
    ),
    devices=(device(0, workers=(worker(0, ("one", 1)), worker(1))), device(1)),
    memory=(
        memory("host memory", 7000, {"parameters porep-32GiB": 800, "partitions": 100}),
        memory("host memory for inputs", 1000, {"porep-c2": 70}),
    ),
    ended=Counter(),
)  # fmt: skip

CARD = CardReading(
    name="NVIDIA H200",
    memory_total_bytes=150_000,
    memory_used_bytes=60_000,
    utilisation_percent=97,
    temperature_c=61,
    power_w=512.5,
    power_limit_w=700.0,
)


def told(*jobs: tuple[int, Ended]) -> Told:
    now = [0]
    history = History(lambda: now[0])
    for at_ms, one in jobs:
        now[0] = at_ms
        history.end(one)
    now[0] = NOW_MS
    return history.look()


def sight(engine: EngineStatus = BUSY, **given: Any) -> Sight:
    """Of the first device half of the last five minutes were kernels."""
    spans = [
        Span(Kind.KERNEL, "one", 0, 0, 0, NOW_MS - 300_000, NOW_MS - 150_000, False),
        Span(Kind.LOCK, "one", 0, 0, 0, NOW_MS - 300_000, NOW_MS - 150_000, False),
    ]
    facts: dict[str, Any] = {
        "settings": Settings(partition_workers=3),
        "waiting": (WaitingJob(job_id="three", kind="porep-c2", priority=Priority.HIGH, for_s=5.0),),
        "not_ready": None,
        "rejected": 4,
        "recent": Recent(now_ms=NOW_MS, ended=spans, open=[], count=2),
        "told": told(),
        "cards": {"cuda:0": CARD},
        "kernel_ms": {0: 150_000},
        "lost": 0,
    }
    return Sight(engine=engine, **{**facts, **given})


def idle() -> EngineStatus:
    return replace(BUSY, jobs=(), pending=0, ready=0, devices=(device(0),))
