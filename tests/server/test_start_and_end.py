"""What a daemon does while it starts and when it ends: addresses, readiness, journal, jobs handed back."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import stat
import threading
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cuzk.engine.jobs import Job
from cuzk.errors import EngineError, ResourceError, UsageError
from cuzk.server import proving_pb2 as pb
from cuzk.server.address import Address, numeric, owned_socket, parse_address
from cuzk.server.daemon import Daemon, DaemonSettings
from cuzk.server.journal import SUSPECT
from tests.server.fakes import FakeProver, proof_of, read_fake
from tests.server.hall import SOON_S, Caller, channel_to, porep, refused, running, until

COMPLETED = pb.AwaitProofResponse.COMPLETED


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, SOON_S))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:///run/curio/cuzk.sock", Address(path=Path("/run/curio/cuzk.sock"))),
        ("unix:/run/cuzk.sock", Address(path=Path("/run/cuzk.sock"))),
        ("unix:cuzk.sock", Address(path=Path.cwd() / "cuzk.sock")),
        ("127.0.0.1:9820", Address(host="127.0.0.1", port=9820)),
        ("[::1]:0", Address(host="::1", port=0)),
        ("gpu-host.lan:65535", Address(host="gpu-host.lan", port=65535)),
    ],
)
def test_addresses_are_understood_as_users_write_them(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    ["", "9820", "host", "host:", "host:65536", "unix:", "unix://", "unix://rel", "http://a:1", "a b:1"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no address"):
        parse_address(text)


def test_a_path_too_long_for_a_socket_is_told_as_that() -> None:
    longest = f"unix:/{'x' * 106}"
    assert parse_address(longest).path == Path(longest.removeprefix("unix:"))
    with pytest.raises(UsageError, match="107 bytes, this one has 108"):
        parse_address(longest[:-1] + "é")


def test_a_name_stands_for_all_its_hosts() -> None:
    assert "127.0.0.1:7" in numeric(Address(host="localhost", port=7))
    with pytest.raises(ResourceError, match="host is not known"):
        numeric(Address(host="no.such.host.invalid", port=7))


def test_a_socket_is_for_its_group_alone_from_the_first_moment(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path / "run"):
            mode = (tmp_path / "run" / "cuzk.sock").stat().st_mode
            assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o660
        assert not (tmp_path / "run" / "cuzk.sock").exists()

    play(scenario())


def test_other_permissions_can_be_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path, socket_mode=0o600):
            assert stat.S_IMODE((tmp_path / "cuzk.sock").stat().st_mode) == 0o600
        with pytest.raises(ResourceError, match="permissions cannot be set"):
            async with running(folder=tmp_path, socket_group="no-such-group"):
                pass

    play(scenario())


def test_a_second_daemon_on_the_same_socket_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path) as (_, caller):
            with pytest.raises(ResourceError, match="another process listens there"):
                async with running(folder=tmp_path):
                    pass
            assert (await caller.prove(porep("a"))).result.status == COMPLETED

    play(scenario())


@pytest.mark.parametrize("others", [0, 1])
def test_a_lock_whose_file_was_removed_before_it_was_had_is_none(
    others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One daemon ends, and another may start, between this one's opening of the lock and its locking it."""
    path, lock = tmp_path / "cuzk.sock", fcntl.flock
    with ExitStack() as first, ExitStack() as third:
        first.enter_context(owned_socket(path))

        def late(file: Any, operation: int) -> None:
            monkeypatch.setattr(fcntl, "flock", lock)
            first.close()
            for _ in range(others):
                third.enter_context(owned_socket(path))
            lock(file, operation)

        monkeypatch.setattr(fcntl, "flock", late)
        with ExitStack() as second:
            if others:
                with pytest.raises(ResourceError, match="another process listens there"):
                    second.enter_context(owned_socket(path))
            else:
                second.enter_context(owned_socket(path))
                with pytest.raises(ResourceError, match="another process listens there"):
                    third.enter_context(owned_socket(path))
    assert list(tmp_path.iterdir()) == []


