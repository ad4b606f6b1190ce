"""Memory for large requests: kept from those before, and there before it is needed.

gRPC's Python library puts a message together in one step that keeps Python's lock: each piece as bytes of its
own, then the whole. Of 100 MiB that is 33 ms of copying (one slow core), and 70 to 650 ms more where memory
is fresh: the kernel clears 51,200 pages, which a virtual machine may have to get from its host first.

So malloc takes large blocks from its heap, and keeps what is freed. That is not all: after every 10,000th
block that protobuf frees, some 700 calls of GetStatus, it has malloc give back to the kernel all that is
free. So before a message is put together, a thread without Python's lock has the kernel bring back what is
missing; where nothing is missing, that takes 3 ms. Nor must what is free lie in pieces: a whole message that
fits nowhere in the heap is mapped, which is fresh memory again.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from types import coroutine
from typing import Any, TypeVar

from cuzk.server.log import Log

_LOG = Log("cuzk_daemon")
_T = TypeVar("_T")
_MIB = 1 << 20
#: One copy of a message of 100 MiB, and an eighth, by which it grows in older versions of gRPC. Of larger
#: messages a part is fresh.
_COPY_BYTES = 112 * _MIB
#: Once more than that is free at the heap's end, it is given back: what one message needs, the pieces and the
#: whole, and as much again for requests being written.
KEPT_BYTES = 4 * _COPY_BYTES
#: What has come within that time is small, 30 MiB at 1 GB/s: for this nothing is done.
SMALL_S = 0.03
# What glibc goes up to by itself, by the sizes that a process frees; setting the other ends that.
_MAPPED_FROM_BYTES = 32 * _MIB
_BLOCK_BYTES = 4 * _MIB  # below that; smaller holes of the heap do not count
_HEADER_BYTES = 16  # before each block, of glibc's malloc.c
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_MADV_POPULATE_WRITE = 23  # Linux 5.14
_AT_ONCE_BYTES = 2 * _MIB  # 7 ms at most, meanwhile no thread of the process maps memory


class KeptMemory:
    """For what the main thread allocates, from now on. None where malloc is not glibc's, which is said."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._libc = libc if hasattr(libc, "gnu_get_libc_version") else None
        self._has_failed = False
        if self._libc is None:
            _LOG.info("large requests get fresh memory and keep others waiting: malloc is not glibc's")
            return
        libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        libc.free.argtypes = [ctypes.c_void_p]
        libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for setting, value in ((_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES), (_M_TRIM_THRESHOLD, KEPT_BYTES)):
            taken = libc.mallopt(setting, value)
            assert taken, (setting, value)

    async def ready(self) -> None:
        """Two copies find room in the heap and need no page of the kernel. Called in the main thread."""
        if self._libc is None:
            return
        begin, end = _free(self._libc)
        error = await asyncio.to_thread(_populate, self._libc, begin, end)
        if error and not self._has_failed:
            self._has_failed = True
            reason = os.strerror(error)
            _LOG.warn("large requests get fresh memory and keep others waiting", reason=reason)


def _free(libc: Any) -> tuple[int, int]:
    """Where in the heap two copies are free, each in one piece; in whole pages. The heap grows if need be.

    Pieces go first where the smaller of the two, or what lies scattered, is: the whole finds the other.
    """
    blocks: list[int] = []
    copies = joined = 0
    while copies < 2 and len(blocks) < KEPT_BYTES // _BLOCK_BYTES:
        block = libc.malloc(_BLOCK_BYTES)
        if not block:
            break
        follows = bool(blocks) and 0 <= block - (blocks[-1] + _BLOCK_BYTES) <= _HEADER_BYTES
        joined = joined + 1 if follows else 1
        blocks.append(block)
        if joined * _BLOCK_BYTES == _COPY_BYTES:
            copies, joined = copies + 1, 0
    for block in blocks:
        libc.free(block)
    return min(blocks, default=0) & -mmap.PAGESIZE, (max(blocks, default=0) + _BLOCK_BYTES) & -mmap.PAGESIZE


def _populate(libc: Any, begin: int, end: int) -> int:
    """Have pages there; what they hold stays as it is, whoever uses them by now. Returns errno or 0."""
    for address in range(begin, end, _AT_ONCE_BYTES):
        if libc.madvise(address, min(_AT_ONCE_BYTES, end - address), _MADV_POPULATE_WRITE):
            return ctypes.get_errno()
    return 0


@coroutine
def before_it_ends(
    waiting: Coroutine[Any, Any, _T], prepare: Callable[[], Awaitable[object]], *, after_s: float
) -> Generator[Any, Any, _T]:
    """What `waiting` returns, which works at once when that is there for which it waits.

    prepare  is done in between, if it has waited so long
    """
    begin = time.monotonic()
    try:
        waits_for = waiting.send(None)
        while True:
            try:
                yield waits_for
            except BaseException as error:  # that of what it waits for, too
                waits_for = waiting.throw(error)
                continue
            if time.monotonic() - begin >= after_s:
                with suppress(asyncio.CancelledError):  # too late: gRPC lets go only of what it puts together
                    yield from prepare().__await__()
            waits_for = waiting.send(None)
    except StopIteration as end:
        returned: _T = end.value
        return returned
    finally:
        waiting.close()
