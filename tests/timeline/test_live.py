"""An engine at this moment, from lines: shares of the last minute, jobs, engines that start anew."""

from __future__ import annotations

from cuzk.timeline.live import Live, Moment
from cuzk.timeline.spans import Kind
from cuzk.view.follow import lane_of, status_line
from tests.timeline.logs import Written, call, synthesis, text


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def after(*events: Written, wait_s: float = 0.0) -> tuple[Live, Moment]:
    clock = Clock()
    live = Live(clock=clock)
    live.hear(text(*sorted(events, key=lambda event: event[0])).splitlines())
    clock.now += wait_s
    return live, live.moment()


def locked(start: int, lock: int, end: int, partition: int, worker: int) -> list[Written]:
    """A call that waits for the lock, and whose kernels run as long as it holds it."""
    detail = f"worker={worker},partition={partition},device=0"
    return [
        (start, "GPU_START", "j", detail), (start, "LOCK_WAIT", "j", detail),
        (lock, "LOCK_START", "j", detail), (lock, "KERNEL_START", "j", detail),
        (end, "KERNEL_END", "j", detail), (end, "LOCK_END", "j", detail), (end, "GPU_END", "j", detail),
    ]  # fmt: skip


def test_shares_are_of_the_last_minute_and_calls_at_once_count_once() -> None:
    live, now = after(
        *call(0, 10_000, 0), *call(40_000, 70_000, 1), *call(50_000, 70_000, 2, worker=1), wait_s=10
    )
    [gpu] = now.devices
    assert (now.begin_ms, now.now_ms) == (20_000, 80_000)
    assert (gpu.busy_percent, gpu.kernel_percent) == (50.0, None)  # from 40 to 70 s of 20 to 80
    assert list(gpu.workers) == [0, 1]
    assert status_line(now) == (
        "80.0 s: GPU 0 50.0 % busy, - by kernels; 1 jobs, 0 partitions queued, 0 being synthesised,"
        " 0 jobs proven"
    )


def test_kernels_are_not_missed_while_a_proof_is_on_the_device() -> None:
    """What its kernels took is told when it leaves: until then the share ends where it began."""
    begun = locked(20_000, 20_000, 99_999, 2, 0)[:4]
    _, now = after(*locked(0, 0, 10_000, 0, 0), *locked(5_000, 10_000, 20_000, 1, 1), *begun, wait_s=30)
    [gpu] = now.devices
    assert (gpu.busy_percent, gpu.kernel_percent) == (100.0, 100.0)
    assert gpu.workers[0][-1].end_ms == now.now_ms == 50_000


def test_jobs_show_what_is_proven_of_what_was_heard_of() -> None:
    live, now = after(
        *synthesis(0, 10, 0), *synthesis(0, 20, 1), (5, "SYNTH_START", "j", "partition=2"), *call(30, 40, 0)
    )
    assert (now.queued, now.synthesising) == (1, 1)
    [job] = now.jobs
    assert (job.job, len(job.proven), len(job.partitions), job.state) == ("j", 1, 3, "")
    [over] = live.hear(["TIMELINE,50,ASSEMBLED,j,"])
    assert (over.job, over.state, over.last_ms) == ("j", "proven", 50)
    later = live.moment()
    assert (later.jobs, [job.job for job in later.ended], later.counts["proven"]) == ((), ["j"], 1)
    assert (later.queued, later.synthesising) == (0, 0)


def test_a_partition_that_fails_leaves_its_job_under_way_and_a_job_that_fails_does_not() -> None:
    live, now = after(*call(0, 10, 0), (20, "FAILED", "j", "partition=1"))
    assert [job.job for job in now.jobs] == ["j"] and now.counts["failed"] == 0
    assert [job.state for job in live.hear(["TIMELINE,30,FAILED,j,", "TIMELINE,30,CANCELLED,k,"])] == [
        "failed", "cancelled",
    ]  # fmt: skip


def test_a_job_whose_end_no_line_tells_has_ended_when_nothing_follows_its_last_proof() -> None:
    proven, half = call(0, 1000, 0), [*call(0, 1000, 0), (500, "SYNTH_START", "j", "partition=1")]
    for events, wait_s, under_way in ((proven, 20, 1), (proven, 31, 0), (half, 31, 1)):
        _, now = after(*events, wait_s=wait_s)
        assert (len(now.jobs), now.counts["proven"]) == (under_way, 1 - under_way)


def test_an_engine_that_starts_anew_is_another() -> None:
    live, _ = after(*call(100_000, 110_000, 0))
    live.hear(text((101_000, "GPU_QUEUE", "j", "partition=2")).splitlines())  # a line that came late
    assert (live.runs, live.now_ms) == (1, 110_000)
    live.hear(text(*call(5, 10, 0)).splitlines())
    assert (live.runs, live.now_ms) == (2, 10)


def test_what_is_no_timeline_is_passed_over() -> None:
    live = Live()
    assert live.hear(["", "log line", "TIMELINE,garbled", "TIMELINE,5,UNHEARD_OF,j,partition=1"]) == []
    assert not live.has_heard


def test_a_lane_shows_what_computes_over_what_waits() -> None:
    _, now = after(*locked(0, 20_000, 30_000, 0, 0), wait_s=10)
    cells = lane_of(now.devices[0].workers[0], now, 8)  # of 5 seconds each
    assert "".join(character for character, _ in cells) == "\u2591\u2591\u2591\u2591\u2588\u2588\u00b7\u00b7"
    assert {job for character, job in cells if character != "\u00b7"} == {"j"}
    _, now = after(*call(0, 20_000, 0), wait_s=20)
    plain = "".join(character for character, _ in lane_of(now.devices[0].workers[0], now, 4))
    assert plain == "\u2588\u2588\u00b7\u00b7"


def test_memory_does_not_grow_with_the_log() -> None:
    live = Live(clock=lambda: 0.0)
    for k in range(3000):
        start = 1000 * k
        events = [(t, name, f"j{k}", detail) for t, name, _, detail in call(start, start + 900, 0)]
        live.hear(text(*events, (start + 900, "ASSEMBLED", f"j{k}", "")).splitlines())
        live.moment()
    assert len(live._spans) < 100 and not live._jobs and len(live._numbers) == 1000
    assert live._matcher.left() == [] and all(span.kind is Kind.CALL for span in live._spans)
