"""What a GPU's time went to, from spans that are written down here: by kernels, and adding up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cuzk.server.gpu_time import GpuTime, GpuTimes, KernelClock
from cuzk.server.recent import Recent
from cuzk.timeline.spans import Kind, Span


def span(kind: Kind, start: int, end: int | None, device: int | None = 0) -> Span:
    return Span(kind, "a", 0, 0, device, start, end, False)


def seen(*spans: Span, now: int = 1000) -> Recent:
    return Recent(
        now_ms=now,
        ended=[one for one in spans if one.end_ms is not None],
        open=[one for one in spans if one.end_ms is None],
        count=len(spans),
    )


def gpu_time(recent: Recent, device: int, window: int, *, has_clock: bool) -> GpuTime | None:
    return GpuTimes(recent).of(device, window, has_clock=has_clock)


def parts(recent: Recent, window: int = 1000, device: int = 0) -> dict[str, int]:
    time = gpu_time(recent, device, window, has_clock=True)
    assert time is not None
    return dict(time.parts_ms)


def test_each_moment_counts_for_the_first_that_is_true_of_it() -> None:
    recent = seen(
        span(Kind.SYNTHESIS, 0, 300, None),
        span(Kind.QUEUE, 300, 400, None),
        span(Kind.CALL, 400, 800),
        span(Kind.KERNEL, 500, 700),
        span(Kind.SYNTHESIS, 600, 900, None),
    )
    assert parts(recent) == {"kernels": 200, "call": 200, "ready": 100, "synthesis": 400, "nothing": 100}
    time = gpu_time(recent, 0, 1000, has_clock=True)
    assert time is not None and time.efficiency_percent == 20.0


def test_two_workers_that_compute_at_once_are_no_more_than_one() -> None:
    recent = seen(span(Kind.KERNEL, 0, 600), span(Kind.KERNEL, 400, 1000), span(Kind.LOCK, 0, 1000))
    assert parts(recent)["kernels"] == 1000


def test_waiting_for_the_lock_is_not_computing() -> None:
    """Calls of both workers cover all of the time; kernels do not."""
    recent = seen(
        span(Kind.CALL, 0, 1000), span(Kind.CALL, 0, 1000), span(Kind.LOCK, 0, 900), span(Kind.KERNEL, 0, 450)
    )
    time = gpu_time(recent, 0, 1000, has_clock=True)
    assert time is not None and time.efficiency_percent == 45.0
    assert time.parts_ms["call"] == 550


def test_the_time_ends_where_a_proof_began_whose_kernels_nobody_knows_yet() -> None:
    done = (span(Kind.LOCK, 0, 500), span(Kind.KERNEL, 0, 500))
    under_way = (span(Kind.CALL, 450, None), span(Kind.LOCK, 500, None))
    time = gpu_time(seen(*done, *under_way), 0, 1000, has_clock=True)
    assert time is not None and (time.total_ms, time.efficiency_percent) == (500, 100.0)


def test_a_proof_that_has_told_its_kernels_and_ends_on_the_host_hides_nothing() -> None:
    told = (span(Kind.KERNEL, 500, 800), span(Kind.LOCK, 500, 800), span(Kind.CALL, 450, None))
    time = gpu_time(seen(*told), 0, 1000, has_clock=True)
    assert time is not None and (time.total_ms, time.parts_ms["kernels"]) == (1000, 300)


def test_a_proof_that_was_interrupted_hides_what_it_computed_before() -> None:
    urgent = Span(Kind.KERNEL, "urgent", 0, 1, 0, 400, 600, False)
    paused = (span(Kind.LOCK, 300, 400), span(Kind.CALL, 250, None), span(Kind.WAIT, 400, None))
    time = gpu_time(seen(urgent, *paused), 0, 1000, has_clock=True)
    assert time is not None and time.total_ms == 300
    again = (span(Kind.LOCK, 300, 400), span(Kind.CALL, 250, None), span(Kind.LOCK, 600, None))
    time = gpu_time(seen(urgent, *again), 0, 1000, has_clock=True)
    assert time is not None and time.total_ms == 300


def test_where_nothing_locks_a_call_under_way_ends_the_time() -> None:
    time = gpu_time(seen(span(Kind.KERNEL, 0, 400), span(Kind.CALL, 500, None)), 0, 1000, has_clock=True)
    assert time is not None and (time.total_ms, time.efficiency_percent) == (500, 80.0)


def test_of_a_device_without_a_clock_nobody_knows_the_efficiency() -> None:
    time = gpu_time(seen(span(Kind.CALL, 0, 400)), 0, 1000, has_clock=False)
    assert time is not None and time.efficiency_percent is None and time.parts_ms["call"] == 400


def test_a_gpu_that_has_done_nothing_lately_is_known_to_be_idle() -> None:
    time = gpu_time(seen(now=2_000_000), 0, 1000, has_clock=True)
    assert time is not None and (time.efficiency_percent, time.parts_ms["nothing"]) == (0.0, 1000)


def test_of_no_time_there_is_nothing_to_say() -> None:
    assert gpu_time(seen(now=0), 0, 1000, has_clock=True) is None
    assert gpu_time(seen(span(Kind.CALL, 0, None)), 0, 1000, has_clock=True) is None


def test_other_devices_do_not_count_but_what_is_ready_for_all_does() -> None:
    recent = seen(span(Kind.KERNEL, 0, 1000, 1), span(Kind.QUEUE, 0, 250, None))
    assert parts(recent, device=0) == {"kernels": 0, "call": 0, "ready": 250, "synthesis": 0, "nothing": 750}
    assert parts(recent, device=1)["kernels"] == 1000


def test_only_the_window_counts() -> None:
    recent = seen(span(Kind.KERNEL, 0, 950))
    assert parts(recent, window=100) == {"kernels": 50, "call": 0, "ready": 0, "synthesis": 0, "nothing": 50}


INTERVALS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60)), max_size=12)


@given(kernels=INTERVALS, calls=INTERVALS, queue=INTERVALS, synthesis=INTERVALS, window=st.integers(1, 400))
def test_parts_are_those_of_each_millisecond_counted_one_by_one(
    kernels: list[tuple[int, int]],
    calls: list[tuple[int, int]],
    queue: list[tuple[int, int]],
    synthesis: list[tuple[int, int]],
    window: int,
) -> None:
    layers = {"kernels": kernels, "call": calls, "ready": queue, "synthesis": synthesis}
    kinds = {"kernels": Kind.KERNEL, "call": Kind.CALL, "ready": Kind.QUEUE, "synthesis": Kind.SYNTHESIS}
    spans = [
        span(kinds[part], start, start + took)
        for part, intervals in layers.items()
        for start, took in intervals
    ]
    expected = dict.fromkeys([*layers, "nothing"], 0)
    for moment in range(max(0, 400 - window), 400):
        true = (part for part in layers if any(a <= moment < a + took for a, took in layers[part]))
        expected[next(true, "nothing")] += 1
    assert parts(seen(*spans, now=400), window=window) == expected


def test_the_clock_of_kernels_counts_every_moment_once() -> None:
    clock = KernelClock()
    for start, end in ((0, 10), (20, 30), (5, 25), (40, 40), (20, 30)):
        clock.add(start, end)
    assert clock.total_ms == 30
