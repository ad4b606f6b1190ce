"""Curio's side, in Go, against the daemon: every end of a proof is read as Curio reads it.

Slow: the first build compiles gRPC for Go, a minute of one core.
"""

from __future__ import annotations

import base64
import signal
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import cuzk
from cuzk.server import proving_pb2 as pb
from tests.interop.go_client import GoClient, NoGoError, build, connected
from tests.server.fakes import proof_of
from tests.server.processes import READY, Process, daemon, path_of, served
from tests.server.requests import C1, spoilt_c1

pytestmark = pytest.mark.slow

SOON_S = 60.0
LONG_S = 900.0  # the first proof on a machine compiles kernels
SEED = bytes(range(250, 256)) + bytes(26)


@pytest.fixture(scope="session")
def curio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build(tmp_path_factory.mktemp("go"))
    except NoGoError as error:
        pytest.skip(str(error))


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix://{tmp_path / 'cuzk.sock'}"


def task(vanilla: bytes = b"c1", *, takes_ms: int = 0, **fields: Any) -> dict[str, Any]:
    """Of the PoRep task, for a fake daemon: the sector's number is what its proof takes."""
    given = {"caller": "porep", "miner": 1000, "sector": takes_ms, "vanilla": [vanilla]}
    return {**given, "sector_size": 2048, "registered_proof": 1, **fields}


def submit_of(answer: dict[str, Any], vanilla: bytes = b"c1") -> pb.SubmitProofRequest:
    """What the client sent."""
    said = answer["request"]
    for name in ("randomness", "comm_r_old", "comm_r_new", "comm_d_new"):
        said[name] = base64.b64decode(said.get(name, ""))
    return pb.SubmitProofRequest(**said, vanilla_proof=vanilla)


def ended(answer: Future[dict[str, Any]], timeout_s: float = SOON_S) -> dict[str, Any]:
    return answer.result(timeout_s)


def error_of(answer: Future[dict[str, Any]]) -> tuple[str, str]:
    """Code and text of what must not succeed."""
    said = ended(answer)
    assert said["error"] and not said["proof"], said
    return said["code"], said["error"]


def begun(process: Process, number: int = 1) -> None:
    """Once so many jobs have been handed to the engine."""
    end = time.monotonic() + SOON_S
    while sum("job dequeued" in line for line in process.lines) < number:
        assert time.monotonic() < end, process.lines
        time.sleep(0.01)


def test_a_sector_is_proven_and_its_errors_come_back_over_a_real_daemon(
    curio: Path, sector_params: Path, home_of_old: Path, address: str
) -> None:
    sector = {"sector": 7, "registered_proof": 5}
    options = ("--listen", address, "--device", "cpu", "--params", str(sector_params))
    with served(*options, patience_s=LONG_S) as process, connected(curio, address) as client:
        process.line(READY)
        proven = ended(client.prove(task(C1.read_bytes(), **sector)), LONG_S)
        assert (proven["code"], proven["error"]) == ("OK", "")
        assert len(proven["proof"]) == 192
        assert cuzk.verify(C1, proven["proof"], params=sector_params).partitions == 1
        for vanilla, says in (
            (spoilt_c1(), "partition 0, challenge 0"),
            (b"{}", "porep-1000-7"),
            (b"", "vanilla_proof is empty"),
        ):
            code, text = error_of(client.prove(task(vanilla, **sector)))
            assert code == "InvalidArgument" and says in text, text
        process.signal(signal.SIGTERM)
        assert process.ends() == 0


@pytest.mark.parametrize(
    ("caller", "request_id", "kind", "priority"),
    [
        ("porep", "porep-1000-20", pb.POREP_SEAL_COMMIT, pb.NORMAL),
        ("ps-porep", "ps-porep-1000-20-33", pb.POREP_SEAL_COMMIT, pb.NORMAL),
        ("snap", "snap-1000-20", pb.SNAP_DEALS_UPDATE, pb.NORMAL),
        ("ps-snap", "ps-snap-1000-20-33", pb.SNAP_DEALS_UPDATE, pb.NORMAL),
        ("window", "wdpost-1000-5-[250 251 252 253 254 255 0 0]", pb.WINDOW_POST_PARTITION, pb.HIGH),
        ("winning", "winpost-1000-fafbfcfdfeff0000", pb.WINNING_POST, pb.CRITICAL),
    ],
)
def test_every_task_of_curio_gets_the_proof_of_its_own_request(
    curio: Path, address: str, caller: str, request_id: str, kind: int, priority: int
) -> None:
    given = {"task_id": 33, "partition": 5, "randomness": SEED}
    given |= {name: bytes([k]) * 32 for k, name in enumerate(("comm_r_old", "comm_r_new", "comm_d_new"))}
    with daemon("--listen", address) as process, connected(curio, address) as client:
        process.line(READY)
        answer = ended(client.prove(task(b"piece", takes_ms=20, caller=caller, **given)))
        assert answer["error"] == ""
        submit = submit_of(answer, b"")
        submit.ClearField("vanilla_proof")
        if "porep" in caller:
            submit.vanilla_proof = b"piece"
        else:
            submit.vanilla_proofs.append(b"piece")
        assert (submit.request_id, submit.proof_kind, submit.priority) == (request_id, kind, priority)
        assert answer["proof"] == proof_of(submit)
        process.line(f"job_id={request_id}" if " " not in request_id else "wdpost-1000-5-[250 251")


