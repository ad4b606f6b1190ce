"""The daemon from its start to its end: it listens, tells when a proof could start, and drains on a signal.

start    addresses bound, journal read; calls are taken and queue
ready    devices are there, and the parameters that were asked for are loaded: health says SERVING
drain    SIGTERM, SIGINT: health says NOT_SERVING, new requests are refused, jobs end or are handed back
end      exit 0; a second signal ends the process at once
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from cuzk.errors import ResourceError
from cuzk.server.access import Access, RequireToken
from cuzk.server.address import Address, numeric, owned_socket, permit, private
from cuzk.server.book import Book
from cuzk.server.feeder import Feeder
from cuzk.server.log import Log
from cuzk.server.payload import Payload
from cuzk.server.readers import Read, Readers
from cuzk.server.seam import Prover
from cuzk.server.service import MESSAGE_BYTES, SERVICE, Service

_LOG = Log("cuzk_daemon")
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_ENDED_BY_SIGNAL = 128  # plus the signal's number: what a shell reports for it
_CLOSING_S = 5.0  # for answers to reach their clients


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSettings:
    """What a daemon is told.

    socket_mode, socket_group  of a unix socket
    preload                    circuits that are loaded before it is ready
    drain_s                    after a signal, jobs may take so long to end
    results_kept, results_s    how many results are kept, and how long
    readers                    processes that read requests
    """

    listen: Address
    status_listen: Address | None = None
    socket_mode: int = 0o660
    socket_group: str | None = None
    access: Access = field(default_factory=Access)
    preload: Sequence[str] = ()
    drain_s: float = 300.0
    results_kept: int = 1000
    results_s: float = 3600.0
    readers: int = 2


class Companion(Protocol):
    """What runs beside the service from its start to its end, such as its page."""

    async def start(self, daemon: Daemon) -> None: ...

    async def stop(self) -> None: ...


class Daemon:
    """One daemon, from `run`; what its parts need of each other, they find here.

    borrows  the prover, which it closes at its end
    """

    def __init__(
        self,
        settings: DaemonSettings,
        prover: Prover,
        read: Read,
        *,
        companions: Sequence[Companion] = (),
        metrics: Callable[[Daemon], str] = lambda daemon: "",
    ) -> None:
        self.settings, self.prover = settings, prover
        self._read, self._companions, self._metrics = read, companions, metrics
        self.book = Book(kept=settings.results_kept, kept_s=settings.results_s)
        self.is_ready = self.is_draining = False
        self.bound: list[str] = []
        self._signals: asyncio.Queue[int] = asyncio.Queue()

    async def run(self) -> None:
        """Serve until a signal comes. Raises UsageError, ResourceError when it cannot start."""
        async with AsyncExitStack() as stack:
            readers = Readers(self._read, processes=self.settings.readers)
            stack.callback(readers.close)
            self.feeder = Feeder(self.book, self.prover, readers)
            stack.callback(self.feeder.close)
            self.service = Service(
                book=self.book,
                feeder=self.feeder,
                readers=readers,
                prover=self.prover,
                store=self._store,
                metrics=lambda: self._metrics(self),
            )
            self._health = HealthServicer()
            await self._report(_NOT_SERVING)
            server = self._server()
            sockets = stack.enter_context(ExitStack())
            self._bind(server, sockets)
            for companion in self._companions:
                await companion.start(self)
                stack.push_async_callback(companion.stop)
            self._hear_signals()
            await server.start()
            stack.push_async_callback(server.stop, _CLOSING_S)
            loading = asyncio.create_task(self._become_ready())
            number = await self._signals.get()
            loading.cancel()
            await self._drain(number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """As if that signal had come."""
        if self._signals.empty() and not self.is_draining:
            self._signals.put_nowait(number)
            return
        _LOG.warn("second signal, ending at once")
        os._exit(_ENDED_BY_SIGNAL + number)

    # ---- start ----

    def _server(self) -> Any:
        token = self.settings.access.token()
        server = grpc.aio.server(
            interceptors=[] if token is None else [RequireToken(token)],
            options=[
                ("grpc.max_receive_message_length", MESSAGE_BYTES),
                ("grpc.max_send_message_length", MESSAGE_BYTES),
                ("grpc.so_reuseport", 0),  # else a second daemon would share the port in silence
            ],
        )
        server.add_generic_rpc_handlers((self.service.handlers(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (SERVICE, "grpc.health.v1.Health", reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        return server

    def _bind(self, server: Any, sockets: ExitStack) -> None:
        settings, address = self.settings, self.settings.listen
        credentials = settings.access.credentials()

        def add(text: str) -> int:
            try:
                if credentials is None:
                    return int(server.add_insecure_port(text))
                return int(server.add_secure_port(text, credentials))
            except RuntimeError as error:
                raise ResourceError(
                    "the address cannot be had: another process may listen there",
                    where=text,
                    next="stop that process, or listen elsewhere",
                ) from error

        if address.path is not None:
            sockets.enter_context(owned_socket(address.path))
            with private():
                add(f"unix:{address.path}")
            permit(address.path, settings.socket_mode, settings.socket_group)
            self.bound = [str(address)]
            _LOG.info("listening on unix socket", path=address.path)
            return
        for text in numeric(address):
            host, _, _ = text.rpartition(":")
            self.bound.append(f"{host}:{add(text)}")
            _LOG.info("listening on TCP", addr=self.bound[-1])

    def _hear_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end, number)

    async def _become_ready(self) -> None:
        """Load what was asked for; then a proof could start, if there is a device for it."""
        try:
            for circuit in self.settings.preload:
                await asyncio.to_thread(self.prover.preload, circuit)
                _LOG.info("SRS loaded successfully", circuit_id=circuit)
        except Exception as error:
            _LOG.error("parameters cannot be loaded, the daemon is not ready", error=error)
            return
        if all(device.set_aside for device in self.prover.status().devices):
            _LOG.error("no device is left to prove on, the daemon is not ready")
            return
        self.is_ready = True
        await self._report(_SERVING)
        _LOG.info(f"cuzk-daemon ready, serving on {', '.join(self.bound)}")

    async def _report(self, state: Any) -> None:
        for name in ("", SERVICE):
            await self._health.set(name, state)

    async def _store(self, data: bytes) -> Payload:
        return Payload.in_memory(data)

    # ---- end ----

    async def _drain(self, number: int) -> None:
        self.is_draining, self.is_ready = True, False
        self.service.is_open = False
        name = signal.Signals(number).name
        _LOG.info(f"received {name}, shutting down", jobs=len(list(self.book.under_way)))
        await self._report(_NOT_SERVING)
        end = asyncio.get_running_loop().time() + self.settings.drain_s
        while left := list(self.book.under_way):
            rest_s = end - asyncio.get_running_loop().time()
            if rest_s <= 0:
                break
            waits = [asyncio.ensure_future(entry.ended.wait()) for entry in left]
            await asyncio.wait(waits, timeout=rest_s)
            for wait in waits:
                wait.cancel()
        for entry in list(self.book.under_way):
            self.book.hand_back(entry)
        await asyncio.to_thread(self.prover.close, drain=False, timeout_s=_CLOSING_S)
        _LOG.info("shut down")
