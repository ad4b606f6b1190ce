"""What began is matched with what ended, also where lines are missing, repeated or of another daemon."""

from __future__ import annotations

import pytest

from cuzk.timeline.spans import Kind, Work, match
from tests.timeline.logs import Written, call, log_of


def work_of(*events: Written, workers_per_gpu: int | None = None) -> Work:
    [run] = log_of(*events).runs
    return match(run, workers_per_gpu)


def times(work: Work, kind: Kind) -> list[tuple[int, int | None]]:
    return [(span.start_ms, span.end_ms) for span in work.ended[kind]]


def test_a_partition_passes_through_every_kind_of_span() -> None:
    ids = "worker=3,partition=1,device=1"
    work = work_of(
        (0, "SYNTH_START", "j", "partition=1"),
        (10, "SYNTH_END", "j", "partition=1"),
        (11, "GPU_QUEUE", "j", "partition=1"),
        (15, "GPU_PICKUP", "j", "worker=3,partition=1"),
        (16, "GPU_START", "j", ids),
        (17, "LOCK_WAIT", "j", ids),
        (20, "LOCK_START", "j", ids),
        (21, "KERNEL_START", "j", ids),
        (28, "KERNEL_END", "j", ids),
        (29, "LOCK_END", "j", ids),
        (33, "GPU_END", "j", ids),
    )
    assert {kind: times(work, kind) for kind in Kind} == {
        Kind.SYNTHESIS: [(0, 10)],
        Kind.QUEUE: [(11, 15)],
        Kind.TAKEN: [(15, 16)],
        Kind.CALL: [(16, 33)],
        Kind.WAIT: [(17, 20)],
        Kind.LOCK: [(20, 29)],
        Kind.KERNEL: [(21, 28)],
    }
    assert (work.open, work.unmatched, work.guessed) == ([], 0, 0)
    assert [work.ended[kind][0].device for kind in (Kind.CALL, Kind.WAIT, Kind.LOCK, Kind.KERNEL)] == [1] * 4


def test_events_of_one_millisecond_are_taken_in_the_order_of_their_lines() -> None:
    detail = "worker=0,partition=0"
    work = work_of(
        (5, "GPU_START", "j", detail),
        (5, "KERNEL_START", "j", detail),
        (5, "KERNEL_END", "j", detail),
        (5, "KERNEL_START", "j", detail),
        (5, "KERNEL_END", "j", detail),
        (5, "GPU_END", "j", detail),
    )
    assert times(work, Kind.KERNEL) == [(5, 5), (5, 5)] and times(work, Kind.CALL) == [(5, 5)]
    assert (work.open, work.unmatched) == ([], 0)


def test_of_a_call_tried_twice_the_end_belongs_to_the_second_try() -> None:
    work = work_of((5, "GPU_START", "j", "worker=0,partition=1"), *call(100, 140, 1))
    assert times(work, Kind.CALL) == [(100, 140)]
    assert [(span.start_ms, span.end_ms) for span in work.open] == [(5, None)]


def test_an_end_without_a_start_is_counted() -> None:
    work = work_of(*call(5, 9, 1)[1:], (10, "SYNTH_END", "j", "partition=7,synth_ms=3"))
    assert work.unmatched == 2 and times(work, Kind.CALL) == []


def test_another_worker_or_job_does_not_end_a_call() -> None:
    work = work_of(
        (0, "GPU_START", "j", "worker=0,partition=1"),
        (5, "GPU_END", "j", "worker=1,partition=1"),
        (6, "GPU_END", "k", "worker=0,partition=1"),
    )
    assert times(work, Kind.CALL) == [] and work.unmatched == 2 and len(work.open) == 1


def test_a_post_whose_end_alone_names_a_partition_is_one_call() -> None:
    work = work_of(
        (0, "SYNTH_START", "w", "kind=window"),
        (5, "SYNTH_END", "w", "synth_ms=5"),
        (5, "GPU_QUEUE", "w", "monolithic"),
        (6, "GPU_PICKUP", "w", "worker=1"),
        (6, "GPU_START", "w", "worker=1"),
        (9, "GPU_END", "w", "worker=1,partition=0,gpu_ms=3"),
    )
    assert times(work, Kind.CALL) == [(6, 9)] and times(work, Kind.QUEUE) == [(5, 6)]
    assert (work.open, work.unmatched) == ([], 0)


def test_a_failure_ends_what_is_open_of_its_partition_only() -> None:
    starts = [(k, "SYNTH_START", "j", f"partition={k}") for k in (1, 2)]
    work = work_of(*starts, (9, "FAILED", "j", "partition=1,stage=synthesis"))
    assert [(span.partition, span.end_ms, span.failed) for span in work.ended[Kind.SYNTHESIS]] == [
        (1, 9, True)
    ]
    assert [span.partition for span in work.open] == [2]


@pytest.mark.parametrize("ending", ["FAILED", "CANCELLED"])
def test_the_end_of_a_job_ends_all_that_is_open_of_it(ending: str) -> None:
    work = work_of(
        (0, "SYNTH_START", "j", "partition=1"),
        (1, "SYNTH_START", "k", "partition=1"),
        (2, "GPU_START", "j", "worker=0,partition=0"),
        (9, ending, "j", "reason=deadline"),
    )
    ended = [span for kind in Kind for span in work.ended[kind]]
    assert sorted((span.kind, span.end_ms, span.failed) for span in ended) == [
        (Kind.CALL, 9, True),
        (Kind.SYNTHESIS, 9, True),
    ]
    assert [span.job for span in work.open] == ["k"]


@pytest.mark.parametrize(
    ("workers_per_gpu", "devices", "guessed"),
    [(None, [0, 0, 1, 1], 4), (1, [0, 1, 2, 3], 0), (4, [0] * 4, 0)],
)
def test_the_device_follows_from_the_worker(
    workers_per_gpu: int | None, devices: list[int], guessed: int
) -> None:
    calls = [event for worker in range(4) for event in call(worker, worker + 5, worker, worker)]
    work = work_of(*calls, workers_per_gpu=workers_per_gpu)
    assert [span.device for span in work.ended[Kind.CALL]] == devices
    assert work.guessed == guessed


def test_the_device_that_a_line_names_goes_before_the_workers() -> None:
    work = work_of(*call(0, 5, 0, worker=0, more=",device=7"))
    assert work.ended[Kind.CALL][0].device == 7 and work.guessed == 0
