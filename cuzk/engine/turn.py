"""How the workers of a device share it: a lock, held for as little or as much as the settings say.

narrow   |prepare|~~~~wait~~~~[launch, synchronise]|assemble, check|     the lock: [ ]
coarse   ~~~~wait~~~~[prepare, launch, synchronise, assemble]|check|
none     |prepare, launch, synchronise, assemble, check|
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from cuzk.engine.settings import GpuLock


class Abandoned(Exception):
    """Nobody wants the proof any more: raised at a boundary of work on a device, caught by the worker."""


class Turn:
    """A worker's right to use its device for one proof. The worker's thread uses it, no other.

    is_over  whether the proof's run has ended
    record   takes LOCK_WAIT, LOCK_START and LOCK_END as they happen, KERNEL_START and KERNEL_END afterwards

    waited_s, held_s  seconds before and inside the lock so far; without a lock, inside `on_device`
    """

    def __init__(
        self,
        lock: threading.Lock,
        mode: GpuLock,
        *,
        is_over: Callable[[], bool],
        record: Callable[..., None],
        clock: Callable[[], float],
    ) -> None:
        self._lock, self._mode = lock, mode
        self._is_over, self._record, self._clock = is_over, record, clock
        self.waited_s = self.held_s = 0.0

    def whole(self) -> AbstractContextManager[None]:
        """Around the whole proof, by the worker."""
        return self._locked() if self._mode == "coarse" else nullcontext()

    def on_device(self) -> AbstractContextManager[None]:
        """Around launches and their synchronisation, by the prover. Raises Abandoned as `boundary`."""
        self.boundary()
        if self._mode == "coarse":
            return nullcontext()
        return self._locked() if self._mode == "narrow" else self._counted()

    def boundary(self) -> None:
        """Between two kernels, where work can end early. Raises Abandoned when its run has ended."""
        if self._is_over():
            raise Abandoned

    def computed(self, kernel_ms: float | None) -> None:
        """How long the device has computed for this proof until now, by its own clock; None: nobody knows.

        Pauses in between are moved to the front: what counts is how long.
        """
        if kernel_ms is not None:
            now_ns = round(self._clock() * 1e9)
            self._record("KERNEL_START", at_ns=now_ns - round(kernel_ms * 1e6))
            self._record("KERNEL_END", at_ns=now_ns)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._record("LOCK_WAIT")
        asked = self._clock()
        with self._lock:
            self.waited_s += self._clock() - asked
            self._record("LOCK_START")
            try:
                self.boundary()  # waiting may have taken its time
                with self._counted():
                    yield
            finally:
                self._record("LOCK_END")

    @contextmanager
    def _counted(self) -> Iterator[None]:
        begun = self._clock()
        try:
            yield
        finally:
            self.held_s += self._clock() - begun
