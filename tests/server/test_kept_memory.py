"""Memory for large requests: there before it is needed, given back beyond what is kept.

What concerns malloc is looked at in a process of its own.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import os
import platform
import subprocess
import sys
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cuzk.server import kept_memory
from cuzk.server.kept_memory import KEPT_BYTES, KeptMemory, before_it_ends
from tests.server.processes import ROOT

MIB = 1 << 20
PAGE_BYTES = 4096
BOTH_COPIES = 2 * 100 * MIB // PAGE_BYTES

#: Put a message together as gRPC does, and as its older versions do; what it takes in fresh pages of the one
#: thread; resident memory.
PRELUDE = """
import asyncio, ctypes, json, os, resource
from pathlib import Path
from cuzk.server.kept_memory import KeptMemory

def joined(mib):
    return b"".join([bytes(16384) for _ in range(64 * mib)])

def grown(mib):
    message = bytearray()
    for _ in range(64 * mib):
        message += bytes(16384)
    return bytes(message)

def fresh_pages(receive, mib):
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    receive(mib)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

def ready(memory):
    asyncio.run(memory.ready())

give_back = ctypes.CDLL(None).malloc_trim  # what protobuf calls now and then
"""

glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc's malloc can be told to keep memory"
)
each_way = pytest.mark.parametrize("receive", ["joined", "grown"])


def printed(script: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], cwd=ROOT, stdout=subprocess.PIPE, timeout=60, check=True
    )
    return json.loads(done.stdout)


@glibc
@each_way
def test_a_large_request_takes_no_fresh_memory_be_it_the_first_or_after_all_was_given_back(
    receive: str,
) -> None:
    script = f"""
memory = KeptMemory()
taken = []
for _ in range(3):
    ready(memory)
    taken.append(fresh_pages({receive}, 100))
    give_back(0)
print(json.dumps(taken))
"""
    assert max(printed(script)) < 0.02 * BOTH_COPIES


@glibc
@each_way
@pytest.mark.parametrize("stays_bytes", [0, 1 << 19, 20 << 20])
def test_nor_does_one_that_comes_while_another_is_written(receive: str, stays_bytes: int) -> None:
    """What stays between them leaves free memory enough, and none of it in one piece for the whole."""
    script = f"""
memory, taken, written, stays = KeptMemory(), [], b"", []
for _ in range(6):
    ready(memory)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    written = {receive}(100)
    taken.append(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)
    stays.append(bytes({stays_bytes}))
print(json.dumps(taken))
"""
    assert max(printed(script)) < 0.02 * BOTH_COPIES


@glibc
@each_way
def test_without_it_every_large_request_takes_fresh_memory(receive: str) -> None:
    """What it is for: on a system where this fails, having memory ready is of no use."""
    script = f"""
taken = []
for _ in range(3):
    taken.append(fresh_pages({receive}, 100))
    give_back(0)
print(json.dumps(taken))
"""
    assert min(printed(script)) > 0.9 * BOTH_COPIES


@glibc
def test_it_takes_no_memory_before_a_large_request_comes() -> None:
    before, after = printed("a = resident_bytes(); KeptMemory(); print(json.dumps([a, resident_bytes()]))")
    assert after - before < 2 * MIB


@glibc
def test_what_is_freed_beyond_what_is_kept_is_given_back() -> None:
    script = """
