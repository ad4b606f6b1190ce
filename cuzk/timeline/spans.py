"""Events to spans: what began is matched with what ended, by job, partition and worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from cuzk.timeline.line import Event


class Kind(str, Enum):
    """What a span is of."""

    SYNTHESIS = "synthesis"
    QUEUE = "queue"  # from GPU_QUEUE until a worker takes the partition
    TAKEN = "taken"  # from there to its call
    CALL = "call"
    WAIT = "wait"  # for the device's lock
    LOCK = "lock"  # held
    KERNEL = "kernel"


#: event -> the kinds that it ends, and the one that it begins
_RULES: dict[str, tuple[tuple[Kind, ...], Kind | None]] = {
    "SYNTH_START": ((), Kind.SYNTHESIS),
    "SYNTH_END": ((Kind.SYNTHESIS,), None),
    "GPU_QUEUE": ((), Kind.QUEUE),
    "GPU_PICKUP": ((Kind.QUEUE,), Kind.TAKEN),
    "GPU_START": ((Kind.TAKEN, Kind.QUEUE), Kind.CALL),
    "LOCK_WAIT": ((), Kind.WAIT),
    "LOCK_START": ((Kind.WAIT,), Kind.LOCK),
    "LOCK_END": ((Kind.LOCK,), None),
    "KERNEL_START": ((), Kind.KERNEL),
    "KERNEL_END": ((Kind.KERNEL,), None),
    "GPU_END": ((Kind.CALL,), None),
}
_BY_WORKER = frozenset({Kind.CALL, Kind.WAIT, Kind.LOCK, Kind.KERNEL})
#: Workers of a device where neither the lines nor the log nor the user say: the daemon's default.
WORKERS_PER_GPU = 2


_Key = tuple[Kind, "int | None", "int | None"]  # with partition and worker


#: Job, partition, worker.
Attempt = tuple[str, "int | None", "int | None"]


class Span(NamedTuple):
    """Something that took time. `end_ms` is None where the log does not say. A tuple, as there are many."""

    kind: Kind
    job: str
    partition: int | None
    worker: int | None
    device: int | None  # of a GPU's spans always a number
    start_ms: int
    end_ms: int | None
    failed: bool

    @property
    def attempt(self) -> Attempt:
        """What all spans of a worker's attempt to prove a partition have in common."""
        return self.job, self.partition, self.worker

    @property
    def took_ms(self) -> int:
        """Of a span that ended."""
        assert self.end_ms is not None
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """All spans of a run: those that ended, by kind and start; those that did not; the endings of jobs.

    `unmatched` counts ends whose start is missing, `guessed` the workers whose device is a guess.
    """

    ended: dict[Kind, list[Span]]
    open: list[Span]
    endings: list[Event]
    unmatched: int
    guessed: int
    first_ms: int
    last_ms: int


class Matcher:
    """Spans of events as they come. Of equal open ones the last to begin ends first: others are of tries that
    were lost.

    on_span    hears each span that ends
    unmatched  ends whose start was missing
    guessed    workers whose device is a guess
    """

    def __init__(self, on_span: Callable[[Span], None], workers_per_gpu: int = WORKERS_PER_GPU) -> None:
        self._on_span, self._workers_per_gpu = on_span, workers_per_gpu
        self._open: defaultdict[str, dict[_Key, list[Event]]] = defaultdict(dict)
        self.guessed: set[int] = set()
        self.unmatched = 0

    def hear(self, event: Event) -> None:
        """The next event. Those of one partition come in the order in which they happened. 2 us."""
        rule = _RULES.get(event.name)
        if rule is None:
            if event.name != "ASSEMBLED":
                self._fail(event)
            return
        ends, begins = rule
        matched = [self._end(kind, event) for kind in ends]
        if begins is not None:
            key = (begins, event.partition, event.worker if begins in _BY_WORKER else None)
            self._open[event.job].setdefault(key, []).append(event)
        elif not any(matched):
            self.unmatched += 1

    def forget(self, job: str) -> None:
        """What is open of a job will not end."""
        self._open.pop(job, None)

    def _end(self, kind: Kind, event: Event) -> bool:
        """Whether there was such a span. A partition that only its end names is one of a single part."""
        worker = event.worker if kind in _BY_WORKER else None
        of_job = self._open.get(event.job, {})
        for partition in (event.partition, None):
            starts = of_job.get((kind, partition, worker))
            if starts:
                self._close(kind, starts.pop(), event, failed=False)
                if not starts:
                    del of_job[kind, partition, worker]
                    self._tidy(event.job)
                return True
        return False

    def _fail(self, event: Event) -> None:
        """Ends all that is open of a partition, or of the whole job; what it was queued for is not done."""
        of_job = self._open.get(event.job, {})
        for key in [key for key in of_job if event.partition in (None, key[1])]:
            for start in of_job.pop(key):
                self._close(key[0], start, event, failed=True)
        self._tidy(event.job)

    def _tidy(self, job: str) -> None:
        """Nothing is kept of a job of which nothing is open: there may be millions in a life."""
        if not self._open.get(job, True):
            del self._open[job]

    def _close(self, kind: Kind, start: Event, event: Event, *, failed: bool) -> None:
        self._on_span(self._span(kind, start, event.offset_ms, failed))

    def _span(self, kind: Kind, start: Event, end_ms: int | None, failed: bool) -> Span:
        device = start.device
        if device is None and kind in _BY_WORKER:
            device = (start.worker or 0) // self._workers_per_gpu
            self.guessed.add(start.worker or 0)
        return Span(kind, start.job, start.partition, start.worker, device, start.offset_ms, end_ms, failed)

    def left(self) -> list[Span]:
        """Spans that did not end yet, by start."""
        found = [
            self._span(key[0], start, None, False)
            for of_job in self._open.values()
            for key, starts in of_job.items()
            for start in starts
        ]
        return sorted(found, key=_start)


def match(events: Sequence[Event], workers_per_gpu: int | None) -> Work:
    """The spans of a run, whose events come by offset. 2 us an event.

    A device that no line names follows from its worker, as the daemon numbers workers through all devices.
    """
    ended: dict[Kind, list[Span]] = {kind: [] for kind in Kind}
    matcher = Matcher(lambda span: ended[span.kind].append(span), workers_per_gpu or WORKERS_PER_GPU)
    for event in events:
        matcher.hear(event)
    return Work(
        ended={kind: _by_start(spans) for kind, spans in ended.items()},
        open=matcher.left(),
        endings=[event for event in events if event.name not in _RULES],
        unmatched=matcher.unmatched,
        guessed=0 if workers_per_gpu else len(matcher.guessed),
        first_ms=events[0].offset_ms,
        last_ms=events[-1].offset_ms,
    )


def _start(span: Span) -> int:
    return span.start_ms


def _by_start(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=_start)
