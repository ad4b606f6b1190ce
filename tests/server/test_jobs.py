"""Jobs as clients come and go: joined, cancelled, waited for, urgent; many, and too many."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from cuzk.engine.jobs import Priority, Status
from cuzk.engine.settings import Settings
from cuzk.errors import DeviceError
from cuzk.server import proving_pb2 as pb
from cuzk.server.book import Book, Entry
from cuzk.server.daemon import Daemon
from cuzk.server.payload import Payload
from cuzk.server.service import DURABLE_KEY, POSITION_KEY
from tests.engine.fakes import raises, stalls, wrong
from tests.server.fakes import MIB, FakeProver, proof_of
from tests.server.hall import Caller, porep, refused, until
from tests.server.test_service import CANCELLED, COMPLETED, played

FAILED, TIMEOUT = pb.AwaitProofResponse.FAILED, pb.AwaitProofResponse.TIMEOUT
#: One job at a time.
ONE = Settings(partition_workers=1, gpu_workers_per_device=1, synthesis_lookahead=1)


def under_way(daemon: Daemon) -> list[str]:
    return [entry.id for entry in daemon.book.under_way]


async def begun(daemon: Daemon, count: int) -> None:
    await until(lambda: len(under_way(daemon)) == count)


def test_the_same_request_is_proven_once_for_all_who_ask(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submit = porep("a", sector_number=300)
        answers = await asyncio.gather(*(caller.prove(submit) for _ in range(20)))
        assert {answer.result.proof for answer in answers} == {proof_of(submit)}
        assert (await caller.prove(submit)).result.proof == proof_of(submit)  # from what is kept
        assert daemon.book.completed["porep-c2"] == 1

    played(tmp_path, scenario)


def test_a_client_that_goes_away_stops_its_job(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        go_on = daemon.prover.hold()
        gone = caller.prove(porep("gone", registered_proof=10))
        await begun(daemon, 1)
        late = caller.prove(porep("late", registered_proof=10), timeout=2.0)  # by far enough to arrive
        await begun(daemon, 2)
        gone.cancel()
        assert (await refused(late))[0] is grpc.StatusCode.DEADLINE_EXCEEDED
        await begun(daemon, 0)
        await until(lambda: daemon.prover.status().jobs == ())
        go_on.set()
        assert daemon.book.cancelled["porep-c2"] == 2 and daemon.book.failed.total() == 0

    played(tmp_path, scenario)


def test_a_client_that_goes_away_leaves_the_job_to_others_who_wait(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        go_on, submit = daemon.prover.hold(), porep("a")
        gone, stays = caller.prove(submit), caller.prove(submit)
        await until(lambda: [entry.callers for entry in daemon.book.under_way] == [2])
        gone.cancel()
        await until(lambda: [entry.callers for entry in daemon.book.under_way] == [1])
        go_on.set()
        assert (await stays).result.proof == proof_of(submit)
        go_on, kept = daemon.prover.hold(), porep("b")
        job_id = (await caller.call("SubmitProof", kept)).job_id
        waiter = caller.call("AwaitProof", pb.AwaitProofRequest(job_id=job_id))
        await until(lambda: [entry.callers for entry in daemon.book.under_way] == [1])
        waiter.cancel()
        await until(lambda: [entry.callers for entry in daemon.book.under_way] == [0])
        go_on.set()
        result = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id=job_id))
        assert result.proof == proof_of(kept)

    played(tmp_path, scenario)


def test_whoever_joins_keeps_the_job_from_the_moment_it_is_joined(tmp_path: Path) -> None:
    """The one who began it goes away before the journal has told the other whether the job is durable."""

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        go_on, submit, written = daemon.prover.hold(), porep("a"), asyncio.Event()
        gone = caller.prove(submit)
        await until(lambda: [entry.callers for entry in daemon.book.under_way] == [1])
        asked: list[Entry] = []

        async def is_durable(entry: Entry) -> bool:
            asked.append(entry)
            await written.wait()
            return True

        daemon.service._is_durable = is_durable
        stays = asyncio.ensure_future(caller.prove(submit))
        await until(lambda: bool(asked))
        counted = asked[0].callers
        gone.cancel()
        await until(lambda: asked[0].callers < counted)
        written.set()
        go_on.set()
        assert (await stays).result.proof == proof_of(submit)

    played(tmp_path, scenario)


def test_who_stops_waiting_at_its_time_leaves_the_job_alone_though_nobody_else_waits() -> None:
    async def scenario() -> None:
        book = Book()
        entry = book.entry("a", (1, "a", "digest"), Priority.NORMAL, Payload(), book.now())
        book.begin(entry)
        gone, late = asyncio.ensure_future(book.wait(entry)), asyncio.ensure_future(book.wait(entry, 0.05))
        await asyncio.sleep(0)
        assert entry.callers == 2
        gone.cancel()
        assert await late is None
        assert (entry.callers, entry.outcome, list(book.under_way)) == (0, None, [entry])
        last = asyncio.ensure_future(book.wait(entry))
        await asyncio.sleep(0)
        last.cancel()
        with suppress(asyncio.CancelledError):
            await last
        assert entry.outcome is not None and entry.outcome.status is Status.CANCELLED

    asyncio.run(scenario())


def test_waiting_ends_at_its_time_and_the_job_does_not(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        go_on, submit = daemon.prover.hold(), porep("a")
        await caller.call("SubmitProof", submit)
        late = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id="a", timeout_ms=50))
        assert late.status == TIMEOUT and "not done" in late.error_message and late.proof == b""
        go_on.set()
        done = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id="a", timeout_ms=30_000))
        assert (done.status, done.proof) == (COMPLETED, proof_of(submit))

    played(tmp_path, scenario)


def test_cancelling_answers_everyone_who_waits(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        go_on = daemon.prover.hold()
        calls = [asyncio.ensure_future(caller.prove(porep("a"))) for _ in range(2)]
        waits = caller.prove(porep("b"))
        # All three: one that comes after the cancelling would begin its job anew.
        await until(lambda: {entry.id: entry.callers for entry in daemon.book.under_way} == {"a": 2, "b": 1})
        for job_id in ("a", "b"):
            ask = pb.CancelProofRequest(job_id=job_id)
            assert (await caller.call("CancelProof", ask)).was_running
            assert not (await caller.call("CancelProof", ask)).was_running
        results = [(await call).result for call in (*calls, waits)]
        assert {result.status for result in results} == {CANCELLED}
        assert not (await caller.call("CancelProof", pb.CancelProofRequest(job_id="none"))).was_running
        await until(lambda: daemon.prover.status().jobs == ())
        go_on.set()

    played(tmp_path, scenario)


def test_a_cancelled_or_failed_job_is_done_anew_when_it_is_sent_again(tmp_path: Path) -> None:
    prover = FakeProver()
    prover.setup.fates["cuda:0"] = deque([raises(ValueError("a mistake"))])

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submit = porep("a")
        first = (await caller.prove(submit)).result
        assert first.status == FAILED and "a mistake" in first.error_message and first.proof == b""
        kept = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id="a"))
        assert kept.status == FAILED
        assert (await caller.prove(submit)).result.proof == proof_of(submit)
        kept = await caller.call("AwaitProof", pb.AwaitProofRequest(job_id="a"))
        assert kept.status == COMPLETED

    played(tmp_path, scenario, prover)


def test_whoever_asks_while_a_job_is_done_anew_waits_for_the_new_result(tmp_path: Path) -> None:
    prover = FakeProver()
    prover.setup.fates["cuda:0"] = deque([raises(ValueError("a mistake"))])

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submit = porep("a")
        assert (await caller.prove(submit)).result.status == FAILED
        go_on = daemon.prover.hold()
        again = asyncio.ensure_future(caller.prove(submit))
        await until(lambda: [entry.callers for entry in daemon.book.under_way] == [1])
        asking = asyncio.ensure_future(caller.call("AwaitProof", pb.AwaitProofRequest(job_id="a")))
        await until(lambda: [entry.callers for entry in daemon.book.under_way] == [2])
        go_on.set()
        asked = await asking
        assert (asked.status, asked.proof) == (COMPLETED, proof_of(submit))
        await again

    played(tmp_path, scenario, prover)


def test_proofs_of_all_kinds_at_once_each_get_their_own(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submits = [
            pb.SubmitProofRequest(
                request_id="same", proof_kind=1 + k % 4, vanilla_proofs=[b"%d" % k], sector_number=5
            )
            for k in range(40)
        ]
        answers = await asyncio.gather(*map(caller.prove, submits))
        for submit, answer in zip(submits, answers, strict=True):
            assert answer.result.proof == proof_of(submit)

    played(tmp_path, scenario)


@pytest.mark.slow
def test_a_request_as_large_as_curios_client_may_send_is_taken(tmp_path: Path) -> None:
    """And one that is larger is refused by gRPC itself."""

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submit = porep("large", bytes((256 << 20) - 64))
        assert (await caller.prove(submit)).result.status == COMPLETED
        code, _ = await refused(caller.prove(porep("larger", bytes(256 << 20))))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await caller.prove(porep("a"))).result.status == COMPLETED

    played(tmp_path, scenario, FakeProver(host_bytes=4096 * MIB))


def test_each_failure_is_counted_once_however_many_partitions_it_has(tmp_path: Path) -> None:
    prover = FakeProver()
    prover.setup.fates["cuda:0"] = deque([raises(DeviceError("broken"))] * 3)

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        result = (await caller.prove(porep("a", registered_proof=10))).result
        assert result.status == FAILED
        assert (await caller.call("GetStatus")).total_proofs_failed == 1

    played(tmp_path, scenario, prover)


def test_a_wrong_proof_of_any_kind_never_reaches_a_client(tmp_path: Path) -> None:
    prover = FakeProver(("cuda:0", "cuda:1"))
    prover.setup.fates["cuda:0"] = deque([wrong] * 2)

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        for number in (1, 2, 3, 4):
            submit = pb.SubmitProofRequest(proof_kind=number, vanilla_proofs=[b"x"], registered_proof=4)
            result = (await caller.prove(submit)).result
            assert (result.status, result.proof) == (COMPLETED, proof_of(submit))

    played(tmp_path, scenario, prover)


def overtaking(tmp_path: Path, urgent: pb.SubmitProofRequest, *, of: int) -> None:
    """Twelve jobs are there, the device stands still with the first; of them and the urgent one, which makes
    `of`, that one ends among the first four.
    """
    prover, all_there = FakeProver(settings=ONE), threading.Event()
    prover.setup.fates["cuda:0"] = deque([stalls(all_there)])

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        ended: list[str] = []
        daemon.book.on_ended.append(lambda entry: ended.append(entry.id))
        calls = [asyncio.ensure_future(caller.prove(porep(str(k), sector_number=100))) for k in range(12)]
        await begun(daemon, 12)
        calls.append(asyncio.ensure_future(caller.prove(urgent)))
        await begun(daemon, of)
        in_hand = (urgent.request_id, Priority.CRITICAL)
        await until(lambda: in_hand in [(job.job_id, job.priority) for job in daemon.prover.status().jobs])
        all_there.set()
        await asyncio.gather(*calls)
        assert ended.index(urgent.request_id) <= 3

    played(tmp_path, scenario, prover)


def test_urgent_jobs_go_first_even_past_those_that_wait_outside_the_engine(tmp_path: Path) -> None:
    winning = pb.SubmitProofRequest(request_id="now", proof_kind=4, vanilla_proofs=[b"x"])
    overtaking(tmp_path, winning, of=13)


def test_a_job_that_is_wanted_sooner_by_another_goes_sooner(tmp_path: Path) -> None:
    overtaking(tmp_path, porep("11", sector_number=100, priority=pb.CRITICAL), of=12)


def test_overload_queues_and_tells_how_many_come_first(tmp_path: Path) -> None:
    """Of 24 inputs the engine's memory holds two; the device stands still until all are there."""
    prover, all_there = FakeProver(host_bytes=64 * MIB), threading.Event()
    prover.setup.fates["cuda:0"] = deque([stalls(all_there)] * 2)

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submits = [porep(str(k), b"%4d" % k + bytes(3 * MIB)) for k in range(24)]
        calls = [caller.prove(submit) for submit in submits]
        await begun(daemon, 24)
        all_there.set()
        positions = []
        for submit, call in zip(submits, calls, strict=True):
            assert (await call).result.proof == proof_of(submit)
            said = dict(iter(await call.initial_metadata()))
            positions.append(int(said[POSITION_KEY]))
            assert said[DURABLE_KEY] == "yes"
        assert max(positions) > 15 and min(positions) == 0
        last = await caller.call("SubmitProof", porep("last"))
        assert (last.job_id, last.queue_position, last.assigned_gpu) == ("last", 0, "")
        assert daemon.store.in_memory == 0
        await until(lambda: daemon.store.on_disk == 0)

    played(tmp_path, scenario, prover, journal=tmp_path / "journal")


