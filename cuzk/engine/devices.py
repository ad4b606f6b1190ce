"""Devices as the board keeps them: what is open on them, who works there, whether they can be trusted.

Everything here but `Device.lock` is guarded by the board's lock.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from cuzk.engine.budget import Budget, Reservation
from cuzk.engine.device_lock import DeviceLock
from cuzk.engine.jobs import Unit
from cuzk.engine.seam import Prover, Setup

#: A device that is to blame for so many failures, no partition having succeeded at once in between, is set
#: aside.
STRIKES = 3


class SlotState(enum.Enum):
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"


@dataclass(slots=True, eq=False)
class Slot:
    """A setup's place on a device.

    users     units that are being proven with it
    spoilt    a proof failed with an exception: it takes no more units, and is closed when the last is done
    last_use  larger is later
    since     when a proof there began or ended last, or when it was opened
    """

    setup: Setup
    device: Device
    key: Hashable
    reservation: Reservation
    state: SlotState = SlotState.OPENING
    prover: Prover | None = None
    users: int = 0
    spoilt: bool = False
    last_use: int = 0
    since: float = 0.0

    @property
    def is_idle(self) -> bool:
        return self.state is SlotState.OPEN and not self.users


@dataclass(slots=True, eq=False)
class Worker:
    """A GPU worker's place: number over all devices, and what it is at.

    since           when it took the unit, or if that is later, the device
    waits           it has asked for something to do, and there was nothing
    is_away         it opens or closes something
    computes        it has, or had, the device for the unit
    is_paused       it has let somebody in between, and not got the device back
    is_stalled      it has been at the unit for too long
    is_lost         somebody else has got its unit: what it reports is forgotten; its thread reads it unlocked
    is_called_back  something urgent needs it more than its unit, unless it computes; read unlocked too
    """

    number: int
    device: Device
    unit: Unit | None = None
    since: float = 0.0
    waits: bool = False
    is_away: bool = False
    computes: bool = False
    is_paused: bool = False
    is_stalled: bool = False
    is_lost: bool = False
    is_called_back: bool = False


@dataclass(slots=True, eq=False)
class Device:
    """One device.

    lock       held by one worker at a time, as the settings say, around its work on the device
    slots      by key of the setup; without a lock, of setup and worker
    unfit      setups that could not be opened here, by key, and why
    strikes    failures that it is to blame for, since a partition succeeded at once
    wrong      proofs that did not hold, ever
    set_aside  why it gets no more work; None while it does
    """

    name: str
    ordinal: int
    memory: Budget
    lock: DeviceLock = field(default_factory=DeviceLock)
    workers: list[Worker] = field(default_factory=list)
    slots: dict[Hashable, Slot] = field(default_factory=dict)
    unfit: dict[Hashable, Exception] = field(default_factory=dict)
    strikes: int = 0
    wrong: int = 0
    set_aside: str | None = None

    @property
    def is_stalled(self) -> bool:
        """Whether a kernel does not end: until it does, nothing is begun here. May be read unlocked."""
        return any(worker.is_stalled for worker in self.workers)

    @property
    def is_closing(self) -> bool:
        """Whether something is being closed, whose memory is not free yet."""
        return any(slot.state is SlotState.CLOSING for slot in self.slots.values())

    def under_way(self) -> list[tuple[Unit, float]]:
        """The units that workers are at here, and since when."""
        return [(worker.unit, worker.unit.since) for worker in self.workers if worker.unit is not None]

    def serves(self, setup: Setup) -> bool:
        """Whether it may be given partitions of that setup."""
        return self.set_aside is None and setup.key not in self.unfit

    def can_take(self, unit: Unit) -> bool:
        return self.serves(unit.run.work.setup) and self.name not in unit.avoid

    def has(self, setup: Hashable) -> bool:
        """Whether the setup of that key is open here, or about to be."""
        return any(
            slot.setup.key == setup and slot.state is not SlotState.CLOSING and not slot.spoilt
            for slot in self.slots.values()
        )

    def to_close(self) -> Slot | None:
        """An idle slot that must go: spoilt, or any of a device that is set aside."""
        return next(
            (slot for slot in self.slots.values() if slot.is_idle and (slot.spoilt or self.set_aside)), None
        )

    def eviction(self, spared: Iterable[Hashable] = ()) -> Slot | None:
        """The idle slot that was used longest ago, but none of a spared setup."""
        idle = [slot for slot in self.slots.values() if slot.is_idle and slot.setup.key not in spared]
        return min(idle, key=lambda slot: slot.last_use, default=None)
