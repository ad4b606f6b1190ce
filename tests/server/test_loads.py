"""Parameters that take their time to open, and clients who do not wait for that."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from pathlib import Path

import pytest

from cuzk.server import proving_pb2 as pb
from cuzk.server.daemon import Daemon
from tests.server.fakes import FakeProver
from tests.server.hall import Caller, porep, refused, until
from tests.server.test_service import COMPLETED, played

#: As many as the event loop has by default.
LOOP_THREADS = min(32, (os.cpu_count() or 1) + 4)
PRELOAD = pb.PreloadSrsRequest(circuit_id="porep-2k")


class Counting(FakeProver):
    """`asked` is what was asked of it; nothing is opened before `may_open` is set, or its end."""

    def __init__(self) -> None:
        super().__init__()
        self.may_open.clear()
        self.asked: list[str] = []

    def preload(self, circuit: str) -> bool:
        self.asked.append(circuit)
        return super().preload(circuit)

    def close(self, *, drain: bool = True, timeout_s: float | None = None) -> bool:
        self.may_open.set()
        return super().close(drain=drain, timeout_s=timeout_s)


def test_loads_that_clients_gave_up_take_no_threads_from_the_event_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    prover = Counting()

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        try:
            gone = [asyncio.ensure_future(caller.call("PreloadSRS", PRELOAD)) for _ in range(LOOP_THREADS)]
            await until(lambda: [one.message for one in caplog.records].count("PreloadSRS") == LOOP_THREADS)
            for call in gone:
                call.cancel()
            assert await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 5.0) == "done"
            assert (await caller.prove(porep("a"))).result.status == COMPLETED
            daemon.end()
            await until(lambda: prover.status().closing)
        finally:
            prover.may_open.set()

    played(tmp_path, scenario, prover)


def test_who_asks_for_parameters_that_are_being_loaded_joins_and_outlasts_who_asked_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    prover = Counting()

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        gone, stays = (asyncio.ensure_future(caller.call("PreloadSRS", PRELOAD)) for _ in range(2))
        await until(lambda: [one.message for one in caplog.records].count("PreloadSRS") == 2)
        gone.cancel()
        unknown = pb.PreloadSrsRequest(circuit_id="porep-3k")
        assert "unknown circuit ID" in (await refused(caller.call("PreloadSRS", unknown)))[1]
        prover.may_open.set()
        assert not (await stays).already_loaded
        assert prover.asked == ["porep-2k", "porep-3k"]
        assert (await caller.call("PreloadSRS", PRELOAD)).already_loaded
        assert (await caller.call("EvictSRS", pb.EvictSrsRequest(circuit_id="porep-2k"))).was_loaded
        assert not (await caller.call("PreloadSRS", PRELOAD)).already_loaded

    played(tmp_path, scenario, prover)


def test_the_prover_is_closed_though_every_thread_of_the_event_loop_is_taken(tmp_path: Path) -> None:
    prover, over = FakeProver(), threading.Event()

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        taken = [asyncio.ensure_future(asyncio.to_thread(over.wait)) for _ in range(LOOP_THREADS)]
        try:
            daemon.end()
            await until(lambda: prover.status().closing)
        finally:
            over.set()
        await asyncio.gather(*taken)

    played(tmp_path, scenario, prover)
