"""The writer of timelines: an engine holds one, and all of its threads write to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from cuzk.timeline.line import format_line

_NS_PER_MS = 1_000_000


class Sink(Protocol):
    """Where lines go: an unbuffered or flushed binary file."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> object: ...


class Timeline:
    """Writes a line an event, with the milliseconds since this object was made. For any number of threads.

    owns     its clock's zero
    borrows  the file, which whoever opened it closes
    shares   the file among all threads that record: a line is written whole, in the order of the clock
    fails    never: recording ends with the first line that cannot be written, and `failure` says why
    """

    def __init__(self, file: Sink, *, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock_ns = clock_ns
        self._zero_ns = clock_ns()
        self._lock = threading.Lock()
        self._file = file  # guarded by _lock
        self._failure: Exception | None = None  # guarded by _lock

    @property
    def failure(self) -> Exception | None:
        """What ended the recording, or None."""
        with self._lock:
            return self._failure

    def record(self, name: str, job: str, *, at_ns: int | None = None, **detail: object) -> None:
        """Write an event of `line.EVENTS`. `at_ns` is an earlier reading of the clock, by default now.

        The detail names `partition`, `worker` and `device` where they are known; for the order of keys that
        Curio's daemon has, give the worker before the partition. A file on a disk takes 4 us a line.
        """
        self._write(name, job, at_ns, detail)

    def _write(self, name: str, job: str, at_ns: int | None, detail: Mapping[str, object]) -> None:
        with self._lock:  # over the write too, as the order in the file is that of the clock
            if self._failure is not None:
                return
            offset_ns = (self._clock_ns() if at_ns is None else at_ns) - self._zero_ns
            line = format_line(max(offset_ns, 0) // _NS_PER_MS, name, job, detail)
            try:
                self._file.write(line.encode(errors="replace"))
                self._file.flush()
            except (OSError, ValueError) as error:  # ValueError: the file is closed
                self._failure = error

    @contextmanager
    def span(self, kind: str, job: str, **detail: object) -> Iterator[None]:
        """`kind`_START before the work inside `with`, `kind`_END with its milliseconds after success only.

        After a failure whoever handles it records FAILED, which ends all that is open of the partition.
        """
        begin_ns = self._clock_ns()
        self._write(f"{kind}_START", job, None, detail)
        yield
        took_ms = (self._clock_ns() - begin_ns) // _NS_PER_MS
        self._write(f"{kind}_END", job, None, {**detail, f"{kind.lower()}_ms": took_ms})