def test_a_second_daemon_on_the_same_port_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path) as (daemon, _):
            taken = DaemonSettings(listen=parse_address("127.0.0.1:0"), readers=0)
            first = Daemon(taken, FakeProver(), read_fake)
            task = asyncio.create_task(first.run())
            await until(lambda: first.is_ready)
            again = DaemonSettings(listen=parse_address(first.bound[0]), readers=0)
            with pytest.raises(ResourceError, match="Address already in use"):
                await Daemon(again, FakeProver(), read_fake).run()
            async with channel_to(first.bound[0]) as channel:
                assert (await Caller(channel).prove(porep("a"))).result.status == COMPLETED
            first.end()
            await task

    play(scenario())


def test_an_address_of_another_machine_is_told_as_that(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(ResourceError, match="Cannot assign requested address"):
            async with running(folder=tmp_path, listen=parse_address("203.0.113.9:9820")):
                pass

    play(scenario())


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "cuzk.sock").write_text("precious")
        with pytest.raises(ResourceError, match="this is no socket"):
            async with running(folder=tmp_path):
                pass
        assert (tmp_path / "cuzk.sock").read_text() == "precious"

    play(scenario())


async def state(caller: Caller) -> Any:
    health = health_pb2_grpc.HealthStub(caller.channel)
    return (await health.Check(health_pb2.HealthCheckRequest())).status


SERVING = health_pb2.HealthCheckResponse.SERVING


def test_it_is_ready_when_parameters_are_loaded_and_takes_calls_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        prover = FakeProver()
        prover.may_open.clear()
        waits = running(prover, folder=tmp_path, preload=["porep-2k"], waits=False)
        async with waits as (daemon, caller):
            assert await state(caller) != SERVING
            assert (await caller.prove(porep("early"))).result.status == COMPLETED
            assert not daemon.is_ready
            prover.may_open.set()
            await until(lambda: daemon.is_ready)
            assert await state(caller) == SERVING
            assert (
                await caller.call("PreloadSRS", pb.PreloadSrsRequest(circuit_id="porep-2k"))
            ).already_loaded

    play(scenario())


def test_without_any_device_it_is_not_ready(tmp_path: Path) -> None:
    async def scenario() -> None:
        from collections import deque

        from tests.engine.fakes import wrong

        prover = FakeProver()
        prover.setup.fates["cuda:0"] = deque([wrong] * 20)
        async with running(prover, folder=tmp_path) as (daemon, caller):
            assert await state(caller) == SERVING
            answers = [await caller.prove(porep(str(k))) for k in range(3)]
            assert {answer.result.status for answer in answers} == {pb.AwaitProofResponse.FAILED}
            await until(lambda: not daemon.is_ready)
            assert await state(caller) != SERVING

    play(scenario())


def test_jobs_that_do_not_end_in_time_are_handed_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        prover = FakeProver()
        go_on = prover.hold()
        async with running(prover, folder=tmp_path, drain_s=0.1) as (daemon, caller):
            calls = [asyncio.ensure_future(caller.prove(porep(str(k)))) for k in range(9)]
            await until(lambda: len(list(daemon.book.under_way)) == 9)
            daemon.end()
            for call in calls:
                code, text = await refused(call)
                assert code is grpc.StatusCode.UNAVAILABLE and "hands this proof back" in text
            go_on.set()

    play(scenario())


def test_jobs_that_are_handed_back_are_the_next_daemons(tmp_path: Path) -> None:
    async def scenario() -> None:
        journal, submit, prover = tmp_path / "journal", porep("slow"), FakeProver()
        go_on = prover.hold()
        async with running(prover, folder=tmp_path, journal=journal, drain_s=0.1) as (daemon, caller):
            going = asyncio.ensure_future(caller.prove(submit))
            await until(lambda: bool(list(daemon.book.under_way)))
            daemon.end()
            assert (await refused(going))[0] is grpc.StatusCode.UNAVAILABLE
            go_on.set()
        prover = FakeProver()
        go_on = prover.hold()
        async with running(prover, folder=tmp_path, journal=journal) as (daemon, caller):
            assert [entry.id for entry in daemon.book.under_way] == ["slow"]
            go_on.set()
            assert (await caller.prove(submit)).result.proof == proof_of(submit)
            assert daemon.book.completed.total() == 1

    play(scenario())