def test_partitions_of_one_deadline_share_a_name_and_get_their_own_proofs(curio: Path, address: str) -> None:
    """As Curio sends them: equal ids, other sectors."""
    pieces = [[b"sectors of %d" % k, b"and more"] for k in range(6)]
    with daemon("--listen", address) as process, connected(curio, address) as client:
        process.line(READY)
        given = {"caller": "window", "randomness": SEED, "registered_proof": 3}
        answers = [client.prove(task(vanilla=b"", **given) | {"vanilla": piece}) for piece in pieces]
        for answer, piece in zip(map(ended, answers), pieces, strict=True):
            submit = submit_of(answer, b"")
            submit.vanilla_proofs.extend(piece)
            assert answer["proof"] == proof_of(submit)
        assert len({answer.result()["request"]["request_id"] for answer in answers}) == 1


def test_an_input_at_fault_is_an_error_that_names_the_place(curio: Path, address: str) -> None:
    with daemon("--listen", address) as process, connected(curio, address) as client:
        process.line(READY)
        code, text = error_of(client.prove(task(b"bad")))
        assert code == "InvalidArgument" and "partition 3, challenge 7" in text
        assert ended(client.prove(task()))["code"] == "OK"


def test_a_task_that_curio_stops_stops_the_job(curio: Path, address: str) -> None:
    with daemon("--listen", address) as process, connected(curio, address) as client:
        process.line(READY)
        going = client.prove(task(takes_ms=30_000))
        begun(process)
        client.cancel(going)
        assert error_of(going)[0] == "Canceled"
        process.line("job cancelled")
        assert ended(client.has_capacity())["has_capacity"]


def test_a_deadline_ends_the_call_and_the_job(curio: Path, address: str) -> None:
    with daemon("--listen", address) as process:
        process.line(READY)
        with connected(curio, address) as client:  # the first request waits for a process that reads it
            assert ended(client.prove(task(b"first")))["code"] == "OK"
        with connected(curio, address, prove_timeout="1500ms") as client:
            code, _ = error_of(client.prove(task(takes_ms=30_000)))
            assert code == "DeadlineExceeded"
            process.line("job cancelled")
            assert ended(client.prove(task()))["code"] == "OK"


def test_a_curio_that_dies_leaves_no_job_behind(curio: Path, address: str) -> None:
    with daemon("--listen", address) as process:
        process.line(READY)
        doomed = GoClient(curio, address, prove_timeout="30m", max_pending=10)
        doomed.prove(task(takes_ms=30_000))
        begun(process)
        doomed.kill()
        doomed.close()
        process.line("job cancelled")


def test_capacity_counts_what_is_queued_and_what_is_under_way(curio: Path, address: str) -> None:
    with daemon("--listen", address) as process:
        process.line(READY)
        with connected(curio, address, max_pending=3) as client, connected(curio, address) as other:
            assert ended(client.has_capacity())["has_capacity"]
            going = [other.prove(task(b"%d" % k, takes_ms=4000)) for k in range(3)]
            begun(process, 3)
            assert not ended(client.has_capacity())["has_capacity"]
            for answer in going:
                other.cancel(answer)
                assert error_of(answer)[0] == "Canceled"
            assert ended(client.has_capacity())["has_capacity"]


def test_a_daemon_that_restarts_is_unavailable_meanwhile_and_the_same_channel_finds_it_again(
    curio: Path, address: str, tmp_path: Path
) -> None:
    arguments = ("--listen", address, "--journal", str(tmp_path / "journal"))
    slow = task(b"slow", takes_ms=1500)
    with daemon(*arguments) as first, connected(curio, address) as client:
        first.line(READY)
        assert ended(client.prove(task()))["code"] == "OK"
        going = client.prove(slow)
        begun(first, 2)
        first.signal(signal.SIGKILL)
        assert error_of(going)[0] == "Unavailable"
        assert error_of(client.prove(slow))[0] == "Unavailable"  # at once: nothing waits for a daemon
        with daemon(*arguments) as second:
            second.line(READY)
            answer = retried(client, slow)
            assert answer["proof"] == proof_of(submit_of(answer, b"slow"))
            assert sum("job dequeued" in line for line in second.lines) == 1  # joined, not proven twice


def retried(client: GoClient, wanted: dict[str, Any]) -> dict[str, Any]:
    """As Curio's task engine: again after a while, since the channel waits a second before it connects."""
    for _ in range(10):
        answer = ended(client.prove(wanted))
        if answer["code"] != "Unavailable":
            return answer
        time.sleep(1)
    raise AssertionError(answer)


def test_a_daemon_that_drains_hands_back_what_it_will_not_do(curio: Path, address: str) -> None:
    with daemon("--listen", address, "--drain-s", "0") as process, connected(curio, address) as client:
        process.line(READY)
        going = client.prove(task(takes_ms=30_000))
        begun(process)
        process.signal(signal.SIGTERM)
        code, text = error_of(going)
        assert code == "Unavailable" and "hands this proof back" in text
        process.ends()
        assert not path_of(address).exists()


def test_inputs_near_the_limit_of_a_message_are_taken_over_tcp(curio: Path) -> None:
    with daemon("--listen", "127.0.0.1:0", "--host-mib", "4096") as process:
        host = process.line("listening on TCP").rpartition("addr=")[2]
        process.line(READY)
        with connected(curio, host) as client:  # no scheme: the name goes by dns
            for mib in (100, 250):
                vanilla = bytes([mib]) * (mib << 20)
                answer = ended(client.prove(task(vanilla)), LONG_S)
                assert answer["error"] == "" and answer["proof"] == proof_of(submit_of(answer, vanilla))
            code, _ = error_of(client.prove(task(bytes(257 << 20))))
            assert code == "ResourceExhausted"
            assert ended(client.prove(task()))["code"] == "OK"
