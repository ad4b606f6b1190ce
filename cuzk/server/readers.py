"""Requests read in processes beside this one: the event loop and the engine's threads need Python's lock.

A process that ends takes with it what all processes of its pool are reading. Each of these is then read once
more by a process of its own: whose ends again has himself to blame.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

from cuzk.errors import BusyError, InputError, ResourceError
from cuzk.server.payload import Payload
from cuzk.server.seam import ProofRequest
from cuzk.server.turns import Turns

#: Reads the bytes of a ProveRequest, and checks them if it is told to. Raises InputError.
Read = Callable[[bytes, bool], ProofRequest]
#: Called in each process before it reads. What it raises is the daemon's fault.
Prepare = Callable[[], object]

_THREADS = 4
_STARTS = 3  # of processes that end while they start, before they are said to be unable to


class Readers:
    """Reads payloads, so many at once as there are processes. `close` it.

    Small ones go first, those that an engine waits for before others of about their size: a winning PoSt, of
    164 KB, must be proven within 25 s, and a sector's 70 MB keep a process for a second.

    read       a function of a module, which a process can import
    prepare    another; where it failed, it is tried again with the next request
    processes  0: in threads of this one, which are not prepared
    """

    def __init__(self, read: Read, *, prepare: Prepare | None = None, processes: int = 2) -> None:
        self._read, self._processes = read, processes
        self._prepare = prepare if processes else None
        self._turns = Turns(processes or _THREADS)
        self._context = multiprocessing.get_context("spawn")  # a fork would inherit locks of other threads
        self._theirs, self._ours = self._context.Pipe(duplex=False)  # processes end when our end is closed
        self._pool: Executor = self._new_pool(processes)

    async def ready(self) -> None:
        """They have started, and are prepared. Raises ResourceError if they cannot."""
        for _ in range(_STARTS):
            pool, calls = self._pool, range(self._processes)
            try:
                await asyncio.gather(*(_run(pool, _prepared, self._prepare) for _ in calls))
            except BrokenProcessPool as error:
                self._replace(pool)
                broken = error
            else:
                return
        raise _cannot_start("it ended while it started") from broken

    async def read(self, payload: Payload, *, check: bool) -> ProofRequest:
        """Raises InputError, also for an input that ends the process which reads it; ResourceError when its
        file is gone; BusyError while processes cannot start."""
        await self._turns.take((payload.size.bit_length(), check))
        reading = asyncio.ensure_future(self._attempt(payload, check))
        reading.add_done_callback(self._ended)
        return await asyncio.shield(reading)  # a process whose client went away reads on

    def close(self) -> None:
        """Whatever processes read is given up. They are waited for, as Python complains of their semaphores
        otherwise when this process ends."""
        self._ours.close()
        self._pool.shutdown(wait=self._processes > 0, cancel_futures=True)
        self._theirs.close()

    def _ended(self, reading: asyncio.Future[ProofRequest]) -> None:
        self._turns.end()
        if not reading.cancelled():
            reading.exception()  # perhaps nobody is interested any more

    async def _attempt(self, payload: Payload, check: bool) -> ProofRequest:
        pool = self._pool
        try:
            return await self._in(pool, payload, check)
        except BrokenProcessPool:
            self._replace(pool)
        return await self._alone(payload, check)

    async def _alone(self, payload: Payload, check: bool) -> ProofRequest:
        """In a process of its own, which ends with it."""
        pool = self._new_pool(1)
        try:
            try:
                await _run(pool, _prepared, self._prepare)
            except BrokenProcessPool as error:
                raise _cannot_start("it ended while it started") from error
            try:
                return await self._in(pool, payload, check)
            except BrokenProcessPool as error:
                raise InputError(
                    "the process that read this input died of it", next="look for it in the kernel's log"
                ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    async def _in(self, pool: Executor, payload: Payload, check: bool) -> ProofRequest:
        request: ProofRequest = await _run(pool, _read, self._read, self._prepare, payload, check)
        return request

    def _replace(self, broken: Executor) -> None:
        if self._pool is broken:
            broken.shutdown(wait=False)
            self._pool = self._new_pool(self._processes)

    def _new_pool(self, processes: int) -> Executor:
        if not processes:
            return ThreadPoolExecutor(_THREADS, thread_name_prefix="cuzk read")
        return ProcessPoolExecutor(
            processes, mp_context=self._context, initializer=_begin, initargs=(self._theirs,)
        )


async def _run(pool: Executor, call: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, call, *given)


def _read(read: Read, prepare: Prepare | None, payload: Payload, check: bool) -> ProofRequest:
    _prepared(prepare)
    try:
        data = payload.data()
    except OSError as error:
        raise ResourceError(
            f"a request that was stored cannot be read: {error.strerror}",
            where=str(payload.path),
            next="see to the journal's disk, then send it again",
        ) from error
    return read(data, check)


@cache
def _prepared(prepare: Prepare | None) -> None:
    """Once in a process; again if it failed. Raises BusyError, whatever it was: no input is to blame."""
    if prepare is not None:
        try:
            prepare()
        except Exception as error:
            raise _cannot_start(str(error) or type(error).__name__) from error


def _cannot_start(why: str) -> BusyError:
    return BusyError(
        f"requests cannot be read, a process for it cannot start: {why}", next="see the daemon's log"
    )


def _begin(lifeline: Connection) -> None:
    """Ctrl-C in a terminal reaches every process of ours: the first one decides what it means. When that one
    has closed its end of the pipe, or is killed, this one must not stay."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()  # nothing is ever sent
    os._exit(1)
