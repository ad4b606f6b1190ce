"""How an engine stands at a moment: a snapshot that no thread changes any more."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.engine.board import Board
from cuzk.engine.budget import Budget
from cuzk.engine.devices import Device, Slot, SlotState, Worker
from cuzk.engine.jobs import Priority, Run, Stage, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """`for_s` seconds in its stage."""

    partition: int
    stage: Stage
    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """Work under way, the name of its setup, and how many wait for it."""

    job_id: str
    kind: str
    setup: str
    status: Status
    priority: Priority
    callers: int
    for_s: float
    partitions: tuple[PartitionStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A worker of a device; None for a job where it is idle."""

    number: int
    job_id: str | None
    kind: str | None
    partition: int | None
    for_s: float
    stalled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatus:
    """Bytes of a budget: reserved, the most so far, and what for."""

    name: str
    total: int
    used: int
    peak: int
    by_purpose: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStatus:
    """A setup that is open on a device: bytes of the device, partitions that are being proven with it now.

    idle_s  since a proof with it began or ended last, or since it was opened
    """

    name: str
    nbytes: int
    users: int
    idle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatus:
    """A device. `set_aside` says why it gets no work; None while it does.

    opened        setups that are open there, each once for all workers
    unfit         setups that could not be opened there, and why
    strikes       failures that it is to blame for since a partition succeeded at once
    wrong_proofs  ever
    """

    name: str
    ordinal: int
    set_aside: str | None
    strikes: int
    wrong_proofs: int
    opened: tuple[SetupStatus, ...]
    unfit: dict[str, str]
    workers: tuple[WorkerStatus, ...]
    memory: MemoryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """The engine.

    pending, ready    partitions that nobody has begun, and that wait for a device
    waits_for_memory  the partition that comes next and has no room: job and partition; None if there is none
    memory            of the host: for parameters and partitions, and for inputs
    ended             runs by how they ended, ever
    """

    uptime_s: float
    closing: bool
    pending: int
    ready: int
    waits_for_memory: tuple[str, int] | None
    jobs: tuple[JobStatus, ...]
    devices: tuple[DeviceStatus, ...]
    memory: tuple[MemoryStatus, ...]
    ended: dict[Status, int]

    def parameters_bytes(self, setup: str) -> int:
        """What its parameters take of the host and of all devices."""
        host = sum(memory.by_purpose.get(f"parameters {setup}", 0) for memory in self.memory)
        opened = (one for device in self.devices for one in device.opened)
        return host + sum(one.nbytes for one in opened if one.name == setup)


def snapshot(board: Board, started_s: float) -> EngineStatus:
    with board.held():
        now, waits = board.clock(), board.admission.waiting
        return EngineStatus(
            uptime_s=now - started_s,
            closing=board.is_closing,
            pending=len(board.pending),
            ready=len(board.ready),
            waits_for_memory=None if waits is None else (waits.run.id, waits.partition),
            jobs=tuple(_job(run, now) for run in board.runs.live),
            devices=tuple(_device(device, now) for device in board.devices),
            memory=(_memory(board.host), _memory(board.inputs)),
            ended=dict(board.runs.ended),
        )


def _job(run: Run, now: float) -> JobStatus:
    return JobStatus(
        job_id=run.id,
        kind=run.work.kind,
        setup=run.work.setup.name,
        status=run.status,
        priority=run.priority,
        callers=len(run.jobs),
        for_s=now - run.submitted_s,
        partitions=tuple(
            PartitionStatus(partition=unit.partition, stage=unit.stage, for_s=now - unit.since)
            for unit in run.units
        ),
    )


def _device(device: Device, now: float) -> DeviceStatus:
    return DeviceStatus(
        name=device.name,
        ordinal=device.ordinal,
        set_aside=device.set_aside,
        strikes=device.strikes,
        wrong_proofs=device.wrong,
        opened=_opened(device, now),
        unfit={str(key): str(error) for key, error in device.unfit.items()},
        workers=tuple(_worker(worker, now) for worker in device.workers),
        memory=_memory(device.memory),
    )


def _opened(device: Device, now: float) -> tuple[SetupStatus, ...]:
    by_name: dict[str, list[Slot]] = {}
    for slot in device.slots.values():
        if slot.state is SlotState.OPEN:
            by_name.setdefault(slot.setup.name, []).append(slot)
    return tuple(
        SetupStatus(
            name=name,
            nbytes=sum(slot.reservation.nbytes for slot in same),
            users=sum(slot.users for slot in same),
            idle_s=now - max(slot.since for slot in same),
        )
        for name, same in by_name.items()
    )


def _worker(worker: Worker, now: float) -> WorkerStatus:
    unit = worker.unit
    return WorkerStatus(
        number=worker.number,
        job_id=None if unit is None else unit.run.id,
        kind=None if unit is None else unit.run.work.kind,
        partition=None if unit is None else unit.partition,
        for_s=0.0 if unit is None else now - worker.since,
        stalled=worker.is_stalled,
    )


def _memory(budget: Budget) -> MemoryStatus:
    return MemoryStatus(
        name=budget.name,
        total=budget.total_bytes,
        used=budget.used_bytes,
        peak=budget.peak_bytes,
        by_purpose=dict(budget.by_purpose),
    )
