"""The trace that Perfetto opens: complete slices that nest, named threads, counters and marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cuzk.timeline.analyze import analyze
from cuzk.timeline.chrome import chrome
from cuzk.timeline.read import read_log
from tests.timeline.logs import Written, call, report_of, synthesis


def records(report: Any, phase: str) -> list[dict[str, Any]]:
    document = json.loads(json.dumps(chrome(report)))
    return [record for record in document["traceEvents"] if record["ph"] == phase]


def test_every_call_and_synthesis_is_a_slice_in_microseconds(vectors: Path) -> None:
    slices = records(analyze(read_log(vectors / "timeline" / "phase7.log")), "X")
    calls = [record for record in slices if record["cat"] == "call"]
    assert (len(calls), sum(record["cat"] == "synthesis" for record in slices)) == (110, 110)
    assert sum(record["dur"] for record in calls) == 453_100_000
    [one] = [record for record in calls if record["ts"] == 61_542_000]
    assert (one["dur"], one["name"]) == (3_972_000, "call 6")
    assert one["args"]["job"] == "df703017-04c9-478d-82b3-359986048719"


def test_slices_of_a_thread_lie_apart_or_within_each_other() -> None:
    ids = "worker=0,partition=1"
    inner: list[Written] = [
        (12, "LOCK_WAIT", "j", ids),
        (20, "LOCK_START", "j", ids),
        (21, "KERNEL_START", "j", ids),
        (40, "KERNEL_END", "j", ids),
        (41, "LOCK_END", "j", ids),
    ]
    report = report_of(*synthesis(0, 10, 1), *synthesis(5, 15, 2), *call(10, 50, 1), *call(30, 70, 2), *inner)
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for record in records(report, "X"):
        place = record["pid"], record["tid"]
        threads.setdefault(place, []).append((record["ts"], record["ts"] + record["dur"]))
    assert sorted(len(slices) for slices in threads.values()) == [1, 1, 1, 4]
    for slices in threads.values():
        for a in slices:
            for b in slices:
                assert (
                    a[1] <= b[0]
                    or b[1] <= a[0]
                    or a[0] <= b[0] <= b[1] <= a[1]
                    or b[0] <= a[0] <= a[1] <= b[1]
                )


def test_processes_threads_and_runs_are_named() -> None:
    once = [*synthesis(0, 20_000, 0), *call(20_000, 24_000, 0, worker=2)]
    named = [record["args"]["name"] for record in records(report_of(*once, *once), "M")]
    run = ["GPU 1", "worker 2", "synthesis", "synthesis 1"]
    expected = [
        f"run {number}: {name}" if name in ("GPU 1", "synthesis") else name
        for number in (1, 2)
        for name in run
    ]
    assert named == expected


def test_the_queue_is_counted_and_endings_are_marked() -> None:
    pickup = [(30 + k, "GPU_PICKUP", "j", f"worker=0,partition={k}") for k in (0, 1)]
    ending = (99, "FAILED", "j", "partition=1,stage=gpu,error=out of memory%2C again")
    report = report_of(*synthesis(0, 10, 0), *synthesis(0, 20, 1), *pickup, ending)
    counted = [(record["ts"], record["args"]["depth"]) for record in records(report, "C")]
    assert counted == [(10_000, 1), (20_000, 2), (30_000, 1), (31_000, 0)]
    [mark] = records(report, "i")
    assert (mark["name"], mark["ts"], mark["args"]["error"]) == ("failed", 99_000, "out of memory, again")
