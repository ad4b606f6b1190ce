"""Figures: published ones, those of small logs counted by hand, and a count by milliseconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.timeline.analyze import Report
from cuzk.timeline.devices import Cause
from cuzk.timeline.facts import device_facts, job_facts, long_gaps, report_facts
from tests.timeline.logs import Written, call, report_of, synthesis


def figures(report: Report) -> dict[str, Any]:
    [run] = report.runs
    return device_facts(run.devices)


def test_the_figures_are_those_published(published: Report, vectors: Path) -> None:
    expected = json.loads((vectors / "timeline" / "phase7.expected.json").read_text())
    facts = report_facts(published, 200)
    gaps = expected.pop("gaps_of_at_least_200_ms")
    assert {name: facts[name] for name in expected} == expected
    listed = facts["gaps_of_at_least_200_ms"]
    assert [{name: gap[name] for name in ("gap_ms", "end_ms", "start_ms")} for gap in listed] == gaps
    assert len(gaps) == 15
    [device] = facts["runs"][0]["devices"]  # one GPU: its figures are the totals
    assert {name: device[name] for name in expected if name != "jobs"} == {
        name: expected[name] for name in expected if name != "jobs"
    }


def test_every_gap_is_listed_once_from_whatever_length(published: Report) -> None:
    [run] = published.runs
    assert len(long_gaps(run, 0)) == 109
    assert sum(gap.gap_ms for gap in long_gaps(run, 0)) == 251_900
    assert [gap.gap_ms for gap in long_gaps(run, 50_000)] == [125_976, 54_117]


def test_the_longest_gap_waited_for_a_job_first_and_then_for_its_synthesis(published: Report) -> None:
    """166,217 to 292,193; SYNTH_START of the next partition at 255,549, CHAN_SEND at 291,587."""
    [gap] = long_gaps(published.runs[0], 100_000)
    assert gap.parts_ms == {
        Cause.NO_WORK: 255_549 - 166_217,
        Cause.SYNTHESIS: 291_587 - 255_549,
        Cause.OVERHEAD: 292_193 - 291_587,
        Cause.UNKNOWN: 0,
    }
    assert gap.cause is Cause.NO_WORK


def test_the_way_of_a_job_is_as_long_as_the_job(published: Report) -> None:
    for job in published.runs[0].jobs:
        assert sum(job.critical) == job.wall_ms and min(job.critical) >= 0
    first = job_facts(published.runs[0].jobs[0])
    assert first["job"] == "df703017-04c9-478d-82b3-359986048719"
    # SYNTH_START of partition 1 at 4,348; of 9: SYNTH_END 73,323 (33,819 ms), GPU 74,223 to 77,888
    assert first["critical_path_ms"] == {
        "before_synthesis": 73_323 - 33_819 - 4_348,
        "synthesis": 33_819,
        "before_call": 74_223 - 73_323,
        "call": 77_888 - 74_223,
    }


def test_the_way_of_a_job_is_that_of_the_partition_that_ended_last_not_of_the_last_by_number() -> None:
    first = [*synthesis(5, 30, 1), *call(90, 120, 1)]
    report = report_of(*first, *synthesis(0, 20, 2), *call(20, 60, 2))
    assert report.runs[0].jobs[0].critical == (5, 25, 60, 30)


def test_calls_of_two_workers_at_once_are_busy_once() -> None:
    """0-100 and 50-160 overlap, 160-200 touches, 260-300 stands alone."""
    report = report_of(
        *call(0, 100, 0, worker=0), *call(50, 160, 1, worker=1), *call(160, 200, 2), *call(260, 300, 3)
    )
    facts = figures(report)
    assert (facts["gpu_calls"], facts["gpu_busy_ms"], facts["gaps"], facts["gap_total_ms"]) == (4, 240, 1, 60)
    assert facts["efficiency_percent"] == 80.0


def test_devices_are_counted_apart_and_summed() -> None:
    report = report_of(*call(0, 100, 0, worker=0), *call(200, 300, 1, worker=0), *call(50, 150, 2, worker=2))
    [first, second] = report.runs[0].devices
    assert (first.device, first.busy.total, first.gap_total_ms) == (0, 200, 100)
    assert (second.device, second.busy.total, second.gap_total_ms) == (1, 100, 0)
    assert figures(report)["efficiency_percent"] == 75.0


@pytest.mark.parametrize(
    ("gap", "where"), [(49, "below_50"), (50, "50_to_500"), (500, "50_to_500"), (501, "above_500")]
)
def test_gaps_are_counted_by_length(gap: int, where: str) -> None:
    facts = figures(report_of(*call(0, 10, 0), *call(10 + gap, 900, 1)))
    counted = {name: facts[f"gaps_{name}_ms"] for name in ("below_50", "50_to_500", "above_500")}
    assert counted == {name: int(name == where) for name in counted}


def test_a_bracket_that_waits_for_the_lock_is_no_kernel() -> None:
    """Two workers in turn: brackets cover 0-200 without a gap, kernels 10-90 and 110-190."""
    events: list[Written] = []
    for worker, (held, kernel) in enumerate([((5, 100), (10, 90)), ((100, 195), (110, 190))]):
        ids = f"worker={worker},partition={worker},device=0"
        events += [
            *call(0, 200, worker, worker, more=",device=0"),
            (2, "LOCK_WAIT", "j", ids),
            (held[0], "LOCK_START", "j", ids),
            (kernel[0], "KERNEL_START", "j", ids),
            (kernel[1], "KERNEL_END", "j", ids),
            (held[1], "LOCK_END", "j", ids),
        ]
    report = report_of(*events)
    facts = figures(report)
    assert (facts["efficiency_percent"], facts["kernel_efficiency_percent"]) == (100.0, 80.0)
    assert (facts["kernel_ms"], facts["lock_wait_ms"], facts["lock_held_ms"]) == (160, 3 + 98, 190)
    assert any("ran no kernel" in text for text in report.advice)


def test_without_locks_and_kernels_the_log_does_not_tell() -> None:
    facts = figures(report_of(*call(0, 100, 0)))
    names = ("kernel_ms", "kernel_efficiency_percent", "lock_wait_ms", "lock_held_ms", "gap_average_ms")
    assert {name: facts[name] for name in names} == dict.fromkeys(names)
    assert facts["efficiency_percent"] == 100.0


def test_kernels_that_overlap_without_a_lock_count_once() -> None:
    events: list[Written] = []
    for worker, (start, end) in enumerate([(10, 80), (40, 100)]):
        ids = f"worker={worker},partition={worker}"
        events += [*call(0, 100, worker, worker)]
        events += [(start, "KERNEL_START", "j", ids), (end, "KERNEL_END", "j", ids)]
    assert figures(report_of(*events))["kernel_ms"] == 90


def test_a_gap_is_cut_into_what_it_waited_for() -> None:
    """100-400: nothing until 150, synthesis until 320, queued until 400."""
    report = report_of(*synthesis(0, 20, 0), *call(20, 100, 0), *synthesis(150, 320, 1), *call(400, 450, 1))
    [gap] = report.runs[0].gaps
    assert gap.parts_ms == {Cause.NO_WORK: 50, Cause.SYNTHESIS: 170, Cause.OVERHEAD: 80, Cause.UNKNOWN: 0}
    assert gap.cause is Cause.SYNTHESIS


def test_a_partition_that_another_gpu_takes_was_ready_for_this_one_too() -> None:
    here = [*synthesis(0, 10, 0), *call(10, 100, 0), *synthesis(20, 150, 2), *call(200, 250, 2)]
    there = [*synthesis(20, 120, 1), *call(180, 190, 1, worker=1)]
    report = report_of(*here, *there, workers_per_gpu=1)
    [gap] = report.runs[0].gaps
    assert gap.parts_ms[Cause.OVERHEAD] == 200 - 120 and gap.parts_ms[Cause.SYNTHESIS] == 20


def test_a_gap_that_a_lost_call_began_in_is_unknown_from_there() -> None:
    lost = (130, "GPU_START", "j", "worker=0,partition=1")
    others = [*synthesis(0, 20, 0), *call(20, 100, 0), *synthesis(100, 300, 2), *call(300, 400, 2)]
    report = report_of(lost, *others)
    [gap] = report.runs[0].gaps
    assert gap.parts_ms == {Cause.NO_WORK: 0, Cause.SYNTHESIS: 30, Cause.OVERHEAD: 0, Cause.UNKNOWN: 170}
    assert report.notices == ("GPU calls without an end in the log, failed or cut off: 1",)


def test_a_call_lost_before_a_gap_leaves_the_gap_told() -> None:
    lost = (50, "GPU_START", "j", "worker=1,partition=1")
    others = [*synthesis(0, 20, 0), *call(20, 100, 0), *synthesis(90, 150, 2), *call(160, 200, 2)]
    [gap] = report_of(lost, *others).runs[0].gaps
    assert gap.parts_ms == {Cause.NO_WORK: 0, Cause.SYNTHESIS: 50, Cause.OVERHEAD: 10, Cause.UNKNOWN: 0}


def test_a_log_of_calls_only_does_not_say_what_gaps_waited_for() -> None:
    [gap] = report_of(*call(0, 10, 0), *call(50, 60, 1)).runs[0].gaps
    assert gap.cause is Cause.UNKNOWN and gap.parts_ms[Cause.UNKNOWN] == 40


def test_a_call_that_failed_kept_the_gpu_busy() -> None:
    failed = [(0, "GPU_START", "j", "worker=0,partition=0"), (60, "FAILED", "j", "partition=0,stage=gpu")]
    report = report_of(*failed, *call(80, 100, 0))
    assert figures(report)["gpu_busy_ms"] == 80
    [job] = report.runs[0].jobs
    assert (job.state, job.gpu_ms) == ("proven", 80)


@pytest.mark.parametrize(
    ("events", "state"),
    [
        (call(0, 5, 0), "proven"),
        ([*call(0, 5, 0), (9, "ASSEMBLED", "j", "partitions=1")], "proven"),
        ([*call(0, 5, 0), (9, "FAILED", "j", "reason=self-check")], "failed"),
        ([*call(0, 5, 0), *synthesis(0, 5, 1), (9, "FAILED", "j", "partition=1")], "failed"),
        ([*call(0, 5, 0), *synthesis(0, 5, 1), (9, "CANCELLED", "j", "")], "cancelled"),
        ([*call(0, 5, 0), *synthesis(0, 5, 1)], "unfinished"),
        (call(0, 5, 0)[:1], "unfinished"),
    ],
)
def test_what_became_of_a_job(events: list[Written], state: str) -> None:
    [job] = report_of(*events).runs[0].jobs
    assert job.state == state


def test_runs_are_counted_apart_and_summed() -> None:
    once = [*synthesis(0, 20_000, 0), *call(20_000, 24_000, 0), *call(25_000, 30_000, 1)]
    report = report_of(*once, *once)
    facts = report_facts(report, 1000)
    assert [run["devices"][0]["gap_total_ms"] for run in facts["runs"]] == [1000, 1000]
    assert (facts["jobs"], facts["gpu_calls"], facts["gap_total_ms"]) == (2, 4, 2000)
    assert [gap["run"] for gap in facts["gaps_of_at_least_1000_ms"]] == [1, 2]
    assert report.notices == ("the engine was started 2 times: each run has a clock of its own",)


def test_a_log_without_a_finished_call_is_told_from_one_that_has_them() -> None:
    report = report_of(*synthesis(0, 20, 0))
    assert report.notices == ("no GPU call ended: there is nothing to say about a GPU",)
    facts = report_facts(report, 200)
    assert (facts["gpu_calls"], facts["efficiency_percent"], facts["advice"]) == (0, None, [])


def test_more_workers_than_a_gpu_has_by_default_are_pointed_out() -> None:
    calls = [event for worker in range(4) for event in call(worker, 9, worker, worker)]
    assert "--workers-per-gpu" in report_of(*calls).notices[0]
    assert report_of(*calls, workers_per_gpu=4).notices == ()
    named = [event for worker in range(4) for event in call(worker, 9, worker, worker, more=",device=0")]
    assert report_of(*named).notices == ()


PERIODS = st.tuples(st.integers(0, 300), st.integers(1, 60)).map(lambda pair: (pair[0], sum(pair)))


@given(calls=st.lists(PERIODS, min_size=1, max_size=8), syntheses=st.lists(PERIODS, max_size=8))
def test_figures_are_those_of_a_count_by_milliseconds(
    calls: list[tuple[int, int]], syntheses: list[tuple[int, int]]
) -> None:
    """Each call by a worker of its own on one device; each synthesised partition is called 5 ms later."""
    events = [event for k, (start, end) in enumerate(calls) for event in call(start, end, k, worker=k)]
    for k, (start, end) in enumerate(syntheses, len(calls)):
        events += [*synthesis(start, end, k), (end + 5, "GPU_PICKUP", "j", f"worker={k},partition={k}")]
    facts = figures(report_of(*events, workers_per_gpu=1000))

    busy = {moment for start, end in calls for moment in range(start, end)}
    idle = set(range(min(busy), max(busy))) - busy
    ready = {moment for _, end in syntheses for moment in range(end, end + 5)}
    underway = {moment for start, end in syntheses for moment in range(start, end)}
    assert (facts["gpu_busy_ms"], facts["gap_total_ms"]) == (len(busy), len(idle))
    assert facts["gaps"] == sum(moment - 1 not in idle for moment in idle)
    causes = {
        "no_work": len(idle - ready - underway),
        "synthesis": len(idle & underway - ready),
        "overhead": len(idle & ready),
        "unknown": 0,
    }
    if not syntheses:
        causes |= {"no_work": 0, "unknown": len(idle)}
    assert facts["idle_by_cause_ms"] == causes
