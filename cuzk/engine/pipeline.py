"""The engine put together: its state, its threads, and what callers do with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from cuzk.engine.board import Board
from cuzk.engine.budget import Budget
from cuzk.engine.devices import Device, Worker
from cuzk.engine.dispatcher import Dispatcher
from cuzk.engine.events import Announcer, Subscription
from cuzk.engine.jobs import Job, Priority
from cuzk.engine.reception import Reception
from cuzk.engine.recorder import NoRecorder, Recorder
from cuzk.engine.seam import Setup, Work
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus, snapshot
from cuzk.engine.switching import ShortTurns
from cuzk.engine.threads import Assembler, EngineThread, Preparer, Watch
from cuzk.engine.worker import DeviceWorker

_NO_SETTINGS = Settings()
#: One part in so many of the host's memory is kept for the inputs of jobs.
INPUTS_SHARE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlace:
    """A device to compute on, as its owner names it, and the bytes of its memory that may be used."""

    name: str
    memory_bytes: int


class Pipeline:
    """Jobs in, verified proofs out, by any number of threads on any number of devices.

    devices     in the order of their ordinals; at least one
    host_bytes  what all jobs and setups together may take of the host's memory
    recorder    hears what is done to partitions, as it happens

    `with` closes it: after a normal end it drains, after an exception it cancels. Calls come from any thread.
    """

    def __init__(
        self,
        devices: Sequence[DevicePlace],
        *,
        host_bytes: int,
        settings: Settings = _NO_SETTINGS,
        recorder: Recorder | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        assert devices, "no device"
        self._announcer = Announcer()
        self._started_s = clock()
        self._board = Board(
            settings,
            host_budgets(host_bytes),
            [_device(place, k, settings) for k, place in enumerate(devices)],
            clock=clock,
            announcer=self._announcer,
            recorder=recorder or NoRecorder(),
        )
        self._reception = Reception(self._board)
        self._threads = _threads(self._board, self._reception, recorder or NoRecorder())
        self._short_turns = ShortTurns()
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self._reception.close(drain=False)  # whose threads have begun
            self._short_turns.close()
            raise

    def submit(
        self,
        work: Work,
        *,
        request_id: str = "",
        priority: Priority = Priority.NORMAL,
        deadline_s: float | None = None,
    ) -> Job:
        """A job of that work, which has begun to wait for its turn.

        request_id  the caller's name for it; the same work under the same name is done once
        deadline_s  seconds from now after which the caller does not want it any more
        Raises ResourceError, with the plan, for what can never fit, BusyError while too many jobs wait,
        EngineError while closing, DeviceError when no device is left.
        """
        return self._reception.submit(work, request_id=request_id, priority=priority, deadline_s=deadline_s)

    def require_open(self) -> None:
        """Raises EngineError if `submit` would refuse any work: for those who read it first."""
        self._reception.require_open()

    def preload(self, setup: Setup, *, timeout_s: float | None = None) -> bool:
        """Open a setup on every device that can serve it, before there is work. False if it was open.

        It stays open until its room is needed. Raises as `reception.Reception.preload`.
        """
        return self._reception.preload(setup, timeout_s)

    def evict(self, name: str, *, timeout_s: float | None = None) -> bool:
        """Close the setups of that name, unless jobs use them. False if nothing was closed."""
        return self._reception.evict(name, timeout_s)

    def find(self, job_id: str) -> Job | None:
        """One more handle on a job that is under way or whose result is kept."""
        return self._reception.find(job_id)

    def urge(self, job: Job, priority: Priority) -> None:
        """Give a job a higher priority, if it is under way."""
        self._reception.urge(job, priority)

    def cancel(self, job_id: str) -> bool:
        """End a job for everyone who waits for it; False if it is not under way."""
        return self._reception.cancel_all(job_id)

    def status(self) -> EngineStatus:
        return snapshot(self._board, self._started_s)

    def events(self, *, limit: int = 1000) -> Subscription:
        """What happens from now on, of which at most `limit` events wait to be taken."""
        return self._announcer.subscribe(limit)

    def close(self, *, drain: bool = True, timeout_s: float | None = None) -> bool:
        """End: no more work is taken; what is under way is finished, or without `drain` cancelled.

        Threads end in this order: preparers when nothing is left to prepare, then, once every job is
        answered, assembler, watch and workers, who close what is open on their devices. False if some were
        still at work when the timeout came: then a later call can go on.
        """
        self._reception.close(drain=drain)
        end = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            return False
        self._announcer.close()
        self._short_turns.close()
        return True

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close(drain=error is None)


def host_budgets(host_bytes: int) -> tuple[Budget, Budget]:
    """For parameters and partitions, and for inputs: of a 32 GiB sector 70 MB, of which 45 partitions."""
    inputs = host_bytes // INPUTS_SHARE
    return Budget("host memory", host_bytes - inputs), Budget("host memory for inputs", inputs)


def _device(place: DevicePlace, ordinal: int, settings: Settings) -> Device:
    device = Device(place.name, ordinal, Budget(place.name, place.memory_bytes))
    first = ordinal * settings.gpu_workers_per_device
    device.workers = [Worker(first + k, device) for k in range(settings.gpu_workers_per_device)]
    return device


def _threads(board: Board, reception: Reception, recorder: Recorder) -> list[EngineThread]:
    dispatcher, settings = Dispatcher(board), board.settings
    preparers = [
        Preparer(k, dispatcher, recorder, clock=board.clock, abort=reception.abort)
        for k in range(settings.partition_workers)
    ]
    workers = [
        DeviceWorker(place, settings.gpu_lock, dispatcher, recorder, clock=board.clock, abort=reception.abort)
        for device in board.devices
        for place in device.workers
    ]
    assembler = Assembler(dispatcher, abort=reception.abort)
    return [*preparers, *workers, assembler, Watch(board, reception, abort=reception.abort)]
