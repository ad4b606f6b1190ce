"""The daemon as a process: its start, its end, what it leaves and finds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cuzk.errors import CuzkError
from cuzk.server import proving_pb2 as pb
from cuzk.server.client import Client
from tests.server.fakes import proof_of
from tests.server.hall import porep

ROOT = Path(__file__).resolve().parents[2]
SOON_S = 30.0
READY = "cuzk-daemon ready, serving on "


class Process:
    """A fake daemon; `lines` are its log so far."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-u", "-m", "tests.server.fake_daemon", *arguments]
        self.popen = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.popen.stdout, self.lines), (self.popen.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Iterator[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))

    def line(self, text: str) -> str:
        """The first line with that text, once it is there."""
        return until(lambda: next((line for line in self.lines if text in line), ""), self)

    def ends(self) -> int:
        code = self.popen.wait(SOON_S)
        for reader in self._readers:
            reader.join(SOON_S)
        return code

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)


def until(found: Callable[[], str | bool], process: Process | None = None) -> str:
    end = time.monotonic() + SOON_S
    while time.monotonic() < end:
        if value := found():
            return str(value)
        time.sleep(0.01)
    raise AssertionError(None if process is None else (process.lines, process.errors))


@contextmanager
def daemon(*arguments: str) -> Iterator[Process]:
    process = Process(*arguments)
    try:
        yield process
    finally:
        process.popen.kill()
        process.popen.wait()
        for stream in (process.popen.stdout, process.popen.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix://{tmp_path / 'run' / 'cuzk.sock'}"


def path_of(address: str) -> Path:
    return Path(address.removeprefix("unix://"))


def health(address: str) -> int:
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return int(stub.Check(health_pb2.HealthCheckRequest(), timeout=SOON_S).status)


SERVING = health_pb2.HealthCheckResponse.SERVING


def test_a_signal_lets_running_jobs_end_refuses_new_ones_and_exits_with_zero(address: str) -> None:
    with daemon("--listen", address) as process, ThreadPoolExecutor() as threads, Client(address) as client:
        process.line(READY)
        assert health(address) == SERVING
        submit = porep("slow", sector_number=4000)
        going = threads.submit(client.prove, submit)
        process.line("job dequeued")
        process.signal(signal.SIGINT)
        process.line("received SIGINT, shutting down")
        assert health(address) != SERVING
        with pytest.raises(CuzkError, match="shutting down"):
            client.prove(porep("new"))
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
            begin = time.monotonic()
            process.signal(signal.SIGTERM)
            assert process.ends() == 128 + signal.SIGTERM
            assert time.monotonic() - begin < 10
            with pytest.raises(CuzkError):
                going.result(SOON_S)


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
    slow, quick = porep("slow", sector_number=1500), porep("quick")
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
        with Client(address) as client:
            assert client.prove(quick) == done  # from the journal, its times too
            assert client.prove(slow).proof == proof_of(slow)
            assert client.status().total_proofs_completed == 1
        second.signal(signal.SIGTERM)
        assert second.ends() == 0
    assert [path.suffix for path in (tmp_path / "journal").iterdir() if path.suffix == ".request"] == []


def test_jobs_that_are_handed_back_are_the_next_daemons(address: str, tmp_path: Path) -> None:
    arguments = ("--listen", address, "--journal", str(tmp_path / "journal"), "--drain-s", "0")
    submit = porep("slow", sector_number=800)
    with daemon(*arguments) as first, ThreadPoolExecutor() as threads:
        first.line(READY)
        with Client(address) as client:
            going = threads.submit(client.prove, submit)
            first.line("job dequeued")
            first.signal(signal.SIGTERM)
            with pytest.raises(CuzkError, match="hands this proof back"):
                going.result(SOON_S)
        assert first.ends() == 0
    with daemon(*arguments) as second:
        second.line("job taken up again job_id=slow")
        with Client(address) as client:
            assert client.prove(submit).proof == proof_of(submit)


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
