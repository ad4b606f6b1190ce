"""The daemon from its start to its end: it listens, tells when a proof could start, and drains on a signal.

start    journal read, addresses bound: calls are taken, jobs wait
ready    devices are there, and parameters that were asked for, or were open before: health says SERVING
drain    SIGTERM, SIGINT, SIGHUP: health says NOT_SERVING, requests are refused, jobs end or are handed back
end      exit 0; a second signal, a second after the first or later, ends the process at once
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from grpc_health.v1 import health, health_pb2

from cuzk.errors import EngineError, ResourceError
from cuzk.server.access import Access
from cuzk.server.address import Address
from cuzk.server.book import Book
from cuzk.server.card_readings import CardReading
from cuzk.server.chronicle import Chronicle
from cuzk.server.circuits import circuit_id
from cuzk.server.contract import SERVICE
from cuzk.server.feeder import Feeder
from cuzk.server.journal import Journal, open_journal
from cuzk.server.kept_memory import KeptMemory
from cuzk.server.listening import bind, new_server
from cuzk.server.loads import Loads
from cuzk.server.log import Log
from cuzk.server.manager import tell
from cuzk.server.readers import Prepare, Read, Readers
from cuzk.server.recovery import let_go, take_up, write_down
from cuzk.server.seam import Prover
from cuzk.server.service import Service
from cuzk.server.store import Store

_LOG = Log("cuzk_daemon")
_STATES = health_pb2.HealthCheckResponse
_ENDED_BY_SIGNAL = 128  # plus the signal's number: what a shell reports for it
_TWICE_S = 1.0  # within which a signal is the first one again: some send it to a process and to its group
_CLOSING_S = 5.0  # for answers to reach their clients, and for threads to end
_RETRY_S = 30.0  # after readers could not start, or parameters not be loaded
_EVENTS_KEPT = 10_000
_GIB = 1 << 30


async def no_metrics() -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSettings:
    """What a daemon is told.

    socket_mode, socket_group    of a unix socket
    preload                      circuits that are loaded before it is ready
    journal                      folder of accepted jobs; None: they end with the process
    journal_bytes, memory_bytes  that requests which wait may take, on the disk and off it
    drain_s                      after a signal, jobs may take so long to end
    results_kept, results_s      how many results are kept, and how long
    waiting_s                    after it was submitted, a job outlives restarts for so long
    readers                      processes that read requests; 0: threads
    """

    listen: Address
    status_listen: Address | None = None
    socket_mode: int = 0o660
    socket_group: str | None = None
    access: Access = field(default_factory=Access)
    preload: Sequence[str] = ()
    journal: Path | None = None
    journal_bytes: int = 32 * _GIB
    memory_bytes: int = 4 * _GIB
    drain_s: float = 300.0
    results_kept: int = 1000
    results_s: float = 3600.0
    waiting_s: float = 7 * 24 * 3600.0
    readers: int = 2


class Companion(Protocol):
    """What runs beside the service from its start to its end, such as its page."""

    async def start(self, daemon: Daemon) -> None: ...

    async def stop(self) -> None: ...


class Daemon:
    """One daemon, from `run`; what its parts need of each other, they find here.

    read, prepare   as of `Readers`
    metrics, cards  as of `Service`
    borrows  the prover, which it closes at its end
    """

    def __init__(
        self,
        settings: DaemonSettings,
        prover: Prover,
        read: Read,
        *,
        prepare: Prepare | None = None,
        companions: Sequence[Companion] = (),
        metrics: Callable[[], Awaitable[str]] = no_metrics,
        cards: Callable[[], Mapping[str, CardReading]] = dict,
    ) -> None:
        self.settings, self.prover = settings, prover
        self._read, self._prepare = read, prepare
        self._companions, self._metrics, self._cards = companions, metrics, cards
        self.book = Book(kept=settings.results_kept, kept_s=settings.results_s)
        self.is_ready = self.is_draining = False
        self.bound: list[str] = []
        self._journal: Journal | None = None
        self._signals: asyncio.Queue[int | None] = asyncio.Queue()  # None: the engine is lost
        self._signalled: float | None = None  # when the first one came, by the monotonic clock
        self._is_lost = False
        self._turned = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal comes. A thread that waits for a kernel may be left at the end.

        Raises UsageError, ResourceError when it cannot start; EngineError when the engine has failed.
        """
        async with AsyncExitStack() as stack:
            self._open(stack)
            self._health = health.aio.HealthServicer()
            await self._report(False)
            server = new_server(self.service, self._health, self.settings.access)
            sockets = stack.enter_context(ExitStack())
            settings = self.settings
            self.bound = bind(
                server,
                settings.listen,
                settings.access,
                sockets,
                mode=settings.socket_mode,
                group=settings.socket_group,
            )
            self._take_up()
            for companion in self._companions:
                await companion.start(self)
                stack.push_async_callback(companion.stop)
            self._hear(stack)
            await server.start()
            tell(READY="1", STATUS="loading parameters; requests wait")
            stack.push_async_callback(server.stop, _CLOSING_S)
            readiness = asyncio.create_task(self._watch_readiness())
            readiness.add_done_callback(_report_mistake)
            number = await self._signals.get()
            readiness.cancel()
            await self._drain(number)
        _LOG.info("shut down")  # when all who might have a word to say are closed
        if self._is_lost:
            raise EngineError(
                "the engine ended by a mistake of its own",
                next="report it with the log; start the daemon again",
            )

    def end(self, number: int = signal.SIGTERM) -> None:
        """As if that signal had come."""
        now = time.monotonic()
        if self._signalled is None:
            self._signalled = now
            self._signals.put_nowait(number)
            return
        if now - self._signalled < _TWICE_S:
            return
        _LOG.warn("second signal, ending at once")
        os._exit(_ENDED_BY_SIGNAL + number)

    def _lost(self) -> None:
        """The engine has failed: what waits is handed back, and the process ends for a new one."""
        if not self._is_lost:
            self._is_lost = True
            _LOG.error("the engine ended by a mistake of its own, the daemon ends too")
            self._signals.put_nowait(None)

    # ---- start ----

    def _open(self, stack: AsyncExitStack) -> None:
        """Everything between the calls and the engine; whatever is opened is on the stack."""
        settings = self.settings
        self.store = Store(
            settings.journal, disk_bytes=settings.journal_bytes, memory_bytes=settings.memory_bytes
        )
        stack.callback(self.store.close)
        if settings.journal is not None:
            self._journal = stack.enter_context(open_journal(settings.journal))
        self._readers = readers = Readers(self._read, prepare=self._prepare, processes=settings.readers)
        stack.callback(readers.close)
        self.feeder = Feeder(self.book, self.prover, readers)
        stack.callback(self.feeder.close)
        self.feeder.on_lost.append(self._lost)
        let_go(self.book, self.store)
        self._loads = Loads(self.prover)
        stack.callback(self._loads.close)
        self.service = Service(
            book=self.book,
            feeder=self.feeder,
            readers=readers,
            prover=self.prover,
            loads=self._loads,
            store=self.store,
            memory=KeptMemory(),
            is_durable=_never if self._journal is None else self._journal.has,
            metrics=self._metrics,
            cards=self._cards,
        )

    def _take_up(self) -> None:
        """What the daemon before this one left."""
        self._remembered: list[str] = []
        if self._journal is not None:
            folder, waiting_s = self.settings.journal, self.settings.waiting_s
            assert folder is not None
            self._remembered = self._journal.circuits()
            take_up(self.book, self.store, self._journal, folder, waiting_s=waiting_s)
            write_down(self.book, self.feeder, self._journal)

    def _hear(self, stack: AsyncExitStack) -> None:
        """Signals, and what the engine says of itself."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self.end, number)
            stack.callback(loop.remove_signal_handler, number)
        events = self.prover.events(limit=_EVENTS_KEPT)
        chronicle = Chronicle(events, lambda: loop.call_soon_threadsafe(self._turn))
        chronicle.start()
        stack.callback(chronicle.close)

    # ---- readiness ----

    def _turn(self) -> None:
        """Something changed that readiness may depend on."""
        self._turned.set()
        if self.prover.status().closing and not self.is_draining:
            self._lost()

    async def _watch_readiness(self) -> None:
        """Load what is to be loaded; from then on see whether a device is left."""
        while not await self._readers_are_ready():
            await asyncio.sleep(_RETRY_S)
        for circuit in self._remembered:
            if circuit not in self.settings.preload:
                await self._load(circuit)
        for circuit in self.settings.preload:
            while not await self._load(circuit):
                await asyncio.sleep(_RETRY_S)
        while True:
            self._turned.clear()
            await self._see()
            await self._turned.wait()

    async def _readers_are_ready(self) -> bool:
        try:
            await self._readers.ready()
        except ResourceError as error:
            _LOG.error("the daemon is not ready", error=error)
            return False
        return True

    async def _load(self, circuit: str) -> bool:
        _LOG.info("loading parameters", circuit_id=circuit)
        try:
            await self._loads.preload(circuit)
        except Exception as error:
            _LOG.error("parameters cannot be loaded", circuit_id=circuit, error=error)
            return False
        return True

    async def _see(self) -> None:
        status = self.prover.status()
        if status.closing:
            return  # the daemon ends
        opened = {circuit_id(setup.name) for device in status.devices for setup in device.opened}
        if self._journal is not None:
            self._journal.loaded(sorted(opened))
        is_ready = any(device.set_aside is None for device in status.devices)
        if is_ready is self.is_ready:
            return
        self.is_ready = is_ready
        await self._report(is_ready)
        if is_ready:
            _LOG.info(f"cuzk-daemon ready, serving on {', '.join(self.bound)}")
            tell(STATUS="ready")
        else:
            _LOG.error("no device is left to prove on, the daemon is not ready")

    async def _report(self, is_ready: bool) -> None:
        for name in ("", SERVICE):
            await self._health.set(name, _STATES.SERVING if is_ready else _STATES.NOT_SERVING)

    # ---- end ----

    async def _drain(self, number: int | None) -> None:
        """number  of the signal that came; None if the engine is lost."""
        self.is_draining, self.is_ready = True, False
        self.service.is_open = False
        why = "" if number is None else f"received {signal.Signals(number).name}, "
        _LOG.info(f"{why}shutting down", jobs=len(list(self.book.under_way)))
        tell(STOPPING="1", STATUS="waiting for jobs to end")
        await self._report(False)
        self.feeder.stop()
        if number is None:  # no job can end any more
            for entry in list(self.book.under_way):
                self.book.hand_back(entry, is_suspect=entry.job is not None)
        ends = asyncio.gather(*(entry.ended.wait() for entry in self.book.under_way))
        with suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(ends, self.settings.drain_s)
        for entry in list(self.book.under_way):
            self.book.hand_back(entry)
        with ThreadPoolExecutor(1) as thread:  # the event loop's own may all be taken
            close = partial(self.prover.close, drain=False, timeout_s=_CLOSING_S)
            is_closed = await asyncio.get_running_loop().run_in_executor(thread, close)
        if not is_closed:
            _LOG.warn("a worker is still at a partition, the daemon ends without it")


def _report_mistake(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("readiness is not watched any more: a mistake in cuzk", error=repr(error))


async def _never(entry: object) -> bool:
    return False
