"""A whole daemon with status, metrics and page beside its service: one truth through every door."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cuzk.errors import UsageError
from cuzk.server import beside as module
from cuzk.server import metrics
from cuzk.server import proving_pb2 as pb
from cuzk.server.access import Access
from cuzk.server.address import Address
from cuzk.server.beside import Beside
from cuzk.server.daemon import Daemon, DaemonSettings
from cuzk.server.http import StatusServer
from cuzk.server.observation import Observation, Sight
from tests.server.fakes import FakeProver, read_fake
from tests.server.hall import SOON_S, Caller, porep, refused, until, up
from tests.server.playing import Playing
from tests.server.test_access import made

Scenario = Callable[[Daemon, Caller, aiohttp.ClientSession], Awaitable[None]]


def played(folder: Path, scenario: Scenario, *, may_open: bool = True, **settings: Any) -> None:
    """A daemon with its companion, from start to end.

    may_open  at once; else when the scenario says so
    """

    async def play() -> None:
        observation = Observation()
        prover = FakeProver(recorder=observation.recorder)
        if not may_open:
            prover.may_open.clear()
        beside = Beside(observation)
        daemon = Daemon(
            DaemonSettings(
                listen=Address(path=folder / "cuzk.sock"),
                status_listen=Address(host="127.0.0.1", port=0),
                readers=0,
                drain_s=SOON_S,
                **settings,
            ),
            prover,
            read_fake,
            companions=[beside],
            metrics=beside.metrics,
        )
        async with up(daemon, waits=may_open) as caller:
            await until(lambda: beside.port is not None)
            async with aiohttp.ClientSession(f"http://127.0.0.1:{beside.port}") as session:
                await asyncio.wait_for(scenario(daemon, caller, session), SOON_S)

    asyncio.run(play())


async def status(session: aiohttp.ClientSession, path: str = "/api/status") -> dict[str, Any]:
    async with session.get(path) as response:
        assert response.status == 200
        document: dict[str, Any] = await response.json()
        return document


def test_results_and_failures_show_with_the_daemons_own_times_and_causes(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller, session: aiohttp.ClientSession) -> None:
        result = (await caller.prove(porep("porep-1000-7", registered_proof=3, sector_number=20))).result
        await refused(caller.prove(porep("broken", b"bad")))
        document = await status(session)
        [shown] = document["results"]
        assert (shown["job_id"], shown["kind"], shown["status"], shown["partitions"]) == (
            "porep-1000-7", "porep-c2", "COMPLETED", 3,
        )  # fmt: skip
        assert (shown["total_ms"], shown["queue_ms"]) == (result.total_ms, result.queue_wait_ms)
        assert document["rejected"] == 1 and document["totals"]["COMPLETED"] == 1
        [refusal] = document["refused"]
        assert (refusal["what"], refusal["where"]) == ("it is bad", "partition 3, challenge 7")
        [pipeline] = (await status(session, "/status"))["pipelines"]
        assert pipeline["partitions_done"] == 3
        assert all(part["synth_ms"] >= 20 for part in pipeline["partitions"])

    played(tmp_path, scenario)


def test_jobs_that_wait_in_front_of_the_engine_are_in_every_count(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller, session: aiohttp.ClientSession) -> None:
        go_on = daemon.prover.hold()
        for k in range(30):
            await caller.call("SubmitProof", porep(f"job {k}", b"%d" % k))
        document = await status(session)
        queue = document["queue"]
        assert queue["jobs_waiting"] + queue["jobs_running"] == 30 and queue["jobs_waiting"] > 20
        assert len(document["jobs"]) == 30 and document["jobs"][-1]["job_id"] == "job 29"
        assert (await status(session, "/status"))["counters"]["queue_depth"] == queue["jobs_waiting"]
        text = (await caller.call("GetMetrics")).prometheus_text
        assert f"\ncuzk_queue_depth {queue['jobs_waiting']}\n" in text
        for k in range(30):
            await caller.call("CancelProof", pb.CancelProofRequest(job_id=f"job {k}"))
        assert (await status(session))["totals"]["CANCELLED"] == 30
        go_on.set()

    played(tmp_path, scenario)


def test_metrics_are_the_same_over_both_ways(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller, session: aiohttp.ClientSession) -> None:
        await caller.prove(porep("a"))
        theirs = (await caller.call("GetMetrics")).prometheus_text
        async with session.get("/metrics") as response:
            own = await response.text()
        names = [[line.split()[2] for line in text.splitlines() if line[0] == "#"] for text in (theirs, own)]
        assert names[0] == names[1] and "\ncuzk_proofs_completed_total 1\n" in f"\n{own}"

    played(tmp_path, scenario)


def test_who_asks_for_metrics_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def stuck(sight: Sight) -> str:
        begun.release()
        assert go_on.wait(SOON_S)
        return "# stuck\n"

    async def scenario(daemon: Daemon, caller: Caller, session: aiohttp.ClientSession) -> None:
        over_http = asyncio.ensure_future(session.get("/metrics"))
        over_grpc = asyncio.ensure_future(caller.call("GetMetrics"))
        await until(lambda: begun.acquire(blocking=False))
        await until(lambda: begun.acquire(blocking=False))
        assert (await caller.prove(porep("a"))).result.status == pb.AwaitProofResponse.COMPLETED
        go_on.set()
        async with await over_http as response:
            assert (await response.text()).startswith("# stuck\n")
        assert (await over_grpc).prometheus_text.startswith("# stuck\n")

    monkeypatch.setattr(metrics, "contract_text", stuck)
    played(tmp_path, scenario)


def test_it_is_not_ready_until_parameters_are_loaded_nor_while_it_drains(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller, session: aiohttp.ClientSession) -> None:
        async with session.get("/readyz") as response:
            assert response.status == 503 and "parameters" in await response.text()
        assert "parameters" in (await status(session))["not_ready"]
        daemon.prover.may_open.set()
        await until(lambda: daemon.is_ready)
        async with session.get("/readyz") as response:
            assert response.status == 200
        go_on = daemon.prover.hold()
        slow = asyncio.ensure_future(caller.prove(porep("slow")))
        await until(lambda: bool(list(daemon.book.under_way)))
        daemon.end()
        await until(lambda: daemon.is_draining)
        async with session.get("/readyz") as response:
            assert response.status == 503 and "shutting down" in await response.text()
        go_on.set()
        await slow

    played(tmp_path, scenario, may_open=False, preload=["porep-2k"])


def test_the_token_of_the_service_is_that_of_its_status(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")

    async def scenario(daemon: Daemon, caller: Caller, session: aiohttp.ClientSession) -> None:
        async with session.get("/metrics") as response:
            assert response.status == 401
        async with session.get("/metrics", headers={"Authorization": "Bearer s3cret"}) as response:
            assert response.status == 200

    played(tmp_path, scenario, access=Access(token_file=token))


def test_with_a_certificate_status_speaks_tls_and_may_want_one_of_its_readers(tmp_path: Path) -> None:
    made(tmp_path, "authority")
    made(tmp_path, "localhost")
    made(tmp_path, "client", signed_by="authority")
    known = ssl.create_default_context(cafile=str(tmp_path / "localhost.pem"))
    ours = ssl.create_default_context(cafile=str(tmp_path / "localhost.pem"))
    ours.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.key")
    access = Access(certificate=tmp_path / "localhost.pem", key=tmp_path / "localhost.key")

    async def answered(access: Access, context: ssl.SSLContext) -> bool:
        with Playing() as playing:
            server = StatusServer(playing.observation)
            port = await server.open("127.0.0.1", 0, tls=access.context())
            try:
                async with (
                    aiohttp.ClientSession() as session,
                    session.get(f"https://localhost:{port}/status", ssl=context) as response,
                ):
                    return response.status == 200
            except aiohttp.ClientError:
                return False
            finally:
                await server.close()

    assert asyncio.run(answered(access, known))
    picky = replace(access, client_ca=tmp_path / "authority.pem")
    assert [asyncio.run(answered(picky, context)) for context in (known, ours)] == [False, True]


def test_a_status_address_that_is_taken_is_logged_and_tried_again_while_proofs_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.05)
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        for name in "ab":  # tries and proofs go on beside each other
            assert (await caller.prove(porep(name))).result.status == pb.AwaitProofResponse.COMPLETED
            await asyncio.sleep(0.2)
        [said] = [one for one in caplog.records if "status cannot be served" in one.message]
        assert said.levelname == "ERROR" and "ddress already in use" in said.message
        assert f"127.0.0.1:{port}" in str(vars(said)) and "stop the process" in str(vars(said))
        taken.close()
        async with aiohttp.ClientSession() as session:
            await until(lambda: any("status HTTP server listening" in one.message for one in caplog.records))
            async with session.get(f"http://127.0.0.1:{port}/readyz") as response:
                assert response.status == 200

    async def play() -> None:
        daemon = beside_at(tmp_path, Address(host="127.0.0.1", port=port))
        async with up(daemon) as caller:
            await asyncio.wait_for(scenario(daemon, caller), SOON_S)

    with taken, caplog.at_level("INFO", "cuzk_daemon"):
        asyncio.run(play())


def test_a_daemon_ends_though_its_status_was_never_served(tmp_path: Path) -> None:
    async def play(port: int) -> None:
        async with up(beside_at(tmp_path, Address(host="127.0.0.1", port=port))):
            pass

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(asyncio.wait_for(play(taken.getsockname()[1]), SOON_S))


def test_status_on_a_unix_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="TCP"):
        asyncio.run(beside_at(tmp_path, Address(path=tmp_path / "status.sock")).run())


def beside_at(folder: Path, address: Address) -> Daemon:
    """A daemon with status at that address."""
    observation = Observation()
    settings = DaemonSettings(listen=Address(path=folder / "cuzk.sock"), status_listen=address, readers=0)
    prover = FakeProver(recorder=observation.recorder)
    return Daemon(settings, prover, read_fake, companions=[Beside(observation)])
