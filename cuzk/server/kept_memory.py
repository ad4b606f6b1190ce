"""Memory that large requests use again, instead of fresh memory for each.

gRPC's Python library puts a message together twice, in a bytearray that grows and then in bytes, and keeps
Python's lock meanwhile. Of 100 MiB that is 40 ms of copying (one slow core), and 100 ms more where the memory
is fresh: malloc maps what is so large anew each time, and the kernel clears it page by page, 51,200 of them.
Huge pages are fewer, but clearing them takes as long, and longer where memory is in pieces.

What lies free at the end of malloc's heap serves a block of any size before malloc maps one. So let that end
be long, and stay so. It costs no memory until it is used first; from then on it is kept.
"""

from __future__ import annotations

import ctypes

from cuzk.server.log import Log

_LOG = Log("cuzk_daemon")
_MIB = 1 << 20
#: Kept: both copies of a request of 100 MiB while another is written, and gaps between them. Of larger ones
#: a part is fresh.
KEPT_BYTES = 384 * _MIB
#: Beyond what is kept, so much may lie free before it is given back.
SPARE_BYTES = 64 * _MIB
# What glibc goes up to by itself, by the sizes that a process frees; setting any of the others ends that.
_MAPPED_FROM_BYTES = 32 * _MIB
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h


def keep_memory() -> bool:
    """For what the main thread allocates, from now on. False where malloc is not glibc's: nothing changes."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        _LOG.info("large requests get fresh memory each time and keep others waiting: malloc is not glibc's")
        return False
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    for setting, value in (
        (_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES),
        (_M_TOP_PAD, KEPT_BYTES),
        (_M_TRIM_THRESHOLD, KEPT_BYTES + SPARE_BYTES),
    ):
        taken = libc.mallopt(setting, value)
        assert taken, (setting, value)
    libc.free(libc.malloc(_MAPPED_FROM_BYTES // 2))  # the heap grows for it, and by what is kept
    return True
