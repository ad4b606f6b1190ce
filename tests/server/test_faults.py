"""What goes wrong around a daemon: whatever it is, a proof is answered afterwards, and rightly."""

from __future__ import annotations

import os
import random
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pytest

from cuzk.errors import CuzkError
from cuzk.server import proving_pb2 as pb
from cuzk.server.client import Client
from cuzk.server.contract import SERVICE
from tests.server.fakes import proof_of, waiting_for
from tests.server.hall import porep
from tests.server.processes import READY, SOON_S, Process, daemon, path_of, until

COMPLETED = pb.AwaitProofResponse.COMPLETED
MIB = 1 << 20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes(3) + b"\4" + bytes(5)  # an empty frame of them
JUNK = (
    b"",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),  # the beginning of TLS
    PREFACE[:10],
    PREFACE,
    PREFACE + SETTINGS + b"\xff" * 100,
    PREFACE + SETTINGS + bytes(3) + b"\1\4" + bytes(3) + b"\1",  # headers without any
    os.urandom(1000),
)


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix://{tmp_path / 'cuzk.sock'}"


@contextmanager
def on_tcp(*arguments: str) -> Iterator[tuple[Process, tuple[str, int]]]:
    """A fake daemon, ready, and where it listens."""
    with daemon("--listen", "127.0.0.1:0", *arguments) as process:
        host, _, port = process.line("listening on TCP").rpartition("addr=")[2].rpartition(":")
        process.line(READY)
        yield process, (host, int(port))


def still_proves(process: Process, address: str, name: str = "afterwards") -> None:
    assert process.popen.poll() is None
    with Client(address) as client:
        submit = porep(name, os.urandom(16))
        assert client.prove(submit).proof == proof_of(submit)


# ---- what clients send ----


def test_bytes_that_are_no_message_are_refused_and_nothing_else_happens() -> None:
    no_message = b"\xff" * 20
    with on_tcp() as (process, (host, port)), grpc.insecure_channel(f"{host}:{port}") as channel:

        def code(method: str) -> grpc.StatusCode:
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(f"/{SERVICE}/{method}")(no_message, timeout=SOON_S)
            return caught.value.code()

        for method in ("AwaitProof", "CancelProof", "PreloadSRS", "EvictSRS", "GetStatus", "GetMetrics"):
            assert code(method) in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
        for method in ("Prove", "SubmitProof"):
            assert code(method) is grpc.StatusCode.INVALID_ARGUMENT
        still_proves(process, f"{host}:{port}")


def test_a_message_above_the_limit_is_refused_before_it_is_received() -> None:
    with on_tcp() as (process, (host, port)):
        unbound = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(f"{host}:{port}", options=unbound) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(f"/{SERVICE}/Prove")(bytes((256 << 20) + 1), timeout=SOON_S)
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        still_proves(process, f"{host}:{port}")


def test_a_client_that_reads_no_answers_holds_nobody_up_and_may_read_them_later() -> None:
    """Its window for answers is closed from the start; the daemon keeps what it cannot send."""
    path, calls = f"/{SERVICE}/GetStatus".encode(), 50
    with on_tcp() as (process, where), socket.create_connection(where) as slow:
        slow.sendall(PREFACE + _window(0) + b"".join(_call(path, 2 * k + 1) for k in range(calls)))
        still_proves(process, f"{where[0]}:{where[1]}")
        slow.settimeout(SOON_S)
        slow.sendall(_window(1 << 20))
        answers = b""
        while answers.count(b"cuda:0") < calls:
            answers += slow.recv(1 << 16) or pytest.fail("the connection was closed")


def _window(size: int) -> bytes:
    """A frame of settings: how much of each answer may be sent."""
    return bytes([0, 0, 6, 4, 0, 0, 0, 0, 0]) + bytes([0, 4]) + size.to_bytes(4, "big")


def _call(path: bytes, stream: int) -> bytes:
    """Frames of HTTP/2: a call with an empty message. Headers literally, without an index."""

    def header(name: bytes, value: bytes) -> bytes:
        return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value

    def frame(kind: int, flags: int, payload: bytes) -> bytes:
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"x")]
    headers += [(b"te", b"trailers"), (b"content-type", b"application/grpc")]
    return frame(1, 4, b"".join(header(*pair) for pair in headers)) + frame(0, 1, bytes(5))


