"""Host memory of setups: reserved once for all devices, before the first partition of a setup is prepared.

Were it reserved when a device opens the setup, prepared partitions could fill the memory that this needs, and
both would wait for ever. Not locked: the board is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from cuzk.engine.budget import Budget, Reservation
from cuzk.engine.seam import Needs, Setup


@dataclass(slots=True, eq=False)
class Lease:
    """Of one setup.

    needs        by device
    nbytes       of the host, for all devices
    runs, begun  that are under way with it, and those of them that have begun
    slots        where it is opening, open or closing
    """

    setup: Setup
    needs: Mapping[str, Needs]
    nbytes: int
    reservation: Reservation | None = None
    runs: int = 0
    begun: int = 0
    slots: int = 0


class Leases:
    """Of all setups that a run or a device holds on to."""

    def __init__(self) -> None:
        self._leases: dict[Hashable, Lease] = {}

    def __getitem__(self, setup: Setup) -> Lease:
        return self._leases[setup.key]

    def has_runs(self, setup: Setup) -> bool:
        return setup.key in self._leases and self[setup].runs > 0

    def with_runs(self) -> list[Lease]:
        """Of the setups of all runs under way."""
        return [lease for lease in self._leases.values() if lease.runs]

    def in_use(self) -> list[Lease]:
        """Of the setups of runs that have begun."""
        return [lease for lease in self._leases.values() if lease.begun]

    def idle(self) -> list[Lease]:
        """Of the setups that are open only because more runs may come."""
        return [lease for lease in self._leases.values() if lease.reservation and not lease.begun]

    def add_run(self, setup: Setup, needs: Mapping[str, Needs], nbytes: int) -> None:
        lease = self._leases.setdefault(setup.key, Lease(setup, needs, nbytes))
        lease.runs += 1

    def end_run(self, setup: Setup, *, had_begun: bool) -> None:
        lease = self[setup]
        lease.runs -= 1
        lease.begun -= had_begun
        self._let_go(lease)

    def grant(self, lease: Lease, host: Budget) -> None:
        """Reserve what it takes, unless that is done. There must be room."""
        if lease.reservation is None:
            lease.reservation = host.take(lease.nbytes, f"parameters {lease.setup.name}")
            assert lease.reservation is not None, lease.setup.name

    def end_slot(self, setup: Setup) -> None:
        lease = self[setup]
        lease.slots -= 1
        self._let_go(lease)

    def _let_go(self, lease: Lease) -> None:
        """Of the memory, and of the lease, once nothing needs them."""
        if lease.slots or lease.begun:
            return
        if lease.reservation is not None:
            lease.reservation.release()
            lease.reservation = None
        if not lease.runs:
            del self._leases[lease.setup.key]
