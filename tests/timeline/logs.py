"""Logs made by hand: an event is `(offset_ms, name, job, detail)`."""

from __future__ import annotations

from typing import Any

from cuzk.timeline.analyze import Report, analyze
from cuzk.timeline.read import Log, parse_log

Written = tuple[int, str, str, str]


def text(*events: Written) -> str:
    return "".join(f"TIMELINE,{offset},{name},{job},{detail}\n" for offset, name, job, detail in events)


def log_of(*events: Written) -> Log:
    return parse_log(iter(text(*events).splitlines(keepends=True)), name="made.log")


def report_of(*events: Written, **options: Any) -> Report:
    return analyze(log_of(*events), **options)


def call(start: int, end: int, partition: int, worker: int = 0, *, more: str = "") -> list[Written]:
    """A call of a worker, for the job j."""
    detail = f"worker={worker},partition={partition}{more}"
    return [(start, "GPU_START", "j", detail), (end, "GPU_END", "j", f"{detail},gpu_ms={end - start}")]


def synthesis(start: int, end: int, partition: int) -> list[Written]:
    """A synthesis, after which the partition is queued."""
    detail = f"partition={partition}"
    return [
        (start, "SYNTH_START", "j", detail),
        (end, "SYNTH_END", "j", f"{detail},synth_ms={end - start}"),
        (end, "GPU_QUEUE", "j", detail),
    ]
