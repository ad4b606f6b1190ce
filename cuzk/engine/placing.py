"""What a worker does next, decided from queue, slots and memory. Not locked: the board is.

0 nothing   while the device stands still
1 close     what is spoilt, or idle on a device that is set aside
2 prove     the first unit whose setup is open here, but leave to a device that has time for it sooner what a
            worker there waits for; one whose setup a twin is opening is passed over
3 open      the setup of the first unit that has none here; idle setups make room, unless other devices have
            it and workers enough; but none that a unit which is being prepared, and goes first, will need at
            once; if that is not enough the worker waits rather than let later units pass for ever
4 open      what units still to come will need, while there is nothing else to do
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.engine.devices import Device, Slot, SlotState, Worker
from cuzk.engine.jobs import Unit
from cuzk.engine.leases import Leases
from cuzk.engine.seam import Prover, Setup, Work
from cuzk.engine.settings import GpuLock
from cuzk.engine.unit_queue import UnitQueue


@dataclass(frozen=True, slots=True)
class Prepare:
    """Prepare a unit."""

    unit: Unit
    work: Work


@dataclass(frozen=True, slots=True)
class Prove:
    """Prove a unit with an open setup."""

    unit: Unit
    work: Work
    prepared: Any
    slot: Slot
    prover: Prover


@dataclass(frozen=True, slots=True)
class Open:
    """Open a setup: its slot has the memory."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Close:
    """Close what a slot holds."""

    slot: Slot
    prover: Prover


def closing(slot: Slot) -> Close:
    """The errand, begun."""
    assert slot.is_idle and slot.prover is not None, slot.key
    slot.state = SlotState.CLOSING
    return Close(slot, slot.prover)


class Placing:
    """The choices. `mode` says whether the workers of a device share what is open there, and how."""

    def __init__(
        self,
        devices: Sequence[Device],
        ready: UnitQueue,
        preparing: Collection[Unit],
        leases: Leases,
        mode: GpuLock,
    ) -> None:
        self._devices, self._ready, self._preparing = devices, ready, preparing
        self._leases, self._shared, self._lets_in = leases, mode != "none", mode == "narrow"

    def slot_key(self, worker: Worker, setup: Setup) -> Hashable:
        return setup.key if self._shared else (setup.key, worker.number)

    def choose(self, worker: Worker) -> Unit | Open | Close | None:
        """A unit to prove, whose setup is open for the worker; an errand, begun; or None: wait."""
        device = worker.device
        if device.is_stalled:
            return None
        if (slot := device.to_close()) is not None:
            return closing(slot)
        if device.set_aside is not None:
            return None
        share = self._share_of(worker)
        for unit in self._ready:
            if not device.can_take(unit):
                continue
            setup = unit.run.work.setup
            found = self._slot(worker, unit)
            if found is None:
                opened = self._open_if_room(worker, setup)
                if opened is not None:
                    return opened
                if not self._others_do(device, unit) and not self._twin_does(worker, unit):
                    return self._make_room(device, unit)
            elif unit is share:
                return unit
        return self._open_ahead(worker)

    def _slot(self, worker: Worker, unit: Unit) -> Slot | None:
        return worker.device.slots.get(self.slot_key(worker, unit.run.work.setup))

    def _share_of(self, asking: Worker) -> Unit | None:
        """The first unit that falls to this worker's device, if all that is ready went at once to where a
        worker waits and there is time for it soonest.
        """
        free = {
            device: [asking] if device is asking.device else [one for one in device.workers if one.waits]
            for device in sorted(self._devices, key=lambda device: device is not asking.device)
            if device.set_aside is None and not device.is_stalled and device.to_close() is None
        }
        taken = {device: device.under_way() for device in free}
        for unit in self._ready:
            takers: dict[Device, Worker] = {}
            for device, workers in free.items():
                if not device.can_take(unit):
                    continue
                if device is not asking.device:  # who has it not opens it first, or waits until that can be
                    workers = free[device] = [one for one in workers if self._slot(one, unit) is not None]
                able = next((one for one in workers if self._is_open(one, unit)), None)
                if able is not None:
                    takers[device] = able
            if takers:
                # Of two where it waits as long, the one that asks.
                best = min(takers, key=lambda device: self._waiting(unit, taken[device]))
                if best is asking.device:
                    return unit
                free[best].remove(takers[best])
                taken[best].append((unit, math.inf))
        return None

    def _waiting(self, unit: Unit, taken: list[tuple[Unit, float]]) -> tuple[int, int, float]:
        """How long it waits behind what a device has, to be compared: behind how many units to their end,
        beside how many at all, and since when they are there.
        """
        to_the_end = [one for one, _ in taken if not (self._lets_in and self._comes_between(unit, one))]
        return len(to_the_end), len(taken), min((since for _, since in taken), default=0.0)

    @staticmethod
    def _comes_between(unit: Unit, other: Unit) -> bool:
        """Whether it comes in between two kernels of the other one: not where both use the same prover."""
        return unit.run.priority > other.run.priority and unit.run.work.setup.key != other.run.work.setup.key

    def _is_open(self, worker: Worker, unit: Unit) -> bool:
        slot = self._slot(worker, unit)
        return slot is not None and slot.state is SlotState.OPEN and not slot.spoilt

    def _make_room(self, device: Device, unit: Unit) -> Close | None:
        """For its setup; None while there is nothing to close, or while that is done: it may be enough."""
        if device.is_closing:
            return None
        before = [one.run.work.setup.key for one in self._preparing if one.order < unit.order]
        victim = device.eviction(spared=before)
        return None if victim is None else closing(victim)

    def _twin_does(self, worker: Worker, unit: Unit) -> bool:
        """Without a lock: whether a twin waits that has the setup."""
        return any(
            twin.waits and self._is_open(twin, unit) for twin in worker.device.workers if twin is not worker
        )

    def _others_do(self, device: Device, unit: Unit) -> bool:
        """Whether the unit is among the first that the workers of others, where its setup is, will take."""
        key = unit.run.work.setup.key
        workers = sum(
            len(other.workers)
            for other in self._devices
            if other is not device and other.can_take(unit) and not other.is_stalled and other.has(key)
        )
        first = itertools.islice((one for one in self._ready if one.run.work.setup.key == key), workers)
        return any(one is unit for one in first)

    def _open_if_room(self, worker: Worker, setup: Setup) -> Open | None:
        device, key = worker.device, self.slot_key(worker, setup)
        needs = self._leases[setup].needs[device.name]
        reservation = device.memory.take(needs.device, f"parameters {setup.name}")
        if reservation is None:
            return None
        slot = Slot(setup, device, key, reservation)
        device.slots[key] = slot
        self._leases[setup].slots += 1
        return Open(slot)

    def _open_ahead(self, worker: Worker) -> Open | Close | None:
        """The first setup of runs that have begun that is missing here; only idle ones make room."""
        device, in_use = worker.device, self._leases.in_use()
        for lease in in_use:
            if self.slot_key(worker, lease.setup) in device.slots or not device.serves(lease.setup):
                continue
            opened = self._open_if_room(worker, lease.setup)
            if opened is not None or device.is_closing:
                return opened
            victim = device.eviction(spared=[lease.setup.key for lease in in_use])
            return None if victim is None else closing(victim)
        return None
