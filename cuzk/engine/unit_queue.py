"""Units that wait, in the order of their priorities. Not locked: the board is."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from cuzk.engine.jobs import Unit

_Order = tuple[int, int, int, int]
_SPARE = 64  # stale entries that are never worth a rebuild


class UnitQueue:
    """A priority queue from which any unit can be taken out.

    The heap keeps stale entries, of units that left or moved, until one comes to the top or they are the
    most: each operation takes O(log n).
    """

    def __init__(self) -> None:
        self._orders: dict[Unit, _Order] = {}  # of the units that are in
        self._heap: list[tuple[_Order, int, Unit]] = []
        self._ticks = itertools.count()

    def __len__(self) -> int:
        return len(self._orders)

    def push(self, unit: Unit) -> None:
        """Put it in; if it is in already, where its order belongs now."""
        self._orders[unit] = unit.order
        heapq.heappush(self._heap, (unit.order, next(self._ticks), unit))
        if len(self._heap) > 2 * len(self._orders) + _SPARE:
            self._heap = [(order, next(self._ticks), unit) for unit, order in self._orders.items()]
            heapq.heapify(self._heap)

    def discard(self, unit: Unit) -> None:
        self._orders.pop(unit, None)
        if not self._orders:
            self._heap.clear()

    def first(self) -> Unit | None:
        """The first, still in the queue."""
        while self._heap:
            order, _, unit = self._heap[0]
            if self._orders.get(unit) == order:
                return unit
            heapq.heappop(self._heap)
        return None

    def __iter__(self) -> Iterator[Unit]:
        """In order; O(n log n), for queues that are kept short."""
        return iter(sorted(self._orders, key=self._orders.__getitem__))
