"""What long work says while it runs: stages that start, advance and end, and notices in between.

Whoever starts long work may pass `on_event`; it is called in the thread that does the work and must return
quickly. Code below the facade knows nothing of events: it calls a plain `progress(done, total)`, which
`stage` supplies.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStarted:
    """A stage begins. `total` counts `unit`s ("points", "bytes"); None while nobody knows it."""

    name: str
    total: int | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAdvanced:
    """`done` of `total` units of a running stage are finished."""

    name: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDone:
    """A stage ended well after `seconds`. A stage that failed ends with its exception instead."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence for the user: `info` explains a choice, `warning` asks for attention."""

    level: Literal["info", "warning"]
    text: str


Event = StageStarted | StageAdvanced | StageDone | Notice
OnEvent = Callable[[Event], None]
#: progress(done, total): what kernels and file code call as they get on.
Progress = Callable[[int, int], None]


def ignore(event: Event) -> None:
    """The `on_event` of callers who want to hear nothing."""


@contextmanager
def stage(on_event: OnEvent, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Progress]:
    """Announce a stage around the work inside `with`; yields the progress callback to hand down."""

    def progress(done: int, total: int) -> None:
        on_event(StageAdvanced(name=name, done=done, total=total))

    on_event(StageStarted(name=name, total=total, unit=unit))
    begin = time.perf_counter()
    yield progress
    on_event(StageDone(name=name, seconds=time.perf_counter() - begin))


class Stopwatch:
    """Adds up the seconds of stages by name, and passes the events on."""

    def __init__(self, on_event: OnEvent = ignore) -> None:
        self._on_event = on_event
        self.seconds: dict[str, float] = {}

    def hear(self, event: Event) -> None:
        if isinstance(event, StageDone):
            self.seconds[event.name] = self.seconds.get(event.name, 0.0) + event.seconds
        self._on_event(event)

    def by_work(self) -> dict[str, float]:
        """Seconds by what was done, whatever for: those of "partition 3: rows" are among those of "rows"."""
        found: dict[str, float] = {}
        for name, seconds in self.seconds.items():
            work = name.rpartition(": ")[2]
            found[work] = found.get(work, 0.0) + seconds
        return found


def prefixed(on_event: OnEvent, prefix: str) -> OnEvent:
    """Hears the same stages under names that begin with a prefix."""
    return lambda event: on_event(
        event if isinstance(event, Notice) else replace(event, name=f"{prefix}{event.name}")
    )


def one_at_a_time(on_event: OnEvent) -> OnEvent:
    """The same for several threads."""
    lock = threading.Lock()

    def hear(event: Event) -> None:
        with lock:
            on_event(event)

    return hear
