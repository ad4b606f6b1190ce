"""The timeline of the last minutes: spans as they end, for as long as they matter."""

from __future__ import annotations

import threading

from cuzk.server.recent import ENDED_JOBS, HORIZON_MS, RecentTimeline
from cuzk.timeline.spans import Kind, Span
from tests.engine.hall import Records


class Clock:
    """Of a test, in milliseconds."""

    def __init__(self) -> None:
        self.ms = 1000

    def __call__(self) -> int:
        return self.ms * 1_000_000


def prove(recent: RecentTimeline, clock: Clock, job: str, *, partition: int = 0, ms: int = 10) -> None:
    """A partition from its synthesis to the end of its call, `ms` each."""
    ids = {"worker": 1, "partition": partition, "device": 0}
    recent.record("SYNTH_START", job, partition=partition)
    clock.ms += ms
    recent.record("SYNTH_END", job, partition=partition, synth_ms=ms)
    recent.record("GPU_QUEUE", job, partition=partition)
    recent.record("GPU_PICKUP", job, **ids)
    recent.record("GPU_START", job, **ids)
    clock.ms += ms
    recent.record("GPU_END", job, **ids, gpu_ms=ms)


def test_spans_are_those_of_the_events_by_a_clock_that_begins_at_zero() -> None:
    clock, heard = Clock(), []
    recent = RecentTimeline(on_span=heard.append, clock_ns=clock)
    prove(recent, clock, "a", ms=10)
    recent.record("SYNTH_START", "b", partition=3)
    seen = recent.look()
    assert seen.ended == heard and seen.count == 4 and seen.now_ms == 20
    assert [span for span in seen.ended if span.kind is Kind.SYNTHESIS] == [
        Span(Kind.SYNTHESIS, "a", 0, None, None, 0, 10, False)
    ]
    assert [(span.kind, span.start_ms, span.end_ms, span.device) for span in seen.ended[-1:]] == [
        (Kind.CALL, 10, 20, 0)
    ]
    assert [(span.job, span.partition, span.end_ms) for span in seen.open] == [("b", 3, None)]


def test_what_it_hears_it_hands_on_with_the_same_times() -> None:
    records = Records()
    recent = RecentTimeline(records)
    recent.record("KERNEL_START", "a", at_ns=5, worker=0, partition=1, device=0)
    recent.record("ASSEMBLED", "a")
    assert records.heard == [
        ("KERNEL_START", "a", {"at_ns": 5, "worker": 0, "partition": 1, "device": 0}),
        ("ASSEMBLED", "a", {}),
    ]


def test_kernels_lie_where_the_device_says_they_ran() -> None:
    clock = Clock()
    recent = RecentTimeline(clock_ns=clock)
    clock.ms += 100
    ids = {"worker": 0, "partition": 0, "device": 0}
    recent.record("KERNEL_START", "a", at_ns=1_040_000_000, **ids)
    recent.record("KERNEL_END", "a", at_ns=1_100_000_000, **ids)
    [kernel] = recent.look().ended
    assert (kernel.kind, kernel.start_ms, kernel.end_ms) == (Kind.KERNEL, 40, 100)


def test_looking_again_shows_only_what_ended_since() -> None:
    clock = Clock()
    recent = RecentTimeline(clock_ns=clock)
    prove(recent, clock, "a")
    first = recent.look()
    assert recent.look(first.count).ended == []
    prove(recent, clock, "b")
    again = recent.look(first.count)
    assert {span.job for span in again.ended} == {"b"} and len(again.ended) == 4
    assert again.count == 8 and len(recent.look().ended) == 8


def test_what_ended_before_the_horizon_is_forgotten() -> None:
    clock = Clock()
    recent = RecentTimeline(clock_ns=clock)
    prove(recent, clock, "old")
    clock.ms += HORIZON_MS
    prove(recent, clock, "new")
    assert {span.job for span in recent.look().ended} == {"new"}
    assert recent.look().count == 8


def test_times_of_partitions_outlast_their_job_and_not_many_others() -> None:
    clock = Clock()
    recent = RecentTimeline(clock_ns=clock)
    prove(recent, clock, "a", partition=0, ms=10)
    recent.record("SYNTH_START", "a", partition=1)
    clock.ms += 7
    recent.record("SYNTH_END", "a", partition=1)
    recent.record("ASSEMBLED", "a")
    assert recent.took_ms("a") == {0: (10, 10), 1: (7, None)}
    for k in range(ENDED_JOBS):
        prove(recent, clock, f"job {k}")
        recent.record("ASSEMBLED", f"job {k}")
    assert recent.took_ms("a") == {} and recent.took_ms(f"job {ENDED_JOBS - 1}") != {}


def test_nothing_of_a_job_that_ended_stays_open() -> None:
    """A preparer ends what it is at, and puts it where nobody takes it any more."""
    recent = RecentTimeline()
    recent.record("SYNTH_START", "a", partition=0)
    recent.record("CANCELLED", "a")
    recent.record("SYNTH_END", "a", partition=0)
    recent.record("GPU_QUEUE", "a", partition=0)
    assert recent.look().open == []
    recent.record("SYNTH_START", "a", partition=0)  # the same once more
    recent.record("SYNTH_END", "a", partition=0)
    recent.record("GPU_QUEUE", "a", partition=0)
    assert [span.kind for span in recent.look().open] == [Kind.QUEUE]


def test_of_many_jobs_that_ended_nothing_is_kept_whatever_came_late() -> None:
    recent = RecentTimeline()
    ids = {"worker": 0, "partition": 0, "device": 0}
    for k in range(3 * ENDED_JOBS):
        job = f"job {k}"
        recent.record("SYNTH_START", job, partition=0)
        recent.record("SYNTH_END", job, partition=0)
        recent.record("GPU_START", job, **ids)
        recent.record("CANCELLED", job)
        recent.record("LOCK_WAIT", job, **ids)  # the worker has not noticed yet
        recent.record("CANCELLED", job, **ids)
    assert recent.look().open == []
    assert len(recent._matcher._open) == 0 and len(recent._took) <= ENDED_JOBS


def test_a_failed_attempt_is_marked_and_leaves_no_time() -> None:
    recent = RecentTimeline()
    ids = {"worker": 0, "partition": 2, "device": 0}
    recent.record("GPU_START", "a", **ids)
    recent.record("FAILED", "a", **ids, reason="DeviceFault")
    assert [(span.kind, span.failed) for span in recent.look().ended] == [(Kind.CALL, True)]
    assert recent.took_ms("a") == {}


def test_many_threads_may_record_at_once() -> None:
    recent = RecentTimeline()

    def work(number: int) -> None:
        for k in range(200):
            recent.record("SYNTH_START", f"{number}", partition=k)
            recent.record("SYNTH_END", f"{number}", partition=k)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = recent.look()
    assert (seen.count, len(seen.ended), seen.open) == (1600, 1600, [])
