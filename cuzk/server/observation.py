"""All that is to be seen of a server and its engine, put together at one moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cuzk.engine.events import EngineEvent, Subscription
from cuzk.engine.jobs import Priority, Status
from cuzk.engine.recorder import Recorder
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.server.card_readings import CardReading, CardReadings
from cuzk.server.gpu_time import KernelClock
from cuzk.server.history import Ended, History, Told
from cuzk.server.recent import Recent, RecentTimeline
from cuzk.server.stages import StageTimes
from cuzk.timeline.spans import Kind, Span

#: Events that may wait for their listener: all of a thousand jobs at once.
EVENTS_LIMIT = 100_000


class Observed(Protocol):
    """An engine, seen from here; every method returns at once."""

    @property
    def settings(self) -> Settings: ...

    def status(self) -> EngineStatus: ...

    def events(self, *, limit: int = 1000) -> Subscription: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that the server has accepted and the engine has not been given, for so long."""

    job_id: str
    kind: str
    priority: Priority
    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the server adds to what its engine says; each is called for every look, and returns at once.

    waiting    jobs in front of the engine, in the order in which they will be handed to it
    not_ready  why no proof could start now, or None
    rejected   requests whose input was at fault, ever
    """

    waiting: Callable[[], Sequence[WaitingJob]] = lambda: ()
    not_ready: Callable[[], str | None] = lambda: None
    rejected: Callable[[], int] = lambda: 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Everything at one moment, `recent.now_ms`.

    kernel_ms     of each device by ordinal, ever: how long its kernels ran
    lost          events of the engine that came too fast to be heard
    """

    engine: EngineStatus
    settings: Settings
    waiting: tuple[WaitingJob, ...]
    not_ready: str | None
    rejected: int
    recent: Recent
    told: Told
    cards: Mapping[str, CardReading]
    kernel_ms: Mapping[int, int]
    lost: int

    @property
    def jobs_waiting(self) -> int:
        """Accepted, and no partition of them begun."""
        return len(self.waiting) + sum(job.status is Status.WAITING for job in self.engine.jobs)


class Observation:
    """Watches an engine from its first moment on.

        observation = Observation()
        engine = Engine(recorder=observation.recorder)
        observation.begin(engine)

    owns     a thread that listens to the engine's events, one that reads cards, all that is remembered
    borrows  the engine, which outlives it or ends first
    """

    def __init__(self, log: Recorder | None = None) -> None:
        """log: hears all that the engine records, too."""
        self.recent = RecentTimeline(log, on_span=self._hear_span)
        self.history = History(lambda: self.recent.now_ms)
        self.stages = StageTimes()
        self._clocks_lock = threading.Lock()
        self._clocks: dict[int, KernelClock] = {}  # by device; guarded by _clocks_lock
        self._engine: Observed | None = None
        self._surroundings = Surroundings()
        self._events: Subscription | None = None
        self._cards = CardReadings({})

    @property
    def recorder(self) -> Recorder:
        """What the engine must be given."""
        return self.recent

    def begin(
        self,
        engine: Observed,
        surroundings: Surroundings | None = None,
        *,
        cards: CardReadings | None = None,
    ) -> None:
        """From now on it can be looked at. Cards are started and closed here."""
        self._engine, self._surroundings = engine, surroundings or self._surroundings
        self._events = events = engine.events(limit=EVENTS_LIMIT)
        threading.Thread(target=self._listen, args=(events,), name="cuzk observer", daemon=True).start()
        self._cards = cards or self._cards
        self._cards.start()

    def close(self) -> None:
        if self._events is not None:
            self._events.close()
        self._cards.close()

    def end(self, ended: Ended) -> None:
        """A job of the server has ended."""
        self.history.end(ended)
        self.stages.end(ended)

    def look(self) -> Sight:
        """Takes no lock for longer than moments, and does no I/O."""
        assert self._engine is not None and self._events is not None, "it has not begun"
        recent = self.recent.look()
        with self._clocks_lock:
            kernel_ms = {device: clock.total_ms for device, clock in self._clocks.items()}
        return Sight(
            engine=self._engine.status(),
            settings=self._engine.settings,
            waiting=tuple(self._surroundings.waiting()),
            not_ready=self._surroundings.not_ready(),
            rejected=self._surroundings.rejected(),
            recent=recent,
            told=self.history.look(),
            cards=self._cards.latest(),
            kernel_ms=kernel_ms,
            lost=self._events.lost,
        )

    def _listen(self, events: Subscription) -> None:
        event: EngineEvent
        for event in events:
            self.history.hear(event)

    def _hear_span(self, span: Span) -> None:
        self.stages.hear(span)
        if span.kind is Kind.KERNEL and span.device is not None and span.end_ms is not None:
            with self._clocks_lock:
                self._clocks.setdefault(span.device, KernelClock()).add(span.start_ms, span.end_ms)
