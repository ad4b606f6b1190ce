"""A daemon in this process, on the test's own event loop, and its callers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from cuzk.server import proving_pb2 as pb
from cuzk.server.address import Address
from cuzk.server.contract import SERVICE
from cuzk.server.daemon import Daemon, DaemonSettings
from cuzk.server.readers import Read
from tests.server.fakes import FakeProver, read_fake

SOON_S = 30.0  # by far more than anything here takes

_ANSWERS: dict[str, Any] = {
    "SubmitProof": pb.SubmitProofResponse,
    "AwaitProof": pb.AwaitProofResponse,
    "Prove": pb.ProveResponse,
    "CancelProof": pb.CancelProofResponse,
    "GetStatus": pb.GetStatusResponse,
    "GetMetrics": pb.GetMetricsResponse,
    "PreloadSRS": pb.PreloadSrsResponse,
    "EvictSRS": pb.EvictSrsResponse,
}
#: What an unset request of a method is.
_REQUESTS = {"GetStatus": pb.GetStatusRequest, "GetMetrics": pb.GetMetricsRequest}


class Caller:
    """One channel; `caller.call(method, request)` is a call of grpc.aio: to be awaited or cancelled."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel

    def call(self, method: str, request: Any = None, **options: Any) -> Any:
        request = _REQUESTS[method]() if request is None else request
        stub = self.channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=_ANSWERS[method].FromString,
        )
        return stub(request, timeout=options.pop("timeout", SOON_S), **options)

    def prove(self, submit: pb.SubmitProofRequest, **options: Any) -> Any:
        return self.call("Prove", pb.ProveRequest(submit=submit), **options)


def porep(name: str = "", data: bytes = b"c1", **fields: Any) -> pb.SubmitProofRequest:
    return pb.SubmitProofRequest(
        request_id=name, proof_kind=pb.POREP_SEAL_COMMIT, vanilla_proof=data, **fields
    )


@asynccontextmanager
async def running(
    prover: FakeProver | None = None,
    *,
    folder: Path,
    waits: bool = True,
    read: Read = read_fake,
    **settings: Any,
) -> AsyncIterator[tuple[Daemon, Caller]]:
    """A daemon on a socket in the folder, as `up`."""
    settings = {"listen": Address(path=folder / "cuzk.sock"), "readers": 0, "drain_s": SOON_S, **settings}
    daemon = Daemon(DaemonSettings(**settings), prover or FakeProver(), read)
    async with up(daemon, waits=waits) as caller:
        yield daemon, caller


@asynccontextmanager
async def up(daemon: Daemon, *, waits: bool = True, patience_s: float = SOON_S) -> AsyncIterator[Caller]:
    """The daemon runs, for this caller; it drains at the end, and must do so within the patience.

    waits  until it is ready; else only until it takes calls
    """
    task = asyncio.create_task(daemon.run())
    try:
        await until(lambda: daemon.is_ready or task.done() or bool(daemon.bound and not waits))
        if task.done():
            task.result()
        async with channel_to(daemon.bound[0]) as channel:
            yield Caller(channel)
    finally:
        if not task.done() and not daemon.is_draining:
            daemon.end()
        await asyncio.wait_for(task, patience_s)


def channel_to(target: str) -> Any:
    sizes = [("grpc.max_receive_message_length", 256 << 20), ("grpc.max_send_message_length", 256 << 20)]
    return grpc.aio.insecure_channel(target, options=sizes)


async def until(holds: Callable[[], bool]) -> None:
    end = asyncio.get_running_loop().time() + SOON_S
    while not holds():
        assert asyncio.get_running_loop().time() < end, "it never came"
        await asyncio.sleep(0.002)


async def refused(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str]:
    """Code and text of a call that must not succeed."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    raise AssertionError(f"answered: {answer}")
