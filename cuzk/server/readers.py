"""Requests read in processes beside this one: the event loop and the engine's threads need Python's lock."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from cuzk.errors import InputError, ResourceError
from cuzk.server.payload import Payload
from cuzk.server.seam import ProofRequest

#: Reads the bytes of a ProveRequest, and checks them if it is told to. Raises InputError.
Read = Callable[[bytes, bool], ProofRequest]


class Readers:
    """Reads payloads, some at a time. `close` it.

    read       a function of a module, which a process can import
    prepare    another, called in each process before it reads
    processes  0: in threads of this one
    """

    def __init__(
        self, read: Read, *, prepare: Callable[[], object] | None = None, processes: int = 2
    ) -> None:
        self._read, self._prepare, self._processes = read, prepare, processes
        self._pool: Executor = self._new_pool()

    async def ready(self) -> None:
        """They have started, and are prepared."""
        loop, calls = asyncio.get_running_loop(), range(max(self._processes, 1))
        await asyncio.gather(*(loop.run_in_executor(self._pool, _nothing) for _ in calls))

    async def read(self, payload: Payload, *, check: bool) -> ProofRequest:
        """Raises InputError, also for an input that ends the process which reads it; ResourceError when its
        file is gone."""
        for _ in range(2):  # another input may have been what ended the process
            pool = self._pool
            try:
                return await asyncio.get_running_loop().run_in_executor(
                    pool, _read, self._read, payload, check
                )
            except BrokenProcessPool:
                if self._pool is pool:
                    pool.shutdown(wait=False)
                    self._pool = self._new_pool()
        raise InputError(
            "the process that read this input died of it", next="look for it in the kernel's log"
        )

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _new_pool(self) -> Executor:
        if not self._processes:
            return ThreadPoolExecutor(thread_name_prefix="cuzk read")
        context = multiprocessing.get_context("spawn")  # a fork would inherit locks of other threads
        return ProcessPoolExecutor(
            self._processes, mp_context=context, initializer=_begin, initargs=(self._prepare,)
        )


def _read(read: Read, payload: Payload, check: bool) -> ProofRequest:
    try:
        data = payload.data()
    except OSError as error:
        raise ResourceError(
            f"a request that was stored cannot be read: {error.strerror}",
            where=str(payload.path),
            next="see to the journal's disk, then send it again",
        ) from error
    return read(data, check)


def _nothing() -> None:
    """A process that has done this has started."""


def _begin(prepare: Callable[[], object] | None) -> None:
    """Ctrl-C in a terminal reaches every process of ours: the first one decides what it means. When that one
    is killed, this one must not stay."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
