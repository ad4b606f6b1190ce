"""How the workers of a device share it: a lock, held for as little or as much as the settings say.

narrow   |prepare|~~~~wait~~~~[launch, synchronise]|assemble, check|     the lock: [ ]
coarse   ~~~~wait~~~~[prepare, launch, synchronise, assemble]|check|
none     |prepare, launch, synchronise, assemble, check|
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from cuzk.engine.device_lock import DeviceLock, Place
from cuzk.engine.settings import GpuLock


class Abandoned(Exception):
    """Nobody wants the proof any more: raised at a boundary of work on a device, caught by the worker."""


class Overtaken(Exception):
    """The partition goes back into the queue: its device stands still, or the worker is needed more."""


class Turn:
    """A worker's right to use its device for one proof. The worker's thread uses it, no other.

    user          what it proves with: whoever else does waits until the proof is through
    urgency       larger ones come first; asked again and again, as it may rise
    is_over       whether nobody wants the proof, or not from this worker
    is_overtaken  whether waiting for the device has become pointless
    begins        called when the device is the worker's, each time; False if it is not to begin
    pauses        called when somebody is let in between; `begins` comes after it
    record        takes LOCK_WAIT, LOCK_START and LOCK_END as they happen, those of kernels afterwards

    waited_s, held_s  seconds before and inside the lock so far; without a lock, inside `on_device`
    """

    def __init__(
        self,
        lock: DeviceLock,
        mode: GpuLock,
        *,
        user: object,
        urgency: Callable[[], int],
        is_over: Callable[[], bool],
        is_overtaken: Callable[[], bool],
        begins: Callable[[], bool],
        pauses: Callable[[], object],
        record: Callable[..., None],
        clock: Callable[[], float],
    ) -> None:
        self._lock, self._mode = lock, mode
        self._user, self._urgency = user, urgency
        self._is_over, self._is_overtaken = is_over, is_overtaken
        self._begins, self._pauses = begins, pauses
        self._record, self._clock = record, clock
        self._place: Place | None = None  # while the lock is held
        self._is_first = False  # until the first boundary since it was had last
        self._begun_s = 0.0  # when it was had last
        self._stays: list[tuple[float, float]] = []  # from when to when it was held before
        self.waited_s = self.held_s = 0.0

    def whole(self) -> AbstractContextManager[None]:
        """Around the whole proof, by the worker."""
        return self._locked() if self._mode == "coarse" else nullcontext()

    def on_device(self) -> AbstractContextManager[None]:
        """Around launches and their synchronisation, by the prover. Raises as `boundary`, and Overtaken."""
        if self._is_over():
            raise Abandoned
        if self._mode == "coarse":
            return nullcontext()
        return self._locked() if self._mode == "narrow" else self._counted()

    def boundary(self) -> None:
        """Between two kernels, where work can end early, and something urgent can come in between.

        Raises Abandoned when nobody wants the proof, Overtaken when the device stood still meanwhile.
        """
        if self._is_over():
            raise Abandoned
        if self._place is not None and self._is_first:
            self._is_first = False
            self._lock.under_way()
        if self._mode == "narrow" and self._place is not None and self._lock.is_wanted_more(self._place):
            self._let_in_between(self._place)

    def _let_in_between(self, place: Place) -> None:
        self._stays.append((self._begun_s, self._clock()))
        self._record("LOCK_END")
        self._record("LOCK_WAIT")
        self._pauses()
        asked, self._place = self._clock(), None
        try:
            self._lock.let_in_between(place, self._give_up)
        finally:
            paused_s = self._clock() - asked
            self.waited_s += paused_s
            self.held_s -= paused_s
        self._begin(place)

    def computed(self, kernel_ms: float | None) -> None:
        """How long the device has computed for this proof until now, by its own clock; None: nobody knows.

        Pauses between kernels are moved to the front: what counts is how long. What was computed before
        something urgent came in between is laid there, not over what that computed.
        """
        now = self._clock()
        stays, self._stays = [*self._stays, (self._begun_s if self._place else now, now)], []
        if kernel_ms is None:
            return
        left_ns = round(kernel_ms * 1e6)
        for k, (begin, end) in reversed(list(enumerate(stays))):
            took_ns = min(left_ns, round((end - begin) * 1e9)) if k else left_ns
            if took_ns:
                end_ns = round(end * 1e9)
                self._record("KERNEL_START", at_ns=end_ns - took_ns)
                self._record("KERNEL_END", at_ns=end_ns)
            left_ns -= took_ns

    def _give_up(self) -> None:
        """Raises where waiting has become pointless."""
        if self._is_over():
            raise Abandoned
        if self._is_overtaken():
            raise Overtaken

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._record("LOCK_WAIT")
        asked = self._clock()
        with self._lock.held(self._urgency, self._user, self._give_up) as place:
            self.waited_s += self._clock() - asked
            try:
                self._begin(place)
                with self._counted():
                    yield
            finally:
                if self._place is not None:  # else it was given away, and that is recorded
                    self._place = None
                    self._record("LOCK_END")

    def _begin(self, place: Place) -> None:
        """The device is the worker's. Raises Overtaken where that came too late."""
        self._place, self._begun_s, self._is_first = place, self._clock(), True
        self._record("LOCK_START")
        if not self._begins():
            raise Overtaken

    @contextmanager
    def _counted(self) -> Iterator[None]:
        begun = self._clock()
        try:
            yield
        finally:
            self.held_s += self._clock() - begun