def test_connections_that_say_nothing_or_stop_halfway_hold_nobody_up() -> None:
    with on_tcp() as (process, where), ExitStack() as stack:
        for k in range(400):
            half = stack.enter_context(socket.create_connection(where))
            half.sendall(JUNK[k % len(JUNK)])
        still_proves(process, f"{where[0]}:{where[1]}")


@pytest.mark.stress
@pytest.mark.timeout(300)
def test_ten_thousand_junk_connections_leave_a_daemon_that_proves() -> None:
    with on_tcp() as (process, where):
        before = _open_files(process)

        def junk(number: int) -> None:
            with ExitStack() as stack:  # some stay open together
                for k in range(50):
                    one = stack.enter_context(socket.create_connection(where))
                    one.sendall(JUNK[(number + k) % len(JUNK)])

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(junk, range(200)))
            still_proves(process, f"{where[0]}:{where[1]}")
        until(lambda: _open_files(process) < before + 50, process)


def _open_files(process: Process) -> int:
    return len(os.listdir(f"/proc/{process.popen.pid}/fd"))


# ---- what the machine does ----


def _small_disk(folder: Path, stack: ExitStack) -> dict[str, object]:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    stack.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
    return {}


def _small_files(folder: Path, stack: ExitStack) -> dict[str, object]:
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 10, 256 << 10))}


@pytest.mark.parametrize("lack", [_small_disk, _small_files], ids=["small disk", "small files"])
def test_a_full_disk_costs_the_journal_and_no_proof(
    lack: Callable[[Path, ExitStack], dict[str, object]], address: str, tmp_path: Path
) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    with ExitStack() as stack:
        more = lack(folder, stack)
        process = stack.enter_context(daemon("--listen", address, "--journal", str(folder), **more))
        process.line(READY)
        threads = stack.enter_context(ThreadPoolExecutor(12))
        client = stack.enter_context(Client(address))
        go_on = tmp_path / "go on"
        submits = [porep(f"big-{k}", waiting_for(go_on, os.urandom(MIB))) for k in range(12)]
        going = [threads.submit(client.prove, submit) for submit in submits]
        try:
            assert "they stay in memory" in process.line("requests cannot be written")
        finally:
            go_on.touch()
        for submit, result in zip(submits, going, strict=True):
            assert result.result(SOON_S).proof == proof_of(submit)
        still_proves(process, address)
        process.signal(signal.SIGTERM)
        assert process.ends() == 0


@pytest.mark.stress
@pytest.mark.timeout(600)
def test_whenever_a_daemon_is_killed_every_client_gets_its_own_proof_in_the_end(
    address: str, tmp_path: Path
) -> None:
    """Clients send again, as Curio does; the same requests join what the journal has."""
    arguments = ("--listen", address, "--journal", str(tmp_path / "journal"), "--readers", "1")
    given = random.Random(5)
    is_over = threading.Event()

    def persist(submit: pb.SubmitProofRequest) -> bytes:
        while True:
            try:
                with Client(address) as client:
                    answer = client.prove(submit)
            except CuzkError as error:
                assert "cannot be reached" in str(error), error
                time.sleep(0.2)
                continue
            assert answer.status == COMPLETED, answer
            return bytes(answer.proof)

    def keep_killing() -> None:
        while True:
            with daemon(*arguments) as process:
                process.line(READY)
                if is_over.wait(given.uniform(0.5, 6.0)):
                    return
                process.signal(signal.SIGKILL)
                process.popen.wait()

    submits = [
        porep("same name" if k % 3 else f"job-{k}", b"input %d" % k, sector_number=given.randrange(400))
        for k in range(60)
    ]
    with ThreadPoolExecutor(1) as killer, ThreadPoolExecutor(12) as clients:
        killing = killer.submit(keep_killing)
        try:
            for submit, proof in zip(submits, clients.map(persist, submits), strict=True):
                assert proof == proof_of(submit)
        finally:
            is_over.set()
        killing.result(SOON_S)
    with daemon(*arguments) as last:  # over the socket that the last one left
        last.line(READY)
        still_proves(last, address)
        last.signal(signal.SIGTERM)
        assert last.ends() == 0
    assert not path_of(address).exists()
