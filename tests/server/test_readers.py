"""Processes that read: what ends one costs only itself, and who goes next."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from cuzk.errors import BusyError, InputError, ResourceError
from cuzk.server import daemon as daemon_module
from cuzk.server.address import Address
from cuzk.server.daemon import Daemon, DaemonSettings
from cuzk.server.payload import Payload
from cuzk.server.readers import Read, Readers
from tests.server.fakes import FakeProver, proof_of, read_fake
from tests.server.hall import porep, running, until, up

SOON_S = 60.0  # a process takes half a second to start
FILE = "CUZK_TEST_FILE"  # names a file, also to the processes


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, SOON_S))


def of(content: bytes) -> Payload:
    return Payload(content=content, size=len(content))


def read(data: bytes, check: bool) -> Any:
    """The same bytes, if they are not deadly: then whoever is beside them is in the middle of it."""
    time.sleep(0.05 if data == b"deadly" else 0.1)
    if data == b"deadly":
        os._exit(1)
    return data


def end_the_first() -> None:
    """As the kernel does when memory is short."""
    file = Path(os.environ[FILE])
    if not file.exists():
        file.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def end() -> None:
    os._exit(1)


def fail_without_the_file() -> None:
    if not Path(os.environ[FILE]).exists():
        raise OSError(28, "No space left on device")


def test_an_input_that_ends_its_reader_costs_only_itself() -> None:
    async def scenario() -> None:
        readers = Readers(read, processes=2)
        contents = [b"deadly", b"a", b"b", b"deadly", b"c", b"d"]
        got = await asyncio.gather(
            *(readers.read(of(one), check=True) for one in contents), return_exceptions=True
        )
        for content, one in zip(contents, got, strict=True):
            assert isinstance(one, InputError) if content == b"deadly" else one == content, got
        assert await readers.read(of(b"e"), check=True) == b"e"
        readers.close()

    play(scenario())


def test_a_reader_that_is_killed_while_it_starts_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILE, str(tmp_path / "file"))

    async def scenario() -> None:
        readers = Readers(read, prepare=end_the_first, processes=2)
        await readers.ready()
        assert (tmp_path / "file").exists()
        assert await readers.read(of(b"a"), check=True) == b"a"
        readers.close()

    play(scenario())


def test_readers_that_cannot_start_are_no_fault_of_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILE, str(tmp_path / "file"))

    async def scenario() -> None:
        readers = Readers(read, prepare=fail_without_the_file, processes=1)
        for call in (readers.ready, lambda: readers.read(of(b"a"), check=True)):
            with pytest.raises(ResourceError, match="No space left on device"):
                await call()
        (tmp_path / "file").touch()
        assert await readers.read(of(b"a"), check=True) == b"a"  # nothing need be started anew
        readers.close()

    play(scenario())


def test_readers_that_end_whenever_they_start_are_no_fault_of_the_input() -> None:
    async def scenario() -> None:
        readers = Readers(read, prepare=end, processes=1)
        for call in (readers.ready, lambda: readers.read(of(b"a"), check=True)):
            with pytest.raises(ResourceError, match="it ended while it started"):
                await call()
        readers.close()

    play(scenario())


def test_a_daemon_is_ready_when_its_readers_can_start_at_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(FILE, str(tmp_path / "file"))
    monkeypatch.setattr(daemon_module, "_RETRY_S", 0.05)

    async def scenario() -> None:
        settings = DaemonSettings(listen=Address(path=tmp_path / "s"), readers=1)
        daemon = Daemon(settings, FakeProver(), read_fake, prepare=fail_without_the_file)
        async with up(daemon, waits=False):
            await until(lambda: any("not ready" in record.message for record in caplog.records))
            assert not daemon.is_ready
            (tmp_path / "file").touch()
            await until(lambda: daemon.is_ready)

    play(scenario())


def test_a_job_that_cannot_be_read_again_now_waits_until_it_can(tmp_path: Path) -> None:
    submit, tries = porep("a"), []

    def read_at_last(data: bytes, check: bool) -> Any:
        tries.append(check)
        if tries == [False]:
            raise BusyError("a process for it cannot start")
        return read_fake(data, check)

    async def scenario() -> None:
        folders = {"folder": tmp_path, "journal": tmp_path / "journal"}
        prover = FakeProver()
        go_on = prover.hold()
        async with running(prover, drain_s=0.01, **folders) as (daemon, caller):
            await caller.call("SubmitProof", submit)
            daemon.end()
            await until(lambda: not list(daemon.book.under_way))
            go_on.set()
        async with running(read=read_at_last, **folders) as (_, caller):
            result = (await caller.prove(submit)).result
            assert result.proof == proof_of(submit)
        assert tries.count(False) == 2

    play(scenario())


class Gate:
    """Reads that stand still until they are let go on, one after another."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self._go_on = threading.Semaphore(0)

    def read(self, data: bytes, check: bool) -> Any:
        self.begun.append(data)
        assert self._go_on.acquire(timeout=SOON_S)
        return data

    def let_go(self, count: int = 1) -> None:
        for _ in range(count):
            self._go_on.release()


def at_once(read: Read, monkeypatch: pytest.MonkeyPatch, threads: int) -> Readers:
    monkeypatch.setattr("cuzk.server.readers._THREADS", threads)
    return Readers(read, processes=0)


def begin(readers: Readers, contents: list[bytes]) -> list[asyncio.Future[Any]]:
    return [asyncio.ensure_future(readers.read(of(content), check=True)) for content in contents]


def begun(gate: Gate, count: int) -> Callable[[], bool]:
    return lambda: len(gate.begun) == count


def test_a_small_request_does_not_wait_behind_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        gate = Gate()
        readers = at_once(gate.read, monkeypatch, 2)
        large = [b"%d" % k + bytes(70_000) for k in range(9)]
        calls = begin(readers, large)
        await until(begun(gate, 2))
        calls += begin(readers, [b"winning"])
        await asyncio.sleep(0)
        gate.let_go()
        await until(begun(gate, 3))
        assert gate.begun[2] == b"winning"
        gate.let_go(len(calls))
        assert sorted(await asyncio.gather(*calls)) == sorted([*large, b"winning"])
        readers.close()

    play(scenario())


def test_a_large_request_is_read_however_many_small_ones_come(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        gate = Gate()
        readers = at_once(gate.read, monkeypatch, 1)
        calls = begin(readers, [b"first", bytes(70_000), *(b"%d" % k for k in range(50))])
        gate.let_go(len(calls))
        await asyncio.gather(*calls)
        assert gate.begun.index(bytes(70_000)) == 3
        assert gate.begun[:3] == [b"first", b"0", b"1"]
        readers.close()

    play(scenario())


def test_a_read_whose_client_went_away_keeps_its_place_until_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        gate = Gate()
        readers = at_once(gate.read, monkeypatch, 1)
        gone, waits, next_one = begin(readers, [b"gone", b"waits", b"next"])
        await until(begun(gate, 1))
        gone.cancel()
        waits.cancel()
        await asyncio.wait({gone, waits})
        await asyncio.sleep(0.05)
        assert gate.begun == [b"gone"]
        gate.let_go(2)
        assert await next_one == b"next"
        assert gate.begun == [b"gone", b"next"]
        readers.close()

    play(scenario())
