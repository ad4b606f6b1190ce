"""A log in the trace event format, which Perfetto and chrome://tracing open.

A process a GPU with a thread a worker, one for the syntheses, a counter for the queue, a mark where a job or
partition ended. Runs lie side by side, each from the zero of its own clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from cuzk.timeline.analyze import Report, Run
from cuzk.timeline.line import values_of
from cuzk.timeline.spans import Span
from cuzk.timeline.tracks import Track, end_of, gpu_tracks, queue_depth, synthesis_tracks

_US_PER_MS = 1000
_Record = dict[str, Any]


def chrome(report: Report) -> _Record:
    """The document, ready for JSON. Times in it are microseconds."""
    processes = count(1)
    records: list[_Record] = []
    for number, run in enumerate(report.runs, 1):
        prefix = f"run {number}: " if len(report.runs) > 1 else ""
        records += _run_records(run, prefix, processes)
    return {"traceEvents": records, "displayTimeUnit": "ms", "otherData": {"log": report.name}}


def _run_records(run: Run, prefix: str, processes: Iterator[int]) -> Iterator[_Record]:
    for device, tracks in gpu_tracks(run).items():
        yield from _process(run, next(processes), f"{prefix}GPU {device}", tracks)
    process = next(processes)
    yield from _process(run, process, f"{prefix}synthesis", synthesis_tracks(run))
    for moment, depth in queue_depth(run):
        yield {
            "ph": "C",
            "pid": process,
            "name": "queue",
            "ts": moment * _US_PER_MS,
            "args": {"depth": depth},
        }
    for event in run.work.endings:
        yield {
            "ph": "i",
            "s": "g",
            "pid": process,
            "tid": 0,
            "name": event.name.lower(),
            "ts": event.offset_ms * _US_PER_MS,
            "args": {"job": event.job, **values_of(event.detail)},
        }


def _process(run: Run, process: int, name: str, tracks: Iterable[Track]) -> Iterator[_Record]:
    yield _name("process_name", process, 0, name)
    for thread, track in enumerate(tracks, 1):
        yield _name("thread_name", process, thread, track.label)
        for span in (*track.spans, *track.inner):
            yield _slice(run, process, thread, span)


def _name(kind: str, process: int, thread: int, name: str) -> _Record:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _slice(run: Run, process: int, thread: int, span: Span) -> _Record:
    of = "" if span.partition is None else f" {span.partition}"
    state = "open" if span.end_ms is None else "failed" if span.failed else "ended"
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "name": f"{span.kind.value}{of}",
        "cat": span.kind.value,
        "ts": span.start_ms * _US_PER_MS,
        "dur": (end_of(span, run) - span.start_ms) * _US_PER_MS,
        "args": {"job": span.job, "partition": span.partition, "state": state},
    }
