"""Which partition is prepared next, and whether there is memory for it. Not locked: the board is.

The first unit goes first, however large. While it waits for memory, no new run begins, but those that have
begun go on: they hold the parameters that it may be waiting for, and let go of them only by ending. So that
they can go on, a run begins only if beside the parameters of all that have begun there is room for the
largest of their partitions. Hence, whatever waits, something runs; and the first unit's turn comes, since
what has begun ends.
"""

from __future__ import annotations

from cuzk.engine.budget import Budget
from cuzk.engine.jobs import Run, Stage, Unit
from cuzk.engine.leases import Lease, Leases
from cuzk.engine.unit_queue import UnitQueue


class Admission:
    """Takes units from `pending`.

    waiting  the first unit, while it waits for memory
    """

    def __init__(self, host: Budget, leases: Leases, pending: UnitQueue) -> None:
        self._host, self._leases, self._pending = host, leases, pending
        self._begun: list[Run] = []
        self.waiting: Unit | None = None

    def next(self, *, only_first: bool = False) -> Unit | None:
        """The next unit, or none but the first, with memory for it and its setup; None if there is none."""
        first = self._pending.first()
        self.waiting = None
        if first is None:
            return None
        if self._is_granted(first):
            return first
        self.waiting = first
        if only_first:
            return None
        begun = (unit for run in self._begun if (unit := _first_pending(run)) is not None)
        return next((unit for unit in sorted(begun, key=_order) if self._is_granted(unit)), None)

    def _is_granted(self, unit: Unit) -> bool:
        run, nbytes = unit.run, unit.run.work.partition_bytes
        lease = self._leases[run.work.setup]
        if run.begun_s is None and not self._may_begin(run):
            return False
        if nbytes + (0 if lease.reservation else lease.nbytes) > self._host.free_bytes:
            return False
        self._leases.grant(lease, self._host)
        unit.reservation = self._host.take(nbytes, "partitions")
        self._pending.discard(unit)
        return True

    def _may_begin(self, run: Run) -> bool:
        return self._leaves_room(self._leases[run.work.setup], run.work.partition_bytes)

    def _leaves_room(self, lease: Lease, partition_bytes: int) -> bool:
        """Whether beside all parameters in use and these there is room for the largest partition."""
        leases = {one.setup.key: one.nbytes for one in (*self._leases.in_use(), lease)}
        largest = max([partition_bytes, *(run.work.partition_bytes for run in self._begun)])
        return sum(leases.values()) + largest <= self._host.total_bytes

    def hold(self, lease: Lease) -> bool:
        """Take the parameters into use without a run. False while there is no room."""
        wanted = 0 if lease.reservation else lease.nbytes
        if wanted > self._host.free_bytes or not self._leaves_room(lease, 0):
            return False
        self._leases.grant(lease, self._host)
        lease.begun += 1
        return True

    def begin(self, run: Run) -> None:
        self._begun.append(run)
        self._leases[run.work.setup].begun += 1

    def end(self, run: Run) -> None:
        """A run that is under way no more, begun or not."""
        had_begun = run in self._begun
        if had_begun:
            self._begun.remove(run)
        if self.waiting is not None and self.waiting.run is run:
            self.waiting = None
        self._leases.end_run(run.work.setup, had_begun=had_begun)


def _first_pending(run: Run) -> Unit | None:
    return next((unit for unit in run.units if unit.stage is Stage.PENDING), None)


def _order(unit: Unit) -> tuple[int, int, int, int]:
    return unit.order
