"""All that the engine knows at a moment, and how it changes: the state behind `reception` and `dispatcher`.

Whoever calls a method, or touches what is in here, is inside `held`. Nothing in here waits, calls a prover or
a work, or does I/O; it speaks through the announcer, which only fills queues, and leaves to `held` what the
timeline must know.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cuzk.engine.admission import Admission
from cuzk.engine.batches import Batches
from cuzk.engine.budget import Budget
from cuzk.engine.devices import STRIKES, Device, Slot, SlotState, Worker
from cuzk.engine.events import Announcer, EngineEvent, What
from cuzk.engine.jobs import Job, JobResult, Priority, Run, Stage, Status, Unit
from cuzk.engine.leases import Leases
from cuzk.engine.placing import Placing
from cuzk.engine.recorder import Recorder
from cuzk.engine.runs import Runs
from cuzk.engine.seam import Setup
from cuzk.engine.settings import Settings
from cuzk.engine.unit_queue import UnitQueue
from cuzk.errors import CuzkError, DeviceError

_RECORDED = {Status.COMPLETED: "ASSEMBLED", Status.CANCELLED: "CANCELLED"}


def bare(error: Exception) -> Exception:
    """The error without the frames it came through: what they hold must not live as long as a result."""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            todo += [one.__cause__, one.__context__]
    return error


def described(error: Exception) -> str:
    """What is known of it: of a mistake of ours, also where it happened."""
    if isinstance(error, CuzkError):
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()


class Board:
    """Runs, units, devices, memory.

    host      memory of the host for parameters and partitions
    inputs    memory of the host for the inputs of jobs; apart, so that waiting jobs cannot stop running ones
    pending   units that nobody has begun; only the first is ever taken
    preparing units that a thread prepares
    ready     units that are prepared and wait for a device
    finished  runs whose partitions are all proven
    preloads  callers who wait for memory for a setup
    changed   a condition for each kind of thread: any change that may concern it notifies it
    setups    the same for callers who wait for setups to be opened or closed
    alarm     the same for the watch: a deadline may be nearer now, or the engine is over
    """

    def __init__(
        self,
        settings: Settings,
        memory: tuple[Budget, Budget],
        devices: Sequence[Device],
        *,
        clock: Callable[[], float],
        announcer: Announcer,
        recorder: Recorder,
    ) -> None:
        self.settings, self.devices = settings, tuple(devices)
        self.host, self.inputs = memory
        self.clock, self._announcer, self._recorder = clock, announcer, recorder
        self._lock = threading.Lock()
        self.changed = {kind: threading.Condition(self._lock) for kind in ("prepare", "prove", "assemble")}
        self.alarm = threading.Condition(self._lock)
        self.setups = threading.Condition(self._lock)
        self.runs = Runs(settings.results_kept)
        self.leases = Leases()
        self.batches = Batches(settings.setup_batch_s)
        self.pending, self.ready = UnitQueue(), UnitQueue()
        self.admission = Admission(self.host, self.leases, self.pending)
        self.finished: deque[Run] = deque()
        self.shares_slots = settings.gpu_lock != "none"
        self.preparing: set[Unit] = set()
        self.placing = Placing(self.devices, self.ready, self.preparing, self.leases, settings.gpu_lock)
        self.preloads = 0
        self.is_closing = False
        self._unrecorded: list[tuple[Run, Status]] = []
        self._untold: list[Job] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """Everything in here belongs to the thread inside. What it ended is told to others when it leaves."""
        try:
            with self._lock:
                try:
                    yield
                finally:
                    ended, self._unrecorded = self._unrecorded, []
                    settled, self._untold = self._untold, []
        finally:
            for run, status in ended:
                self._recorder.record(_RECORDED.get(status, "FAILED"), run.id)
            for job in settled:
                job.tell()

    def say(
        self,
        what: What,
        *,
        run: Run | None = None,
        unit: Unit | None = None,
        device: Device | None = None,
        text: str = "",
    ) -> None:
        about = unit.run if unit is not None else run
        self._announcer.say(
            EngineEvent(
                what=what,
                at_s=self.clock(),
                job_id="" if about is None else about.id,
                partition=None if unit is None else unit.partition,
                device="" if device is None else device.name,
                text=text,
            )
        )

    def notify(self) -> None:
        """Something changed that any thread may have waited for."""
        for condition in (*self.changed.values(), self.setups):
            condition.notify_all()
        if self.is_over:
            self.alarm.notify_all()

    @property
    def is_over(self) -> bool:
        """Closing, and nothing left to be done."""
        return self.is_closing and not len(self.runs)

    # ---- runs ----

    def begin(self, run: Run) -> None:
        self.runs.begin(run)
        for unit in run.units:
            unit.since = run.submitted_s
            self.pending.push(unit)
        self.say(What.SUBMITTED, run=run)
        self.notify()

    def set_priority(self, run: Run) -> None:
        """That of its most urgent job; its waiting units move to where they belong."""
        priority = max((job.priority for job in run.jobs), default=Priority.LOW)
        if priority != run.priority:
            run.priority = priority
            for unit in run.units:
                if unit.stage is Stage.PENDING:
                    self.pending.push(unit)
                elif unit.stage is Stage.READY:
                    self.ready.push(unit)
                    self.call_back_for(unit)
            self.wake_devices()  # the order there is another one
            self.notify()

    def end(
        self, run: Run, status: Status, *, proof: bytes | None = None, error: Exception | None = None
    ) -> None:
        """Answer everyone, and free at once what no thread is using."""
        text = status.value if error is None else f"{status.value}: {described(error)}"
        error = None if error is None else bare(error)
        run.to(status)
        run.is_over = True
        result = self.result(run, status, run.id, proof=proof, error=error)
        self.runs.end(run, result)
        self._unrecorded.append((run, status))
        for unit in run.units:
            self._drop(unit)
        run.inputs.release()
        self.admission.end(run)
        if not self.leases.has_runs(run.work.setup):
            self.batches.end(run.work.setup.key)
        for job in run.jobs:
            self._settle(job, result)
        self.say(What.ENDED, run=run, text=text)
        run.jobs.clear()
        run.proofs.clear()
        run.units.clear()  # which know their run: in a cycle the inputs would wait for the garbage collector
        self.wake_devices()
        self.notify()

    def result(
        self,
        run: Run,
        status: Status,
        job_id: str,
        *,
        proof: bytes | None = None,
        error: Exception | None = None,
    ) -> JobResult:
        return JobResult(
            job_id=job_id,
            status=status,
            partitions=run.work.partitions,
            timings=run.timings(self.clock()),
            proof=proof,
            error=error,
        )

    def _drop(self, unit: Unit) -> None:
        """One of a run that has ended. A unit that a thread is at is dropped when the thread reports."""
        self.pending.discard(unit)
        self.ready.discard(unit)
        if unit.stage in (Stage.PENDING, Stage.READY):
            unit.to(Stage.DROPPED, self.clock())
            unit.free()

    def is_dropped(self, unit: Unit) -> bool:
        """Whether a unit that a thread reports back belongs to a run that has ended; then it is let go."""
        if not unit.run.is_over:
            return False
        unit.to(Stage.DROPPED, self.clock())
        unit.free()
        self.notify()
        return True

    def withdraw(self, run: Run, job: Job, status: Status, error: Exception) -> None:
        """One caller gives up or has waited long enough; the last one ends the run."""
        if run.jobs == [job]:
            self.end(run, status, error=error)
            return
        run.jobs.remove(job)
        self._settle(job, self.result(run, status, run.id, error=error))
        self.set_priority(run)

    def _settle(self, job: Job, result: JobResult) -> None:
        job.settle(result)
        self._untold.append(job)

    # ---- devices ----

    def make_ready(self, unit: Unit) -> None:
        """From now on it waits for a device."""
        unit.to(Stage.READY, self.clock())
        self.ready.push(unit)
        self.call_back_for(unit)
        self.notify()

    def call_back_for(self, unit: Unit) -> None:
        """Where a ready unit finds no free worker, the least urgent one that does not compute gets free."""
        workers = [
            worker for device in self.takers(unit) if not device.is_stalled for worker in device.workers
        ]
        if any(worker.unit is None and not worker.is_away for worker in workers):
            return
        waiting = [
            worker
            for worker in workers
            if worker.unit is not None and not worker.computes and not worker.is_called_back
        ]
        last = max(waiting, key=_order_of, default=None)
        if last is not None and _order_of(last)[0] > unit.order[0]:
            last.is_called_back = True
            last.device.lock.wake()

    def stalled(self, worker: Worker) -> None:
        """It has been at its unit for too long: what waits for its device goes back, its own elsewhere."""
        unit, device = worker.unit, worker.device
        assert unit is not None, worker.number
        worker.is_stalled = True
        text = f"worker {worker.number}, for {self.clock() - worker.since:.0f} s"
        self.say(What.STALLED, unit=unit, device=device, text=text)
        device.lock.wake()
        self.notify()  # what was left to it is for others
        if unit.run.is_over or all(other.is_stalled for other in self.takers(unit)):
            return
        worker.is_lost = True
        unit.avoid.add(device.name)
        self.say(What.GOES_ELSEWHERE, unit=unit, device=device)
        self.make_ready(unit)

    def wake_devices(self) -> None:
        """Whoever waits for a device may have waited long enough."""
        for device in self.devices:
            device.lock.wake()

    def strike(self, device: Device, why: str, *, fatal: bool = False) -> None:
        """A failure that the device is to blame for; the third one in a row is its last."""
        device.strikes += 1
        if device.set_aside is None and (fatal or device.strikes >= STRIKES):
            device.set_aside = why if fatal else f"{device.strikes} failures in a row, the last: {why}"
            self.say(What.SET_ASIDE, device=device, text=device.set_aside)
            self.fail_stranded()
        self.notify()

    def working(self) -> list[Worker]:
        """Workers that are at a unit, but not those that wait until a twin has computed, nor those who have
        let somebody in between.
        """
        return [
            worker
            for device in self.devices
            for worker in device.workers
            if worker.unit is not None
            and not worker.is_paused
            and (worker.computes or not any(twin.computes for twin in device.workers))
        ]

    def takers(self, unit: Unit) -> list[Device]:
        """Devices that may be asked to prove it."""
        return [device for device in self.devices if device.can_take(unit)]

    def require_device(self, setup: Setup) -> None:
        """Raises the reason when no device can be asked to prove partitions of a setup."""
        if any(device.serves(setup) for device in self.devices):
            return
        for device in self.devices:
            if device.set_aside is None:
                raise device.unfit[setup.key]
        raise DeviceError(
            "no device is left to prove on",
            where="; ".join(f"{device.name}: {device.set_aside}" for device in self.devices),
            next="see to the devices (`cuzk doctor`), then start again",
        )

    def fail_stranded(self) -> None:
        """End the runs that no device can go on with."""
        for run in self.runs.live:
            if run.status is not Status.ASSEMBLING:
                try:
                    self.require_device(run.work.setup)
                except Exception as error:
                    self.end(run, Status.FAILED, error=error)
        for unit in self.ready:
            if not self.takers(unit) and not unit.run.is_over:
                self.end(unit.run, Status.FAILED, error=self.nobody_left(unit))

    def nobody_left(self, unit: Unit) -> DeviceError:
        """Why a unit that was tried on some devices cannot be tried on any other."""
        return DeviceError(
            "every device that could be asked has failed",
            where=f"{unit.run.id}, partition {unit.partition}, on {', '.join(sorted(unit.avoid))}",
            next="see to the devices: `cuzk doctor`",
        )

    def is_opened(self, setup: Setup) -> bool:
        """On every device that can serve it, wherever workers need a slot; and there is such a device."""
        serving = [device for device in self.devices if device.serves(setup)]
        return bool(serving) and all(
            (slot := device.slots.get(self.placing.slot_key(worker, setup))) is not None
            and slot.state is SlotState.OPEN
            and not slot.spoilt
            for device in serving
            for worker in device.workers
        )

    def holds(self, slot: Slot) -> bool:
        """Whether the slot is not released yet."""
        return slot.device.slots.get(slot.key) is slot

    def release(self, slot: Slot) -> None:
        """A slot that holds nothing any more."""
        del slot.device.slots[slot.key]
        slot.reservation.release()
        self.leases.end_slot(slot.setup)
        self.notify()


def _order_of(worker: Worker) -> tuple[int, int, int, int]:
    assert worker.unit is not None, worker.number
    return worker.unit.order
