"""The daemon as a process: its start, its end, what it leaves and finds."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cuzk.errors import CuzkError
from cuzk.server import proving_pb2 as pb
from cuzk.server.client import Client
from tests.server.fakes import proof_of, waiting_for
from tests.server.hall import porep
from tests.server.processes import READY, SERVING, SOON_S, daemon, health, path_of


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix://{tmp_path / 'run' / 'cuzk.sock'}"


def test_a_signal_lets_running_jobs_end_refuses_new_ones_and_exits_with_zero(
    address: str, tmp_path: Path
) -> None:
    with daemon("--listen", address) as process, ThreadPoolExecutor() as threads, Client(address) as client:
        process.line(READY)
        assert health(address) == SERVING
        submit = porep("slow", waiting_for(tmp_path / "go on"))
        going = threads.submit(client.prove, submit)
        process.line("job dequeued")
        process.signal(signal.SIGINT)
        process.line("received SIGINT, shutting down")
        assert health(address) != SERVING
        with pytest.raises(CuzkError, match="shutting down"):
            client.prove(porep("new"))
        (tmp_path / "go on").touch()
        assert going.result(SOON_S).proof == proof_of(submit)
        assert process.ends() == 0
        assert not path_of(address).exists()
        assert "shut down" in process.lines[-1]


def test_a_second_signal_ends_at_once(address: str) -> None:
    with daemon("--listen", address, "--drain-s", "60") as process, ThreadPoolExecutor() as threads:
        process.line(READY)
        with Client(address) as client:
            going = threads.submit(client.prove, porep("slow", sector_number=30_000))
            process.line("job dequeued")
            process.signal(signal.SIGTERM)
            process.line("shutting down")
            time.sleep(1.2)
            begin = time.monotonic()
            process.signal(signal.SIGTERM)
            assert process.ends() == 128 + signal.SIGTERM
            assert time.monotonic() - begin < 10
            with pytest.raises(CuzkError):
                going.result(SOON_S)


def test_a_signal_that_comes_twice_within_a_second_is_one(address: str, tmp_path: Path) -> None:
    """`timeout`, for one, sends it to the process and to its group."""
    with daemon("--listen", address) as process, ThreadPoolExecutor() as threads, Client(address) as client:
        process.line(READY)
        submit = porep("slow", waiting_for(tmp_path / "go on"))
        going = threads.submit(client.prove, submit)
        process.line("job dequeued")
        process.signal(signal.SIGTERM)
        process.line("shutting down")
        process.signal(signal.SIGTERM)
        time.sleep(0.2)
        (tmp_path / "go on").touch()
        assert going.result(SOON_S).proof == proof_of(submit)
        assert process.ends() == 0


def test_a_socket_that_a_killed_daemon_left_is_taken_over(address: str) -> None:
    with daemon("--listen", address) as first:
        first.line(READY)
        first.signal(signal.SIGKILL)
        first.ends()
    assert path_of(address).exists()
    with daemon("--listen", address) as second:
        second.line(READY)
        with Client(address) as client:
            assert client.prove(porep("a")).status == pb.AwaitProofResponse.COMPLETED


def test_an_accepted_job_survives_kill_9_and_is_not_proven_twice(address: str, tmp_path: Path) -> None:
    arguments = ("--listen", address, "--journal", str(tmp_path / "journal"))
    slow, quick = porep("slow", waiting_for(tmp_path / "go on")), porep("quick")
    with daemon(*arguments) as first, ThreadPoolExecutor() as threads:
        first.line(READY)
        with Client(address) as client:
            done = client.prove(quick)
            going = threads.submit(client.prove, slow)
            first.line("job dequeued for proving job_id=slow")
            first.signal(signal.SIGKILL)
            with pytest.raises(CuzkError, match="cannot be reached"):
                going.result(SOON_S)
    with daemon(*arguments) as second:
        second.line("job taken up again job_id=slow")
        second.line(READY)
        (tmp_path / "go on").touch()
        with Client(address) as client:
            assert client.prove(quick) == done  # from the journal, its times too
            assert client.prove(slow).proof == proof_of(slow)
            assert client.status().total_proofs_completed == 1
        second.signal(signal.SIGTERM)
        assert second.ends() == 0
    assert [path.suffix for path in (tmp_path / "journal").iterdir() if path.suffix == ".request"] == []


def test_timeline_lines_go_to_stderr_and_nothing_else_does(address: str) -> None:
    with daemon("--listen", address) as process, Client(address) as client:
        process.line(READY)
        client.prove(porep("porep-1000-7", registered_proof=2))
        process.signal(signal.SIGTERM)
        assert process.ends() == 0
        assert process.errors and all(line.startswith("TIMELINE,") for line in process.errors)
        events = [line.split(",")[2] for line in process.errors]
        assert events.count("GPU_END") == 2 and events[-1] == "ASSEMBLED"


def test_a_reader_that_dies_costs_only_the_input_that_killed_it(address: str) -> None:
    with daemon("--listen", address) as process, Client(address) as client:
        process.line(READY)
        with pytest.raises(CuzkError, match="died of it"):
            client.prove(porep("deadly", b"deadly"))
        assert client.prove(porep("a")).status == pb.AwaitProofResponse.COMPLETED
        assert process.popen.poll() is None and os.path.exists(path_of(address))
