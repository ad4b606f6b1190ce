"""The contract's methods, called as clients call them, on a prover that needs no kernels."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from cuzk.errors import CuzkError, EngineError, InputError, ParameterError, ResourceError
from cuzk.server import proving_pb2 as pb
from cuzk.server import receiving
from cuzk.server.book import Book
from cuzk.server.card_readings import CardReading
from cuzk.server.client import Client
from cuzk.server.contract import SERVICE
from cuzk.server.daemon import Daemon
from cuzk.server.messages import status_message
from cuzk.server.seam import ProofRequest
from tests.server.fakes import BAD, MIB, FakeProver, proof_of, read_fake
from tests.server.hall import SOON_S, Caller, porep, refused, running, until

COMPLETED, CANCELLED = pb.AwaitProofResponse.COMPLETED, pb.AwaitProofResponse.CANCELLED
Scenario = Callable[[Daemon, Caller], Awaitable[None]]


def played(folder: Path, scenario: Scenario, prover: FakeProver | None = None, **settings: object) -> None:
    async def play() -> None:
        async with running(prover, folder=folder, **settings) as (daemon, caller):
            await asyncio.wait_for(scenario(daemon, caller), SOON_S)

    asyncio.run(play())


def test_a_proof_comes_back_with_its_times(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submit = porep("porep-1000-7", registered_proof=10, sector_number=5)
        result = (await caller.prove(submit)).result
        assert (result.status, result.job_id) == (COMPLETED, "porep-1000-7")
        assert result.proof == proof_of(submit)
        assert result.synthesis_ms >= 5 * 10 and result.total_ms >= result.queue_wait_ms
        assert result.error_message == ""

    played(tmp_path, scenario)


def test_equal_names_with_other_inputs_are_other_jobs(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submits = [porep("wdpost-1-0", b"sectors %d" % k, sector_number=10) for k in range(8)]
        answers = await asyncio.gather(*map(caller.prove, submits))
        for submit, answer in zip(submits, answers, strict=True):
            assert answer.result.proof == proof_of(submit)
        assert len({answer.result.job_id for answer in answers}) == 8

    played(tmp_path, scenario)


def test_what_is_submitted_can_be_waited_for_and_its_result_is_kept(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submit = porep("a")
        job_id = (await caller.call("SubmitProof", submit)).job_id
        for _ in range(2):
            result = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id=job_id))
            assert (result.status, result.proof) == (COMPLETED, proof_of(submit))
        code, text = await refused(caller.call("AwaitProof", pb.AwaitProofRequest(job_id="none")))
        assert (code, text) == (grpc.StatusCode.NOT_FOUND, "job not found: none")

    played(tmp_path, scenario)


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        (pb.ProveRequest(), "INVALID_ARGUMENT", "missing submit field"),
        (pb.ProveRequest(submit=porep(data=b"bad")), "INVALID_ARGUMENT", "partition 3, challenge 7"),
        (
            pb.ProveRequest(submit=pb.SubmitProofRequest(request_id="a")),
            "INVALID_ARGUMENT",
            "invalid proof_kind: 0",
        ),
        (
            pb.ProveRequest(submit=pb.SubmitProofRequest(proof_kind=77)),
            "INVALID_ARGUMENT",
            "invalid proof_kind: 77",
        ),
    ],
    ids=["no submit", "bad input", "no kind", "unknown kind"],
)
def test_bad_requests_are_refused_with_the_place_before_they_queue(
    request_: pb.ProveRequest, code: str, says: str, tmp_path: Path
) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        got, text = await refused(caller.call("Prove", request_))
        assert got.name == code and says in text
        assert list(daemon.book.under_way) == [] and daemon.book.rejected == 1

    played(tmp_path, scenario)


@pytest.mark.parametrize("letter", ["x", "%", "é", "\U0001f600"])
def test_an_error_of_any_length_reaches_the_client_with_its_beginning_and_its_end(
    letter: str, tmp_path: Path
) -> None:
    def read(data: bytes, check: bool) -> ProofRequest:
        raise InputError(letter * 20_000 + "\ud800", where="here", next="send another")

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        ask = pb.AwaitProofRequest(job_id=letter * 20_000 + " at last")
        for _ in range(20):  # above its soft limit gRPC refuses at random
            code, text = await refused(caller.call("AwaitProof", ask))
            assert code is grpc.StatusCode.NOT_FOUND
            assert text.startswith(f"job not found: {letter}") and text.endswith(f"{letter} at last")
            code, text = await refused(caller.prove(porep()))
            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert text.startswith(f"here: {letter}") and text.endswith(r"\ud800 (send another)")

    played(tmp_path, scenario, read=read)


def test_a_daemon_that_ends_is_not_told_as_one_that_is_not_there(tmp_path: Path) -> None:
    address = f"unix://{tmp_path / 'cuzk.sock'}"

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        go_on = daemon.prover.hold()
        with Client(address) as client:
            slow = asyncio.ensure_future(asyncio.to_thread(client.prove, porep("slow")))
            await until(lambda: any(entry.callers for entry in daemon.book.under_way))
            daemon.service.is_open = False
            with pytest.raises(EngineError) as refusal:
                await asyncio.to_thread(client.prove, porep("new"))
            assert str(refusal.value) == f"{address}: the daemon is shutting down; send it again later"
            daemon.end()
            with pytest.raises(EngineError, match="shutting down and hands this proof back") as handed:
                await slow
            assert "reached" not in str(handed.value)
        go_on.set()

    played(tmp_path, scenario, drain_s=0.0)
    with Client(address) as client, pytest.raises(ResourceError, match="cannot be reached"):
        client.status()


def test_status_counts_jobs_not_workers(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        go_on = daemon.prover.hold()
        calls = [asyncio.ensure_future(caller.prove(porep(str(k)))) for k in range(12)]
        await until(lambda: len(list(daemon.book.under_way)) == 12)
        await until(lambda: all(worker.job_id for worker in daemon.prover.status().devices[0].workers))
        status = await caller.call("GetStatus")
        [queue] = status.queues
        assert queue.proof_kind == "porep-c2" and queue.pending + queue.in_progress == 12
        assert 0 < queue.in_progress <= daemon.feeder.ahead < 12
        assert [gpu.ordinal for gpu in status.gpus] == [0]
        go_on.set()
        await asyncio.gather(*calls)
        status = await caller.call("GetStatus")
        assert (len(status.queues), status.total_proofs_completed) == (0, 12)
        [loaded] = status.loaded_srs
        assert (loaded.circuit_id, loaded.ref_count) == ("porep-2k", 0) and loaded.size_bytes > 0

    played(tmp_path, scenario)


def test_parameters_are_loaded_and_given_back_on_request(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        ask = pb.PreloadSrsRequest(circuit_id="porep-2k")
        assert not (await caller.call("PreloadSRS", ask)).already_loaded
        assert (await caller.call("PreloadSRS", ask)).already_loaded
        gone = await caller.call("EvictSRS", pb.EvictSrsRequest(circuit_id="porep-2k"))
        assert gone.was_loaded and gone.freed_bytes > 0
        again = await caller.call("EvictSRS", pb.EvictSrsRequest(circuit_id="porep-2k"))
        assert not again.was_loaded and again.freed_bytes == 0
        code, text = await refused(caller.call("PreloadSRS", pb.PreloadSrsRequest(circuit_id="x")))
        assert code is grpc.StatusCode.INVALID_ARGUMENT and "unknown circuit ID: x" in text

    played(tmp_path, scenario)


def test_parameters_that_cannot_be_loaded_are_told_to_the_client_and_to_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: FakeProver, circuit: str) -> bool:
        raise ParameterError("a.params is missing", where="/p", next="fetch it")

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        with Client(f"unix://{tmp_path / 'cuzk.sock'}") as client, pytest.raises(CuzkError) as told:
            await asyncio.to_thread(client.preload, "porep-2k")
        assert told.value.what == "/p: a.params is missing (fetch it)"
        assert told.value.next is None  # the text has it

    monkeypatch.setattr(FakeProver, "preload", fail)
    with caplog.at_level("INFO"):
        played(tmp_path, scenario)
    [record] = [one for one in caplog.records if one.levelname == "WARNING"]
    assert "a.params is missing" in str(vars(record)["cuzk_fields"]["error"])


def test_a_card_is_shown_as_its_driver_names_it() -> None:
    prover = FakeProver(("cuda:0", "cuda:1"))
    reading = CardReading(
        name="NVIDIA H200", memory_total_bytes=100, memory_used_bytes=30, utilisation_percent=None,
        temperature_c=None, power_w=None, power_limit_w=None,
    )  # fmt: skip
    status = status_message(prover.status(), Book(), {"cuda:0": reading})
    prover.close()
    shown = [(gpu.ordinal, gpu.name, gpu.vram_total_bytes, gpu.vram_free_bytes) for gpu in status.gpus]
    assert shown == [(0, "NVIDIA H200", 100, 70), (1, "cuda:1", 16 * MIB, 16 * MIB)]


def test_one_request_is_received_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "_SLOW_S", SOON_S)

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        first = caller.channel.stream_unary(f"/{SERVICE}/Prove")(timeout=SOON_S)
        await first.wait_for_connection()
        await until(daemon.service._receiving._turn.locked)
        second = asyncio.ensure_future(caller.prove(porep("second")))
        await asyncio.sleep(0.2)
        assert not second.done()
        await first.write(pb.ProveRequest(submit=porep("first")).SerializeToString())
        await first.done_writing()
        assert (await second).result.proof == proof_of(porep("second"))
        assert pb.ProveResponse.FromString(await first).result.proof == proof_of(porep("first"))

    played(tmp_path, scenario)


def test_clients_that_send_no_request_hold_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        stubs = [caller.channel.stream_unary(f"/{SERVICE}/Prove") for _ in range(12)]
        silent = [stub(timeout=SOON_S) for stub in stubs]
        for call in silent:
            await call.wait_for_connection()
        begin = time.monotonic()
        assert (await caller.prove(porep("a"))).result.status == COMPLETED
        assert time.monotonic() - begin < 10.0  # by itself 1.6 s
        monkeypatch.setattr(receiving, "_WHOLE_S", 0.0)
        code, text = await refused(caller.channel.stream_unary(f"/{SERVICE}/Prove")(timeout=SOON_S))
        assert code is grpc.StatusCode.ABORTED and "did not arrive whole within 0 s" in text
        for call in silent:
            call.cancel()

    played(tmp_path, scenario)


def test_a_request_counts_from_the_moment_it_comes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While it is received, while it is read, and in the times of its proof."""
    go_on, late_s = threading.Event(), 0.3

    def read(data: bytes, check: bool) -> ProofRequest:
        assert go_on.wait(SOON_S)
        return read_fake(data, check)

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        async def counted() -> dict[str, int]:
            queues = (await caller.call("GetStatus")).queues
            return {queue.proof_kind: queue.pending for queue in queues}

        submit = pb.SubmitProofRequest(request_id="w", proof_kind=pb.WINNING_POST, vanilla_proofs=[b"x"])
        begin = time.monotonic()
        call = caller.channel.stream_unary(f"/{SERVICE}/Prove")(timeout=SOON_S)
        await call.wait_for_connection()
        while await counted() != {"unknown": 1}:
            await asyncio.sleep(0.01)
        await asyncio.sleep(late_s)
        await call.write(pb.ProveRequest(submit=submit).SerializeToString())
        await call.done_writing()
        while await counted() != {"winning-post": 1}:
            await asyncio.sleep(0.01)
        assert "Prove" in [record.message for record in caplog.records]
        await asyncio.sleep(late_s)
        go_on.set()
        result = pb.ProveResponse.FromString(await call).result
        assert result.status == COMPLETED
        spent_ms = 1000 * (time.monotonic() - begin)
        assert 2000 * late_s <= result.queue_wait_ms <= result.total_ms <= spent_ms + 1
        assert await counted() == {}

    with caplog.at_level("INFO"):
        played(tmp_path, scenario, read=read)


def test_a_request_that_is_refused_or_given_up_counts_no_more(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        await refused(caller.prove(porep("a", BAD)))
        call = caller.channel.stream_unary(f"/{SERVICE}/Prove")(timeout=SOON_S)
        await call.wait_for_connection()
        await until(lambda: bool(daemon.book.arrivals))
        call.cancel()
        await until(lambda: not daemon.book.arrivals)

    played(tmp_path, scenario)


def test_a_call_without_a_message_lacks_its_submit_field(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        call = caller.channel.stream_unary(f"/{SERVICE}/Prove")(timeout=SOON_S)
        await call.done_writing()
        code, text = await refused(call)
        assert code is grpc.StatusCode.INVALID_ARGUMENT and "missing submit field" in text

    played(tmp_path, scenario)
