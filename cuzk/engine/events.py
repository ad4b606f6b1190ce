"""What an engine says of itself, to as many listeners as like to hear it.

Speaking never waits: a listener has a queue of its own, in which the oldest events make room for the newest.
"""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass


class What(enum.Enum):
    SUBMITTED = "submitted"
    JOINED = "joined"
    WAITS_FOR_MEMORY = "waits for memory"
    PREPARING = "preparing"
    READY = "ready"
    PROVING = "proving"
    PROVED = "proved"
    WRONG_PROOF = "wrong proof"
    GOES_ELSEWHERE = "goes elsewhere"
    SHORT_OF_MEMORY = "short of memory"
    ENDED = "ended"
    OPENED = "opened"
    CLOSED = "closed"
    CANNOT_OPEN = "cannot open"
    STALLED = "stalled"
    SET_ASIDE = "set aside"
    FAILED = "failed"  # the engine itself


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEvent:
    """One thing that happened, at a time of the engine's clock; fields that do not apply are empty."""

    what: What
    at_s: float
    job_id: str = ""
    partition: int | None = None
    device: str = ""
    text: str = ""


class Subscription:
    """Events from now on. Iterating waits for the next, and ends when the engine or `close` ends it.

    lost  events that were pushed out because nobody took them
    """

    def __init__(self, announcer: Announcer, limit: int) -> None:
        self._announcer = announcer
        self._events: deque[EngineEvent] = deque(maxlen=limit)  # guarded by _changed, as is all below
        self._changed = threading.Condition()
        self._is_closed = False
        self.lost = 0

    def __iter__(self) -> Iterator[EngineEvent]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._events or self._is_closed)
                if not self._events:
                    return
                event = self._events.popleft()
            yield event

    def close(self) -> None:
        self._announcer.forget(self)
        self.end()

    def hear(self, event: EngineEvent) -> None:
        with self._changed:
            self.lost += len(self._events) == self._events.maxlen
            self._events.append(event)
            self._changed.notify()

    def end(self) -> None:
        """Nothing more will come; what is there can still be taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class Announcer:
    """Hands each event to every subscription."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: list[Subscription] = []  # guarded by _lock
        self._is_closed = False  # guarded by _lock

    def subscribe(self, limit: int) -> Subscription:
        subscription = Subscription(self, limit)
        with self._lock:
            if not self._is_closed:
                self._subscriptions.append(subscription)
                return subscription
        subscription.end()
        return subscription

    def forget(self, subscription: Subscription) -> None:
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def say(self, event: EngineEvent) -> None:
        with self._lock:
            for subscription in self._subscriptions:
                subscription.hear(event)

    def close(self) -> None:
        """End all subscriptions."""
        with self._lock:
            self._is_closed = True
            for subscription in self._subscriptions:
                subscription.end()
            self._subscriptions.clear()
