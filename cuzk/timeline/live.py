"""An engine at this moment, from the lines that it has written so far: GPUs, workers, queue, jobs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from cuzk.timeline.devices import ends_of, percent
from cuzk.timeline.intervals import Cover
from cuzk.timeline.line import ENDINGS, EVENTS, MARK, Event, parse_line
from cuzk.timeline.spans import WORKERS_PER_GPU, Kind, Matcher, Span

#: What is shown of the past.
WINDOW_MS = 60_000
#: An offset that falls by more is of an engine that was started anew; lines come late by less.
_RESTART_MS = 10_000
_ENDED_JOBS = 5
_NUMBERED_JOBS = 1000  # more than a minute's
#: Curio's daemon tells no end of a job: one has ended when for so long nothing came after its last proof.
_QUIET_MS = 30_000
_OF_GPUS = (Kind.CALL, Kind.WAIT, Kind.LOCK, Kind.KERNEL)


@dataclass(slots=True, eq=False)
class LiveJob:
    """A job: partitions that were heard of, and those that were proven; `state` once it has ended."""

    job: str
    number: int
    first_ms: int
    last_ms: int
    partitions: set[int | None] = field(default_factory=set)
    proven: set[int | None] = field(default_factory=set)
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDevice:
    """A GPU within the window; percentages are None where there is nothing to tell them from.

    workers  by number: its calls, and what lies within them, by start; None for a log without numbers
    """

    device: int
    busy_percent: float | None
    kernel_percent: float | None
    workers: dict[int | None, list[Span]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """How things stand. Spans that go on end now.

    begin_ms, now_ms  the window
    jobs              under way, by their first event
    ended             the last that ended
    numbers           of the jobs of the window
    """

    begin_ms: int
    now_ms: int
    devices: tuple[LiveDevice, ...]
    queued: int
    synthesising: int
    jobs: tuple[LiveJob, ...]
    ended: tuple[LiveJob, ...]
    counts: dict[str, int]
    numbers: Mapping[str, int]


class Live:
    """Hears lines. `clock` counts seconds: between two lines time goes on by it."""

    def __init__(
        self,
        workers_per_gpu: int | None = None,
        *,
        window_ms: int = WINDOW_MS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers_per_gpu, self._window_ms, self._clock = workers_per_gpu, window_ms, clock
        self.runs = 0
        self._begin_run()

    def _begin_run(self) -> None:
        self.runs += 1
        self._spans: deque[Span] = deque()
        self._matcher = Matcher(self._spans.append, self._workers_per_gpu or WORKERS_PER_GPU)
        self._jobs: dict[str, LiveJob] = {}
        self._ended: deque[LiveJob] = deque(maxlen=_ENDED_JOBS)
        self._counts: dict[str, int] = {"proven": 0, "failed": 0, "cancelled": 0}
        self._first_ms: int | None = None
        self._last_ms, self._heard_s = 0, self._clock()
        self._numbers: dict[str, int] = {}
        self._count = 0

    def hear(self, lines: Iterable[str]) -> list[LiveJob]:
        """The jobs that ended with these lines."""
        over: list[LiveJob] = []
        for line in lines:
            for event in parse_line(line) if MARK in line else ():
                if event is not None and event.name in EVENTS:
                    over += self._event(event)
        return over

    def _event(self, event: Event) -> list[LiveJob]:
        if event.offset_ms < self._last_ms - _RESTART_MS:
            self._begin_run()
        if self._first_ms is None:
            self._first_ms = event.offset_ms
        if event.offset_ms >= self._last_ms:
            self._last_ms, self._heard_s = event.offset_ms, self._clock()
        self._matcher.hear(event)
        job = self._job(event)
        job.last_ms = max(job.last_ms, event.offset_ms)
        if event.name in ENDINGS and event.partition is None:
            return [self._end(job, {"ASSEMBLED": "proven"}.get(event.name, event.name.lower()))]
        if event.name not in ENDINGS:
            job.partitions.add(event.partition)
        if event.name == "GPU_END":
            job.proven.add(event.partition)
        return []

    def _job(self, event: Event) -> LiveJob:
        if event.job not in self._jobs:
            self._jobs[event.job] = LiveJob(event.job, self._count, event.offset_ms, event.offset_ms)
            self._numbers.pop(event.job, None)
            self._numbers[event.job] = self._count
            self._count += 1
            if len(self._numbers) > _NUMBERED_JOBS:
                del self._numbers[next(iter(self._numbers))]
        return self._jobs[event.job]

    def _end(self, job: LiveJob, state: str) -> LiveJob:
        job.state = state
        self._counts[job.state] += 1
        self._ended.append(self._jobs.pop(job.job))
        self._matcher.forget(job.job)
        return job

    def _end_quiet_jobs(self, now_ms: int) -> None:
        for job in list(self._jobs.values()):
            is_proven = job.proven and job.proven >= job.partitions
            if is_proven and now_ms - job.last_ms > _QUIET_MS:
                self._end(job, "proven")

    @property
    def has_heard(self) -> bool:
        return self._first_ms is not None

    @property
    def now_ms(self) -> int:
        """The engine's clock, as far as it can be told: its last line, and the time since that was read."""
        return self._last_ms + round((self._clock() - self._heard_s) * 1000)

    def moment(self) -> Moment:
        now = self.now_ms
        self._end_quiet_jobs(now)
        begin = max(self._first_ms or 0, now - self._window_ms)
        while self._spans and (self._spans[0].end_ms or 0) < begin:
            self._spans.popleft()
        left = self._matcher.left()
        return Moment(
            begin_ms=begin,
            now_ms=now,
            devices=tuple(self._devices(left, begin, now)),
            queued=sum(span.kind is Kind.QUEUE for span in left),
            synthesising=sum(span.kind is Kind.SYNTHESIS for span in left),
            jobs=tuple(self._jobs.values()),
            ended=tuple(self._ended),
            counts=dict(self._counts),
            numbers=dict(self._numbers),
        )

    def _devices(self, left: list[Span], begin: int, now: int) -> Iterable[LiveDevice]:
        spans = [span for span in (*self._spans, *left) if span.kind in _OF_GPUS]
        for number in sorted({span.device for span in spans if span.device is not None}):
            own = sorted((one for one in spans if one.device == number), key=lambda span: span.start_ms)
            on_going = [span.start_ms for span in own if span.end_ms is None and span.kind is _holder(own)]
            until = min(on_going, default=now)
            workers: dict[int | None, list[Span]] = {}
            for span in own:
                lane = workers.setdefault(span.worker, [])
                lane.append(span if span.end_ms is not None else span._replace(end_ms=now))
            yield LiveDevice(
                device=number,
                busy_percent=_share(workers.values(), Kind.CALL, begin, now),
                kernel_percent=_share(workers.values(), Kind.KERNEL, begin, until),
                workers=dict(sorted(workers.items(), key=lambda item: -1 if item[0] is None else item[0])),
            )


def _holder(spans: list[Span]) -> Kind:
    """The kind of span within which kernels run that are told only when it ends."""
    return Kind.LOCK if any(span.kind is Kind.LOCK for span in spans) else Kind.CALL


def _share(lanes: Iterable[list[Span]], kind: Kind, begin: int, end: int) -> float | None:
    """Of the time, merged over workers; None where no span of that kind is known."""
    spans = [span for lane in lanes for span in lane if span.kind is kind]
    return percent(Cover(ends_of(spans)).within(begin, end), end - begin) if spans and end > begin else None
