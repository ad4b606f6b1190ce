"""A large file that stays open: read by position, or mapped, so that whatever ends it early is a typed error.

A plain read of a failing disk is an OSError; an access to a mapping is a signal that ends the process, and so
is one behind the end of a file that was cut meanwhile. So files are read, or pages of a mapping are asked for
before they are used: `require_readable`. What is left is the moment between the two.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import CuzkError, DiskError, ParameterError
from cuzk.groth16.files import reading

_MADV_POPULATE_READ = 22  # Linux 5.14; before it, `require_readable` does nothing
_PROBE_BYTES = 1 << 20


class WatchedFile:
    """Open for reading until nobody refers to it, or to its mapping.

    Raises as `files.reading`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            weakref.finalize(self, os.close, self._descriptor)
            opened = os.fstat(self._descriptor)
            if stat.S_ISDIR(opened.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        self._identity = _identity(opened)
        self.nbytes = opened.st_size

    def read_into(self, first: int, out: NDArray[np.uint8]) -> None:
        """out := the bytes from number `first` on; C-contiguous, of any shape. Threads may read at once.

        Raises DiskError, with the place, when the disk fails; ParameterError when the file ends before.
        """
        assert out.flags.c_contiguous, out.strides
        room, done = out.reshape(-1).data, 0
        while done < len(room):
            try:
                count = os.preadv(self._descriptor, [room[done:]], first + done)
            except OSError as error:
                raise self._failing(first + done, error) from error
            if not count:
                raise self._shortened()
            done += count

    def read(self, first: int, nbytes: int) -> bytes:
        """The same for a few bytes."""
        out = np.empty(nbytes, np.uint8)
        self.read_into(first, out)
        return out.tobytes()

    def will_need(self, first: int, nbytes: int) -> None:
        """Let the system fetch these bytes from the disk while others are read; no failure is told now."""
        with suppress(OSError):
            os.posix_fadvise(self._descriptor, first, nbytes, os.POSIX_FADV_WILLNEED)

    def require_same(self) -> None:
        """Raises ParameterError unless its path still leads to the file as it was when it was opened."""
        with reading(self.path):
            now = _identity(os.stat(self.path))
        if now != self._identity:
            raise ParameterError(
                "the file was changed or replaced while it was in use",
                where=str(self.path),
                next="begin again, when nothing writes to it",
            )

    def mapped(self) -> NDArray[np.uint8]:
        """All of it, read-only; it holds the mapping. An empty file has none."""
        with reading(self.path):
            return np.frombuffer(mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ), np.uint8)

    def require_readable(self, pages: NDArray[np.uint8], first: int) -> None:
        """Have some of the mapping in memory, contiguous bytes from number `first` on; raises as `read_into`.

        Costs nothing beside the faults that it spares.
        """
        address = pages.ctypes.data
        before = address % mmap.PAGESIZE
        if _madvise()(address - before, pages.nbytes + before, _MADV_POPULATE_READ) == 0:
            return
        if ctypes.get_errno() == errno.EFAULT:  # reading the same tells why, and where
            for begin in range(0, pages.nbytes, _PROBE_BYTES):
                self.read(first + begin, min(_PROBE_BYTES, pages.nbytes - begin))

    def _failing(self, place: int, error: OSError) -> CuzkError:
        return DiskError(
            f"the file cannot be read: {error.strerror}",
            where=f"{self.path}, byte {place:,}",
            next="look for the cause in the system log (dmesg); if the disk fails, put the file on another",
        )

    def _shortened(self) -> CuzkError:
        with reading(self.path):
            now = os.fstat(self._descriptor).st_size
        return ParameterError(
            f"the file was cut while it was in use: it had {self.nbytes:,} bytes, now it has {now:,}",
            where=str(self.path),
            next="find out what writes to it, and fetch or generate it again",
        )


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


@cache
def _madvise() -> Any:
    """The system's own, without the interpreter's lock: it may wait for a disk."""
    function = ctypes.CDLL(None, use_errno=True).madvise
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function