def test_an_urgent_job_that_fits_passes_one_that_does_not(tmp_path: Path) -> None:
    """The engine's memory for inputs is 8 MiB: of the large ones it takes one at a time."""

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        ended: list[str] = []
        daemon.book.on_ended.append(lambda entry: ended.append(entry.id))
        go_on, large = daemon.prover.hold(), [porep(str(k), bytes(5 * MIB)) for k in range(3)]
        calls = [asyncio.ensure_future(caller.prove(submit)) for submit in large]
        await begun(daemon, 3)
        await until(lambda: len(daemon.prover.status().jobs) == 1)
        urgent = pb.SubmitProofRequest(request_id="now", proof_kind=4, vanilla_proofs=[b"x"])
        calls.append(asyncio.ensure_future(caller.prove(urgent)))
        await until(lambda: "now" in [job.job_id for job in daemon.prover.status().jobs])
        go_on.set()
        answers = await asyncio.gather(*calls)
        assert {answer.result.status for answer in answers} == {COMPLETED}
        assert ended.index("now") <= 1

    played(tmp_path, scenario, FakeProver(host_bytes=64 * MIB))


def test_without_room_on_the_disk_requests_stay_in_memory_and_clients_are_told(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        call = caller.prove(porep("a", bytes(MIB)))
        assert (await call).result.status == COMPLETED
        assert dict(iter(await call.initial_metadata()))[DURABLE_KEY] == "no"
        code, text = await refused(caller.prove(porep("b", bytes(4 * MIB))))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED and "no room for this request" in text
        assert daemon.store.in_memory == 0

    played(tmp_path, scenario, journal=tmp_path / "journal", journal_bytes=MIB // 2, memory_bytes=3 * MIB)


def test_results_are_forgotten_by_number_and_by_age(tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        for k in range(4):
            await caller.prove(porep(str(k)))
        code, _ = await refused(caller.call("AwaitProof", pb.AwaitProofRequest(job_id="0")))
        assert code is grpc.StatusCode.NOT_FOUND
        assert (await caller.call("AwaitProof", pb.AwaitProofRequest(job_id="3"))).status == COMPLETED
        daemon.book.kept_s = -1.0
        code, _ = await refused(caller.call("AwaitProof", pb.AwaitProofRequest(job_id="3")))
        assert code is grpc.StatusCode.NOT_FOUND

    played(tmp_path, scenario, results_kept=3)


@pytest.mark.parametrize("name", ["wdpost-1-0-[1 2 3 4 5 6 7 8]", "a,b", "ü\n", ""])
def test_any_name_of_a_request_will_do(name: str, tmp_path: Path) -> None:
    async def scenario(daemon: Daemon, caller: Caller) -> None:
        submit = porep(name)
        result = (await caller.prove(submit)).result
        assert result.proof == proof_of(submit)
        assert result.job_id == name if name else re.fullmatch("[0-9a-f]{16}", result.job_id)

    played(tmp_path, scenario)
