"""Jobs as callers see them, and as the board keeps them: a run, and its partitions as units.

A *run* is work under way. Whoever submits the same work under the same name joins the run that there is; each
caller has a *job*, the handle, with priority and deadline of its own. A run has the highest priority of its
jobs, and ends early when none of them wants it any more. Runs and units are guarded by the board's lock.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from cuzk.engine.budget import Reservation
from cuzk.engine.seam import Work


class Priority(enum.IntEnum):
    """Higher ones first, between partitions."""

    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


class Status(enum.Enum):
    """Of a job. The last four are final."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    ASSEMBLING = "ASSEMBLING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"


_ENDS = {Status.FAILED, Status.CANCELLED, Status.TIMEOUT}
_NEXT_STATUS = {
    Status.WAITING: {Status.RUNNING, *_ENDS},
    Status.RUNNING: {Status.ASSEMBLING, *_ENDS},
    Status.ASSEMBLING: {Status.COMPLETED, *_ENDS},
}


class Stage(enum.Enum):
    """Of a unit. A unit whose proof did not hold, or whose device failed, is READY again."""

    PENDING = "pending"
    PREPARING = "preparing"
    READY = "ready"
    PROVING = "proving"
    PROVED = "proved"
    DROPPED = "dropped"


_NEXT_STAGE = {
    Stage.PENDING: {Stage.PREPARING, Stage.DROPPED},
    Stage.PREPARING: {Stage.READY, Stage.DROPPED},
    Stage.READY: {Stage.PROVING, Stage.DROPPED},
    Stage.PROVING: {Stage.PROVED, Stage.READY, Stage.DROPPED},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Milliseconds of a job. `synth` and `gpu` are sums over partitions, and may exceed the total.

    queue  from submission until a first partition was begun
    srs    of that time, opening parameters
    gpu    on devices; `lock` waiting for them
    """

    total_ms: int
    queue_ms: int
    srs_ms: int
    synth_ms: int
    gpu_ms: int
    lock_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a job ended. When it is COMPLETED, `proof` is there and verified; else `error` says why not."""

    job_id: str
    status: Status
    partitions: tuple[int, ...]
    timings: Timings
    proof: bytes | None = None
    error: Exception | None = None

    def require_proof(self) -> bytes:
        """The proof, or the error raised."""
        if self.proof is None:
            assert self.error is not None, self.status
            raise self.error
        return self.proof


class Job:
    """A caller's handle on work under way. All methods may be called from any thread.

    id        the caller's own name for the request, else the digest of its inputs
    deadline  of the engine's clock, or None
    """

    def __init__(
        self, job_id: str, priority: Priority, deadline: float | None, cancel: Callable[[Job], bool]
    ) -> None:
        self.id, self.priority, self.deadline = job_id, priority, deadline
        self._cancel = cancel
        self._ended = threading.Event()
        self._result: JobResult | None = None  # set once, before _ended
        self._lock = threading.Lock()
        self._calls: list[Callable[[JobResult], object]] = []  # guarded by _lock

    def wait(self, timeout_s: float | None = None) -> JobResult | None:
        """How it ended, once it has; None if it has not within the timeout."""
        return self._result if self._ended.wait(timeout_s) else None

    @property
    def result(self) -> JobResult | None:
        """How it ended; None while it has not."""
        return self._result

    def then(self, call: Callable[[JobResult], object]) -> None:
        """Call once with how it ended: now if it has, else in the thread that ends it, who must not wait."""
        with self._lock:
            if self._result is None:
                self._calls.append(call)
                return
        call(self._result)

    def cancel(self) -> bool:
        """End it now, and the work at its next boundary unless others wait for it. False if it had ended."""
        return self._cancel(self)

    def settle(self, result: JobResult) -> None:
        """Answer the caller who waits. For the engine, as is `tell`."""
        with self._lock:
            assert self._result is None, self.id
            self._result = result
        self._ended.set()

    def tell(self) -> None:
        """Call those who asked to be called. After `settle`, and without any lock."""
        assert self._result is not None, self.id
        with self._lock:
            calls, self._calls = self._calls, []
        for call in calls:
            call(self._result)


@dataclass(slots=True, eq=False)
class Unit:
    """One partition of a run.

    prepared     what `Work.prepare` gave, while READY or PROVING
    wrong        the device of each proof that did not hold
    avoid        devices that are not asked again
    short        devices whose memory ran out for it, once
    since        when its stage began
    """

    run: Run
    partition: int
    stage: Stage = Stage.PENDING
    prepared: Any = None
    reservation: Reservation | None = None
    wrong: list[str] = field(default_factory=list)
    avoid: set[str] = field(default_factory=set)
    short: set[str] = field(default_factory=set)
    since: float = 0.0

    @property
    def order(self) -> tuple[int, int, int, int]:
        """Smaller ones first: by priority, then by batch, by age of the run, by partition."""
        return -self.run.priority, self.run.batch, self.run.sequence, self.partition

    def to(self, stage: Stage, now: float) -> None:
        assert stage in _NEXT_STAGE.get(self.stage, ()), (self.stage, stage)
        self.stage, self.since = stage, now

    def free(self) -> None:
        """Let go of what it holds."""
        self.prepared = None
        if self.reservation is not None:
            self.reservation.release()
            self.reservation = None


@dataclass(slots=True, eq=False)
class Spent:
    """Seconds of a run so far, by kind of work."""

    srs_s: float = 0.0
    synth_s: float = 0.0
    gpu_s: float = 0.0
    lock_s: float = 0.0


@dataclass(slots=True, eq=False)
class Run:
    """Work under way.

    key       what makes two submissions the same: the caller's name for it, the digest of the inputs
    batch     see `batches`
    jobs      those that still want it
    is_over   set once, at the end; threads at work on a unit read it without the lock
    """

    id: str
    key: Hashable
    work: Work
    sequence: int
    batch: int
    submitted_s: float
    inputs: Reservation
    priority: Priority = Priority.LOW
    status: Status = Status.WAITING
    jobs: list[Job] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    proofs: dict[int, bytes] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    begun_s: float | None = None
    is_over: bool = False

    def to(self, status: Status) -> None:
        assert status in _NEXT_STATUS.get(self.status, ()), (self.status, status)
        self.status = status

    def timings(self, now: float) -> Timings:
        begun = now if self.begun_s is None else self.begun_s
        spent = self.spent
        return Timings(
            total_ms=_ms(now - self.submitted_s),
            queue_ms=_ms(begun - self.submitted_s),
            srs_ms=_ms(spent.srs_s),
            synth_ms=_ms(spent.synth_s),
            gpu_ms=_ms(spent.gpu_s),
            lock_ms=_ms(spent.lock_s),
        )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
