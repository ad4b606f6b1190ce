"""The lock of a device: one worker at a time, of those who wait the most urgent next.

Whoever holds it may let a more urgent worker in between two kernels and go on afterwards. What a *user* of
the lock, a prover, is in the middle of must not be touched meanwhile: nobody with the same one comes in.

Whoever gives it back makes way: it goes on, with a good deal of Python, when its successor has submitted the
first kernels. Both need Python's lock, and the device waits for one of them only.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: Whoever makes way waits no longer: by far enough for some dozens of calls of a driver.
MAKES_WAY_S = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Somebody's in the queue, from the first time that they wait to their last `release`.

    urgency  larger goes first, then the smaller number; it may rise while they wait, `wake` then says so
    user     what they compute with
    """

    urgency: Callable[[], int]
    number: int
    user: object

    @property
    def order(self) -> tuple[int, int]:
        return -self.urgency(), self.number


class DeviceLock:
    """Its own mutex is held for moments, and nothing else is taken under it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._holder: Place | None = None  # guarded by _changed, as is all below
        self._waiting: list[Place] = []
        self._between: list[Place] = []  # who let others in between two kernels
        self._under_way = 0  # how often a holder's first kernels were under way, or it gave the device back

    def locked(self) -> bool:
        return self._holder is not None

    @contextmanager
    def held(self, urgency: Callable[[], int], user: object, give_up: Callable[[], None]) -> Iterator[Place]:
        """Waits for it, and afterwards until a successor's kernels are under way.

        `give_up`, at first and whenever `wake` was called, may raise instead of waiting. It and `urgency` are
        called under the mutex: they read, and take no lock.
        """
        with self._changed:
            place = Place(urgency, next(self._numbers), user)
            self._take(place, give_up)
        try:
            yield place
        finally:
            with self._changed:
                self._changed.notify_all()
                if self._holder is place:  # not after it gave up between two kernels
                    self._holder = None
                    self._under_way += 1
                    self._make_way(place)

    def under_way(self) -> None:
        """The holder's first kernels are."""
        with self._changed:
            self._under_way += 1
            self._changed.notify_all()

    def is_wanted_more(self, place: Place) -> bool:
        """Whether somebody waits who may come in between two kernels of its holder."""
        with self._changed:
            mine = place.urgency()
            return any(one.urgency() > mine and one.user != place.user for one in self._waiting)

    def let_in_between(self, place: Place, give_up: Callable[[], None]) -> None:
        """Give it to the more urgent, and wait for it again; it is lost when `give_up` raises."""
        with self._changed:
            assert self._holder is place, "only its holder can"
            self._holder = None
            self._between.append(place)
            self._changed.notify_all()
            try:
                self._take(place, give_up)
            finally:
                self._between.remove(place)

    def wake(self) -> None:
        """Something changed that may make somebody give up."""
        with self._changed:
            self._changed.notify_all()

    def _take(self, place: Place, give_up: Callable[[], None]) -> None:
        self._waiting.append(place)
        try:
            while True:
                give_up()
                if self._holder is None and self._next() is place:
                    break
                self._changed.wait()
        finally:
            self._waiting.remove(place)
            self._changed.notify_all()
        self._holder = place

    def _make_way(self, place: Place) -> None:
        """For whoever waits, unless it is less urgent."""
        if any(one.urgency() >= place.urgency() for one in self._waiting):
            before = self._under_way
            self._changed.wait_for(lambda: self._under_way != before, MAKES_WAY_S)

    def _next(self) -> Place:
        """Of those who wait; there is one. Who let others in keeps their user to themselves."""
        mine = {one.user: one for one in self._between}
        return min(
            (one for one in self._waiting if mine.get(one.user, one) is one), key=lambda one: one.order
        )
