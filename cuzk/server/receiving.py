"""Requests come in one at a time, and more at once where one does not come.

Submit and Prove take their one message as a stream of one, which is the same on the wire: a request of 200 MB
stays at the client until it is its turn to be received. While gRPC puts a message together nothing else in
Python runs, so a large one must not follow another at once: one is received, while one that came before it is
written. How large one is, gRPC says only when all of it is there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc

from cuzk.server.kept_memory import SMALL_S, KeptMemory, before_it_ends

_T = TypeVar("_T")
_AT_ONCE = 2  # that are received or written: each takes its size, twice for a moment
#: After which one that still comes lets another begin: 60 MB at 1 Gb/s, 500 MB on the same machine.
_SLOW_S = 0.5
#: The same for a client of which one is late already: what is small has come by then.
_SLOW_AGAIN_S = 0.1
#: From so many late ones on, of all clients, the next must wait longer: their bytes are in memory.
_MANY, _SLOW_WITH_MANY_S = 16, 2.0
#: After which one is given up: Curio's client gives up then. Clients that are dead are found by pings.
_WHOLE_S = 1800.0


class LateError(TimeoutError):
    """A request did not arrive whole."""


class Receiving:
    """For the event loop's thread only.

    A client is a connection; those of a unix socket cannot be told apart.
    """

    def __init__(self, memory: KeptMemory) -> None:
        self._memory = memory
        self._turn, self._places = asyncio.Lock(), asyncio.Semaphore(_AT_ONCE)
        self._late: Counter[str] = Counter()  # by client

    async def of(self, context: Any, keep: Callable[[bytes], Awaitable[_T]]) -> _T:
        """What `keep` makes of the message that a call sends, or of none (b""). Raises LateError."""
        peer = context.peer()
        coming: asyncio.Future[bytes] | None = None
        try:
            async with self._places:
                async with self._turn:
                    coming = asyncio.ensure_future(self._message(context))
                    await asyncio.wait({coming}, timeout=self._patience_s(peer))
                if coming.done():
                    return await keep(coming.result())
            await self._wait_late(peer, coming)
            return await keep(coming.result())
        finally:
            if coming is not None:
                coming.cancel()

    def _patience_s(self, peer: str) -> float:
        if self._late.total() >= _MANY:
            return _SLOW_WITH_MANY_S
        return _SLOW_AGAIN_S if self._late[peer] else _SLOW_S

    async def _wait_late(self, peer: str, coming: asyncio.Future[bytes]) -> None:
        self._late[peer] += 1
        try:
            await asyncio.wait({coming}, timeout=_WHOLE_S)
        finally:
            self._late[peer] -= 1
            if not self._late[peer]:
                del self._late[peer]
        if not coming.done():
            raise LateError(f"the request did not arrive whole within {_WHOLE_S:.0f} s")

    async def _message(self, context: Any) -> bytes:
        """The one that the client sends, nothing if it sends none."""
        message: bytes = await before_it_ends(context.read(), self._memory.ready, after_s=SMALL_S)
        return b"" if message is grpc.aio.EOF else message
