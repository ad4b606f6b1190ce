"""Parameters opened and given back on request: calls of the prover that may take hours.

The engine waits until there is room, for jobs of other kinds perhaps, and cannot be told that nobody wants it
any more. So these calls have threads of their own, not those of the event loop, which everything else needs;
and who asks for what is under way joins, so that there are never more of them than circuits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from cuzk.server.seam import Prover

_THREADS = 8  # at once; further circuits wait for one


class Loads:
    """For the event loop's thread. A caller who goes away leaves what he asked for under way.

    borrows  the prover, whose end lets the threads go
    owns     its threads
    """

    def __init__(self, prover: Prover) -> None:
        self._prover = prover
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="cuzk loads")
        self._under_way: dict[tuple[str, str], asyncio.Future[bool]] = {}

    async def preload(self, circuit: str) -> bool:
        """As of `Prover`, and for all who ask meanwhile; so does `evict`."""
        return await self._joined("preload", self._prover.preload, circuit)

    async def evict(self, circuit: str) -> bool:
        return await self._joined("evict", self._prover.evict, circuit)

    async def _joined(self, name: str, call: Callable[[str], bool], circuit: str) -> bool:
        key = (name, circuit)
        future = self._under_way.get(key)
        if future is None:
            future = asyncio.get_running_loop().run_in_executor(self._threads, call, circuit)
            self._under_way[key] = future
            future.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(future)

    def _ended(self, key: tuple[str, str], future: asyncio.Future[bool]) -> None:
        del self._under_way[key]
        if not future.cancelled():
            future.exception()  # perhaps nobody is interested any more

    def close(self) -> None:
        """Without waiting: a thread may be at a disk that does not answer."""
        self._threads.shutdown(wait=False, cancel_futures=True)
