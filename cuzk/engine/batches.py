"""Which runs go together: of setups that do not fit a device at once, each change costs opening parameters.

Runs of one setup that come within a time of the first of them are a batch, and a batch goes before those that
began after it. So a run waits for what was submitted before it, and for what joins those batches within that
time: no setup is put off for ever. Priority goes first: this orders runs of equal priority. Not locked: the
board is.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Batch:
    number: int
    begun_s: float


class Batches:
    """`window_s`: for so long after its first run a batch takes others."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._open: dict[Hashable, _Batch] = {}  # the last one of each setup that has runs under way
        self._count = 0

    def join(self, setup: Hashable, now: float, *, contended: bool) -> int:
        """The number of a new run's batch: where setups do not contend for room, one of its own."""
        batch = self._open.get(setup)
        if batch is None or not contended or now - batch.begun_s >= self._window_s:
            self._count += 1
            batch = self._open[setup] = _Batch(self._count, now)
        return batch.number

    def end(self, setup: Hashable) -> None:
        """No run of that setup is under way any more."""
        self._open.pop(setup, None)
