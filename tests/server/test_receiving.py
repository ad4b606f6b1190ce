"""Which request is received when, in a time that passes at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from cuzk.server import receiving
from cuzk.server.kept_memory import KeptMemory
from cuzk.server.receiving import LateError, Receiving

NEVER_S = 10_000.0


class PassingTime(asyncio.SelectorEventLoop):
    """A loop that waits for nothing but its own clock, and sets that forward instead."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self._now_s = 0.0
        select = self._selector.select

        def pass_time(timeout: float | None = None) -> Any:
            self._now_s += timeout or 0.0
            return select(0)

        self._selector.select = pass_time

    def time(self) -> float:
        return self._now_s


def play(scenario: Coroutine[Any, Any, None]) -> None:
    loop = PassingTime()
    try:
        loop.run_until_complete(scenario)
    finally:
        loop.close()


class Call:
    """Of a client whose bytes have come after that many seconds of being received."""

    def __init__(self, peer: str, takes_s: float) -> None:
        self._peer, self._takes_s = peer, takes_s
        self.begun_s: float | None = None

    def peer(self) -> str:
        return self._peer

    async def read(self) -> bytes:
        self.begun_s = asyncio.get_running_loop().time()
        await asyncio.sleep(self._takes_s)
        return b"request"


class NoMemory:
    """Asked for only if steps take long by the real clock."""

    async def ready(self) -> None:
        pass


class Hall:
    """Calls that come one after another, and when they were received."""

    def __init__(self) -> None:
        self._receiving = Receiving(cast(KeptMemory, NoMemory()))
        self.tasks: list[asyncio.Task[float]] = []

    async def comes(self, call: Call) -> asyncio.Task[float]:
        task = asyncio.create_task(self._receiving.of(call, self._kept))
        self.tasks.append(task)
        await asyncio.sleep(0)
        return task

    async def _kept(self, message: bytes) -> float:
        assert message == b"request"
        return asyncio.get_running_loop().time()

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.mark.parametrize("peer", ["unix:", "ipv4:10.0.0.2:1"])
def test_a_client_whose_requests_do_not_come_holds_others_up_for_little_and_once(peer: str) -> None:
    async def scenario() -> None:
        hall = Hall()
        for _ in range(10):
            await hall.comes(Call("unix:", NEVER_S))
        small = await hall.comes(Call(peer, 0.01))
        assert await small < 1.5  # half a second, then nine tenths
        for _ in range(3):
            begin = asyncio.get_running_loop().time()
            await hall.comes(Call("unix:", NEVER_S))
            assert await (await hall.comes(Call(peer, 0.01))) - begin < 0.2
        await hall.leave()

    play(scenario())


def test_large_requests_are_received_one_at_a_time_even_while_another_client_is_late() -> None:
    async def scenario() -> None:
        hall = Hall()
        await hall.comes(Call("a", NEVER_S))
        large = [await hall.comes(Call("b", 0.4)) for _ in range(5)]
        ends = [await one for one in large]
        assert [round(later - sooner, 3) for sooner, later in zip(ends, ends[1:], strict=False)] == [0.4] * 4
        await hall.leave()

    play(scenario())


def test_a_slow_link_does_not_fill_the_memory_at_once() -> None:
    """What comes at the same time is in memory: beyond so many one more begins every two seconds."""

    async def scenario() -> None:
        hall, calls = Hall(), [Call("a", NEVER_S) for _ in range(100)]
        for call in calls:
            await hall.comes(call)
        await asyncio.sleep(10.0)
        assert sum(call.begun_s is not None for call in calls) < 24
        await hall.leave()

    play(scenario())


def test_a_request_that_comes_slowly_but_steadily_is_taken_within_the_time_of_curios_client() -> None:
    async def scenario() -> None:
        hall = Hall()
        assert await (await hall.comes(Call("a", 1700.0))) == 1700.0
        with pytest.raises(LateError, match="did not arrive whole within 1800 s"):
            await (await hall.comes(Call("a", NEVER_S)))
        await hall.leave()

    play(scenario())


def test_a_client_that_came_in_the_end_is_as_good_as_any() -> None:
    async def scenario() -> None:
        hall = Hall()
        await (await hall.comes(Call("a", 3.0)))
        first, second = [await hall.comes(Call("a", takes_s)) for takes_s in (0.4, 0.01)]
        assert await second > await first
        assert receiving._SLOW_AGAIN_S < 0.4 < receiving._SLOW_S
        await hall.leave()

    play(scenario())