def test_a_submitted_job_that_waited_longer_than_results_are_kept_is_the_next_daemons(tmp_path: Path) -> None:
    async def scenario() -> None:
        journal, submit, prover = tmp_path / "journal", porep("slow"), FakeProver()
        go_on = prover.hold()
        async with running(prover, folder=tmp_path, journal=journal, drain_s=0.1) as (daemon, caller):
            await caller.call("SubmitProof", submit)
            daemon.end()
            await until(lambda: not list(daemon.book.under_way))
            go_on.set()
        prover = FakeProver()
        go_on = prover.hold()
        async with running(prover, folder=tmp_path, journal=journal, results_s=0.0) as (daemon, caller):
            ask = pb.AwaitProofRequest(job_id="slow")
            asking = asyncio.ensure_future(caller.call("AwaitProof", ask))
            await until(lambda: [entry.callers for entry in daemon.book.under_way] == [1])
            go_on.set()
            assert (await asking).proof == proof_of(submit)

    play(scenario())


def test_parameters_that_were_open_are_opened_again_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        journal = tmp_path / "journal"
        async with running(folder=tmp_path, journal=journal) as (daemon, caller):
            await caller.call("PreloadSRS", pb.PreloadSrsRequest(circuit_id="porep-2k"))
            await caller.prove(porep("a"))
        async with running(folder=tmp_path, journal=journal) as (daemon, caller):
            [loaded] = (await caller.call("GetStatus")).loaded_srs
            assert loaded.circuit_id == "porep-2k"

    play(scenario())


def test_the_service_manager_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SOON_S)

        async def scenario() -> None:
            async with running(folder=tmp_path):
                pass

        play(scenario())
        said = [manager.recv(1000).decode() for _ in range(3)]
    assert [text.partition("\n")[0] for text in said] == ["READY=1", "STATUS=ready", "STOPPING=1"]


def test_a_daemon_whose_engine_has_failed_hands_everything_back_and_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        prover, journal = FakeProver(), tmp_path / "journal"
        submits = [porep(f"{k}") for k in range(20)]  # more than an engine has in hand
        go_on = prover.hold()
        with pytest.raises(EngineError, match="mistake of its own"):
            async with running(prover, folder=tmp_path, journal=journal) as (daemon, caller):
                calls = [asyncio.ensure_future(caller.prove(submit)) for submit in submits]
                await until(
                    lambda: sum(e.job is not None for e in daemon.book.under_way) == daemon.feeder.ahead
                )
                await until(lambda: len(list(daemon.book.under_way)) == len(submits))
                prover.fail()
                for call in calls:
                    code, text = await refused(call)
                    assert code is grpc.StatusCode.UNAVAILABLE and "hands this proof back" in text
                go_on.set()
        async with running(folder=tmp_path, journal=journal) as (_, caller):
            for submit in submits:
                result = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id=submit.request_id))
                assert result.proof == proof_of(submit)

    play(scenario())


def test_a_submit_that_finds_the_engine_closed_fails_no_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        prover, journal, submit = FakeProver(), tmp_path / "journal", porep("a")
        submitted = prover.submit

        def fail_before(*given: Any) -> Job:
            prover.fail()
            return submitted(*given)

        prover.submit = fail_before  # type: ignore[method-assign]
        with pytest.raises(EngineError, match="mistake of its own"):
            async with running(prover, folder=tmp_path, journal=journal) as (_, caller):
                code, text = await refused(caller.prove(submit))
                assert code is grpc.StatusCode.UNAVAILABLE and "hands this proof back" in text
        async with running(folder=tmp_path, journal=journal) as (_, caller):
            result = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id="a"))
            assert result.proof == proof_of(submit)

    play(scenario())


