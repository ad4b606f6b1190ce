"""Who may call: tokens and certificates."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cuzk.errors import CuzkError, ResourceError, UsageError
from cuzk.server import proving_pb2 as pb
from cuzk.server.access import Access
from cuzk.server.address import parse_address
from cuzk.server.client import Client
from cuzk.server.contract import MESSAGE_LIMITS, SERVICE
from cuzk.server.daemon import Daemon
from tests.server.fakes import MIB
from tests.server.hall import SOON_S, Caller, porep, refused, running
from tests.server.processes import READY, daemon
from tests.server.test_service import COMPLETED, played

HEALTH = "/grpc.health.v1.Health"


def made(folder: Path, name: str, *, signed_by: str | None = None) -> None:
    """A key and a certificate for localhost in PEM, its own authority or another's."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    files = ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    authority = [] if signed_by is None else ["-CA", f"{signed_by}.pem", "-CAkey", f"{signed_by}.key"]
    newkey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = ["openssl", "req", "-x509", *newkey, *files, *subject, *authority]
    subprocess.run(command, check=True, cwd=folder, capture_output=True, timeout=60)


def test_whoever_does_not_know_the_token_is_refused_but_may_ask_for_health(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        for metadata in ((), (("authorization", "Bearer s3cre"),), (("authorization", "s3cret"),)):
            code, text = await refused(caller.call("GetStatus", metadata=metadata))
            assert code is grpc.StatusCode.UNAUTHENTICATED and "Bearer" in text
            code, _ = await refused(caller.prove(porep("a"), metadata=metadata))
            assert code is grpc.StatusCode.UNAUTHENTICATED
        known = (("authorization", "Bearer s3cret"),)
        assert (await caller.prove(porep("a"), metadata=known)).result.status == COMPLETED
        health = health_pb2_grpc.HealthStub(caller.channel)
        answer = await health.Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert daemon.book.completed.total() == 1

    played(tmp_path, scenario, access=Access(token_file=tmp_path / "token"))


def test_strangers_are_answered_before_what_they_send_is_received(tmp_path: Path) -> None:
    """Four of them, 64 MiB each; the daemon's largest size is the kernel's own measure."""
    (tmp_path / "token").write_text("s3cret\n")
    data = health_pb2.HealthCheckRequest(service="x" * (64 * MIB)).SerializeToString()
    target = f"unix:{tmp_path / 'cuzk.sock'}"

    def sent(method: str) -> grpc.StatusCode:
        with grpc.insecure_channel(target, options=MESSAGE_LIMITS) as channel:
            call = channel.unary_unary(method).future(data, timeout=SOON_S)
            return call.code()

    with daemon("--listen", target, "--readers", "0", "--token-file", str(tmp_path / "token")) as process:
        process.line(READY)
        before = largest_mib(process.popen.pid)
        for method, code in ((f"/{SERVICE}/Prove", "UNAUTHENTICATED"), (f"{HEALTH}/Check", "OK")):
            with ThreadPoolExecutor(4) as strangers:
                codes = {code.name for code in strangers.map(sent, [method] * 4)}
            assert (largest_mib(process.popen.pid) - before < 32, codes) == (True, {code})


def largest_mib(pid: int) -> int:
    """Of a process, the most memory that it ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def test_who_has_no_token_may_watch_health(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")

    async def scenario(daemon: Daemon, caller: Caller) -> None:
        watch = health_pb2_grpc.HealthStub(caller.channel).Watch(health_pb2.HealthCheckRequest())
        code, _ = await refused(caller.channel.unary_unary(f"{HEALTH}/Cure")(b"", timeout=SOON_S))
        assert code is grpc.StatusCode.UNIMPLEMENTED
        states = aiter(watch)
        assert (await anext(states)).status == health_pb2.HealthCheckResponse.SERVING
        daemon.end()
        assert (await anext(states)).status == health_pb2.HealthCheckResponse.NOT_SERVING

    played(tmp_path, scenario, access=Access(token_file=tmp_path / "token"))


def test_with_a_certificate_only_tls_is_spoken_and_clients_may_need_one_too(tmp_path: Path) -> None:
    made(tmp_path, "authority")
    made(tmp_path, "localhost")
    made(tmp_path, "client", signed_by="authority")
    roots, ours = (tmp_path / "localhost.pem").read_bytes(), (tmp_path / "client.pem").read_bytes()
    key = (tmp_path / "client.key").read_bytes()

    async def asked(port: str, credentials: grpc.ChannelCredentials) -> pb.ProveResponse:
        async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
            return await Caller(channel).prove(porep("a"))

    async def scenario() -> None:
        access = Access(certificate=tmp_path / "localhost.pem", key=tmp_path / "localhost.key")
        listen = parse_address("127.0.0.1:0")
        async with running(folder=tmp_path, listen=listen, access=access) as (daemon, _):
            port = daemon.bound[0].rpartition(":")[2]
            answer = await asked(port, grpc.ssl_channel_credentials(root_certificates=roots))
            assert answer.result.status == COMPLETED
            with Client(f"https://localhost:{port}", authority=tmp_path / "localhost.pem") as client:
                assert (await asyncio.to_thread(client.status)).total_proofs_completed == 1
            with Client(f"localhost:{port}") as plain, pytest.raises(CuzkError):
                await asyncio.to_thread(plain.status)
        access = Access(
            certificate=tmp_path / "localhost.pem",
            key=tmp_path / "localhost.key",
            client_ca=tmp_path / "authority.pem",
        )
        async with running(folder=tmp_path, listen=listen, access=access) as (daemon, _):
            port = daemon.bound[0].rpartition(":")[2]
            with pytest.raises(grpc.aio.AioRpcError):
                await asked(port, grpc.ssl_channel_credentials(root_certificates=roots))
            answer = await asked(port, grpc.ssl_channel_credentials(roots, key, ours))
            assert answer.result.status == COMPLETED

    asyncio.run(asyncio.wait_for(scenario(), SOON_S))


def test_half_of_a_certificate_or_an_empty_token_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" \n")
    with pytest.raises(UsageError, match="TLS needs a certificate and its key"):
        Access(certificate=tmp_path / "x.pem").credentials()
    with pytest.raises(ResourceError, match="cannot be read"):
        Access(certificate=tmp_path / "x.pem", key=tmp_path / "x.key").credentials()
    with pytest.raises(UsageError, match="holds no token"):
        Access(token_file=tmp_path / "empty").token()
    assert Access().credentials() is None and Access().token() is None


def test_a_certificate_and_the_key_of_another_end_the_start_with_that_reason(tmp_path: Path) -> None:
    made(tmp_path, "one")
    made(tmp_path, "other")
    (tmp_path / "text").write_text("no certificate")
    mixed = Access(certificate=tmp_path / "one.pem", key=tmp_path / "other.key")
    with pytest.raises(UsageError, match=r"one.pem: certificate and key cannot be used: KEY_VALUES_MISMATCH"):
        played(tmp_path, never, access=mixed, listen=parse_address("127.0.0.1:0"))
    trusting = Access(certificate=tmp_path / "one.pem", key=tmp_path / "one.key", client_ca=tmp_path / "text")
    with pytest.raises(UsageError, match="text: clients' certificates cannot be checked"):
        trusting.context()
    assert Access().context() is None


async def never(daemon: Daemon, caller: Caller) -> None:
    raise AssertionError("it listens")
