"""Who goes next where few can at once: the smallest, and now and then the one that has waited longest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

#: Every so many turns the oldest comes first: so nobody is passed for ever, however many small ones come, and
#: a small one waits for one more large one at most.
_OLDEST_EVERY = 4

#: Smaller ones first; equal ones as they came.
Rank = tuple[int, bool]


@dataclass(slots=True, eq=False)
class _Waiting:
    rank: Rank
    granted: asyncio.Future[None]


class Turns:
    """At most so many at once, between `take` and `end`. For the event loop's thread only."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[_Waiting] = []  # the oldest first
        self._granted = 0  # ever

    async def take(self, rank: Rank) -> None:
        """Wait for one's turn. Who gives up waiting needs no `end`."""
        one = _Waiting(rank, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        self._grant()
        try:
            await one.granted
        except asyncio.CancelledError:
            if one in self._waiting:
                self._waiting.remove(one)
            else:  # it was granted in the same moment
                self.end()
            raise

    def end(self) -> None:
        self._free += 1
        self._grant()

    def _grant(self) -> None:
        while self._free and (live := [one for one in self._waiting if not one.granted.cancelled()]):
            self._granted += 1
            one = live[0] if self._granted % _OLDEST_EVERY == 0 else min(live, key=lambda one: one.rank)
            self._waiting.remove(one)
            self._free -= 1
            one.granted.set_result(None)