memory = KeptMemory()
before = resident_bytes()
blocks = [b"%d" % k * (1 << 20) for k in range(1000, 1300)]
del blocks
after, most = resident_bytes(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
print(json.dumps([before, most, after]))
"""
    before, most, after = printed(script)
    assert most - before > 0.99 * 1200 * MIB
    assert after - before <= KEPT_BYTES + 8 * MIB


@glibc
@each_way
def test_requests_of_every_size_keep_to_the_bound(receive: str) -> None:
    """The largest that is allowed, others beside it, in an order that leaves gaps."""
    script = f"""
memory = KeptMemory()
before = resident_bytes()
held = {receive}(70)
for mib in (256, 1, 100, 70, 129, 5, 256, 100):
    ready(memory)
    held = {receive}(mib)
del held
print(json.dumps(resident_bytes() - before))
"""
    assert printed(script) <= KEPT_BYTES + 8 * MIB


@glibc
def test_a_system_that_cannot_bring_memory_back_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(kept_memory._LOG, "warn", lambda text, **fields: said.append(fields["reason"]))
    monkeypatch.setattr(kept_memory, "_MADV_POPULATE_WRITE", 9999)  # no system knows it
    memory = KeptMemory()
    asyncio.run(memory.ready())
    asyncio.run(memory.ready())
    assert said == [os.strerror(errno.EINVAL)]


def test_another_malloc_is_left_alone_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(kept_memory._LOG, "info", said.append)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace())  # it has no function at all
    asyncio.run(KeptMemory().ready())
    assert len(said) == 1 and "not glibc's" in said[0]


# ---- before it ends ----


class Reading:
    """Waits for `arrives`, then notes that it goes on: as gRPC's `read` puts together what has come."""

    def __init__(self) -> None:
        self.arrives: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.notes: list[str] = []

    async def read(self) -> int:
        try:
            size = await self.arrives
        except (asyncio.CancelledError, ValueError) as error:
            self.notes.append(type(error).__name__)
            raise
        self.notes.append("put together")
        return size

    async def prepare(self) -> None:
        self.notes.append("preparing")
        await asyncio.sleep(0.01)
        self.notes.append("prepared")


def played(scenario: Callable[[Reading], Awaitable[Any]]) -> tuple[Any, list[str]]:
    async def play() -> tuple[Any, list[str]]:
        reading = Reading()
        return await scenario(reading), reading.notes

    return asyncio.run(play())


async def task_of(reading: Reading, after_s: float = 0.0) -> asyncio.Task[int]:
    """It waits for what arrives."""

    async def wait() -> int:
        return await before_it_ends(reading.read(), reading.prepare, after_s=after_s)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    return task


def test_what_came_is_put_together_once_that_is_prepared() -> None:
    async def scenario(reading: Reading) -> int:
        task = await task_of(reading)
        assert reading.notes == []
        reading.arrives.set_result(7)
        return await task

    assert played(scenario) == (7, ["preparing", "prepared", "put together"])


def test_for_what_comes_soon_nothing_is_prepared() -> None:
    async def scenario(reading: Reading) -> int:
        task = await task_of(reading, after_s=60.0)
        reading.arrives.set_result(7)
        return await task

    assert played(scenario) == (7, ["put together"])


def test_what_need_not_be_waited_for_is_returned_at_once() -> None:
    async def scenario(reading: Reading) -> int:
        reading.arrives.set_result(7)
        return await before_it_ends(reading.read(), reading.prepare, after_s=0.0)

    assert played(scenario) == (7, ["put together"])


def test_an_error_of_what_is_waited_for_comes_through_it() -> None:
    """gRPC catches those of its own."""

    async def scenario(reading: Reading) -> str:
        task = await task_of(reading)
        reading.arrives.set_exception(ValueError("broken"))
        with pytest.raises(ValueError, match="broken"):
            await task
        return "raised"

    assert played(scenario) == ("raised", ["ValueError"])


def test_a_client_that_goes_before_its_message_has_come_ends_the_waiting() -> None:
    async def scenario(reading: Reading) -> bool:
        task = await task_of(reading)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled() and reading.arrives.cancelled()

    assert played(scenario) == (True, ["CancelledError"])


def test_a_message_that_has_come_is_put_together_though_its_client_goes() -> None:
    """gRPC lets go of nothing else."""

    async def scenario(reading: Reading) -> int:
        task = await task_of(reading)
        reading.arrives.set_result(7)
        while not reading.notes:
            await asyncio.sleep(0)
        task.cancel()
        return await task

    assert played(scenario) == (7, ["preparing", "put together"])
