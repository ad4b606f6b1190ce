"""A budget of memory: what is reserved is reserved before it is used. Not locked: the board is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cuzk.errors import ResourceError
from cuzk.units import format_size


@dataclass(slots=True, eq=False)
class Reservation:
    """Bytes of a budget, until `release`."""

    budget: Budget
    nbytes: int
    purpose: str
    _is_held: bool = True

    def release(self) -> None:
        assert self._is_held, self.purpose
        self._is_held = False
        self.budget.add(-self.nbytes, self.purpose)


class Budget:
    """The memory of the host or of one device.

    used_bytes, peak_bytes  reserved now, and the most so far
    by_purpose              what is reserved, by what for
    """

    def __init__(self, name: str, total_bytes: int) -> None:
        self.name, self.total_bytes = name, total_bytes
        self.used_bytes = self.peak_bytes = 0
        self.by_purpose: dict[str, int] = {}

    def take(self, nbytes: int, purpose: str) -> Reservation | None:
        """A reservation, or None while there is no room for it."""
        assert nbytes >= 0, nbytes
        if nbytes > self.free_bytes:
            return None
        self.add(nbytes, purpose)
        return Reservation(self, nbytes, purpose)

    def add(self, nbytes: int, purpose: str) -> None:
        """Count bytes in; negative ones out."""
        self.used_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        left = self.by_purpose.pop(purpose, 0) + nbytes
        if left:
            self.by_purpose[purpose] = left

    @property
    def free_bytes(self) -> int:
        return self.total_bytes - self.used_bytes

    def require(self, plan: Mapping[str, int]) -> None:
        """Raises ResourceError, with the plan, for what can never fit."""
        total = sum(plan.values())
        if total > self.total_bytes:
            parts = ", ".join(f"{purpose} {format_size(nbytes)}" for purpose, nbytes in plan.items())
            raise ResourceError(
                f"this takes {format_size(total)} of memory, the budget is {format_size(self.total_bytes)}",
                where=f"{self.name}, the plan: {parts}",
                next="raise the budget, or use a machine or a card with more memory",
            )