def test_a_job_that_waits_for_parameters_is_handed_back_as_soon_as_the_engine_has_failed(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        prover, go_on = FakeProver(), threading.Event()
        submitted = prover.submit

        def wait_before(*given: Any) -> Job:
            go_on.wait(SOON_S)
            return submitted(*given)

        prover.submit = wait_before  # type: ignore[method-assign]
        with pytest.raises(EngineError, match="mistake of its own"):
            async with running(prover, folder=tmp_path) as (daemon, caller):
                going = asyncio.ensure_future(caller.prove(porep("a")))
                await until(lambda: any(entry.is_begun for entry in daemon.book.under_way))
                prover.fail()
                assert (await refused(going))[0] is grpc.StatusCode.UNAVAILABLE
                assert not go_on.is_set()
                go_on.set()

    play(scenario())


def test_an_engine_that_fails_while_it_is_idle_ends_the_daemon_without_any_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        prover = FakeProver()
        with pytest.raises(EngineError, match="mistake of its own"):
            async with running(prover, folder=tmp_path) as (daemon, caller):
                assert await state(caller) == SERVING
                prover.fail()
                await until(lambda: daemon.is_draining)
                assert not daemon.is_ready

    with caplog.at_level("INFO"):
        play(scenario())
    said = [record.message for record in caplog.records]
    assert "a mistake in cuzk ended the engine" in said and "shutting down" in said
    assert not any("SIGTERM" in line for line in said)


def test_the_job_that_an_engine_had_when_it_failed_is_the_next_daemons(tmp_path: Path) -> None:
    async def scenario() -> None:
        prover, journal, submit = FakeProver(), tmp_path / "journal", porep("a")
        go_on = prover.hold()
        with pytest.raises(EngineError, match="mistake of its own"):
            async with running(prover, folder=tmp_path, journal=journal) as (daemon, caller):
                going = asyncio.ensure_future(caller.prove(submit))
                await until(lambda: any(entry.job for entry in daemon.book.under_way))
                prover.fail()
                code, text = await refused(going)
                assert code is grpc.StatusCode.UNAVAILABLE and "hands this proof back" in text
                assert not daemon.book.failed
                go_on.set()
        async with running(folder=tmp_path, journal=journal) as (_, caller):
            result = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id="a"))
            assert result.proof == proof_of(submit)

    play(scenario())


def test_a_job_of_which_every_engine_fails_is_failed_in_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        journal = tmp_path / "journal"

        async def fail_of_it(submit: pb.SubmitProofRequest | None) -> None:
            prover = FakeProver()
            go_on = prover.hold()
            with pytest.raises(EngineError, match="mistake of its own"):
                async with running(prover, folder=tmp_path, journal=journal, waits=False) as (daemon, caller):
                    if submit is not None:
                        await caller.call("SubmitProof", submit)
                    await until(lambda: any(entry.job for entry in daemon.book.under_way))
                    prover.fail()
                    await until(lambda: daemon.is_draining)
                    go_on.set()

        await fail_of_it(porep("a"))
        for _ in range(SUSPECT - 1):
            await fail_of_it(None)
        async with running(folder=tmp_path, journal=journal) as (_, caller):
            result = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id="a"))
            assert result.status == pb.AwaitProofResponse.FAILED
            assert "3 daemons were killed or failed" in result.error_message

    play(scenario())


def test_two_daemons_do_not_share_a_journal(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path, journal=tmp_path / "journal"):
            with pytest.raises(ResourceError, match="another daemon uses it"):
                async with running(folder=tmp_path / "other", journal=tmp_path / "journal"):
                    pass

    play(scenario())


def test_results_answer_again_after_a_restart_under_their_ids(tmp_path: Path) -> None:
    async def scenario() -> None:
        submits = [porep("same name", b"%d" % k) for k in range(3)]
        async with running(folder=tmp_path, journal=tmp_path / "journal") as (_, caller):
            ids = [(await caller.call("SubmitProof", submit)).job_id for submit in submits]
            for job_id in ids:
                await caller.call("AwaitProof", pb.AwaitProofRequest(job_id=job_id))
        async with running(folder=tmp_path, journal=tmp_path / "journal") as (daemon, caller):
            for job_id, submit in zip(ids, submits, strict=True):
                result = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id=job_id))
                assert (result.status, result.proof) == (COMPLETED, proof_of(submit))
            assert (await caller.prove(submits[1])).result.job_id == ids[1]
            assert daemon.book.completed.total() == 0  # nothing was proven again

    play(scenario())
