"""How fast a card is beside the one on which costs were measured: an estimate, to choose plans by.

Throughput goes with multiprocessors times clock, latency with the clock alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Speed(Protocol):
    """What of a card decides; `device.cuda_card.Card` has it."""

    def __hash__(self) -> int: ...

    @property
    def multiprocessors(self) -> int: ...

    @property
    def clock_mhz(self) -> int: ...


@dataclass(frozen=True, slots=True)
class MeasuredSpeed:
    multiprocessors: int
    clock_mhz: int


MEASURED_ON = MeasuredSpeed(multiprocessors=132, clock_mhz=1980)
"""An H200: bench/results/h200."""


def pace(speed: Speed) -> float:
    """Clock, in that of the measured card."""
    return speed.clock_mhz / MEASURED_ON.clock_mhz


def throughput(speed: Speed) -> float:
    """In measured cards."""
    return pace(speed) * speed.multiprocessors / MEASURED_ON.multiprocessors
