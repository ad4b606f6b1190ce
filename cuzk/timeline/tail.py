"""The lines of a log that is still written, as they come."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cuzk.errors import InputError
from cuzk.timeline.read import GZIP_MAGIC, STDIN

POLL_S = 0.25
_READ_BYTES = 1 << 20


def lines_as_they_come(
    path: Path, *, poll_s: float = POLL_S, sleep: Callable[[float], None] = time.sleep
) -> Iterator[list[str]]:
    """Whole lines from the start of the file on, in lists; an empty list where for a while nothing came.

    Standard input ends where whoever writes it ends; a file never. One that was cut short, or that another
    file has taken the name of, is read from its start. Raises InputError for what cannot be read.
    """
    try:
        yield from _of_stdin(poll_s) if path == STDIN else _of_file(path, poll_s, sleep)
    except OSError as error:
        raise InputError(
            f"the log cannot be read: {error.strerror or error}",
            where=str(path),
            next="check the path and its permissions; - reads standard input",
        ) from error


def _of_stdin(poll_s: float) -> Iterator[list[str]]:
    rest, descriptor = b"", 0
    while True:
        if not select.select([descriptor], [], [], poll_s)[0]:
            yield []
            continue
        data = os.read(descriptor, _READ_BYTES)
        if not data:
            yield _decoded([rest] if rest else [])
            return
        *whole, rest = (rest + data).split(b"\n")
        yield _decoded(whole)


def _of_file(path: Path, poll_s: float, sleep: Callable[[float], None]) -> Iterator[list[str]]:
    while True:
        with path.open("rb", buffering=0) as file:
            if file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
                what = "a gzip file is not written any more"
                raise InputError(what, where=str(path), next="use timeline analyze")
            file.seek(0)
            rest = b""
            while True:
                data = file.read(_READ_BYTES)
                if data:
                    *whole, rest = (rest + data).split(b"\n")
                    yield _decoded(whole)
                elif _is_another(path, file.fileno(), file.tell()):
                    break
                else:
                    yield []
                    sleep(poll_s)


def _is_another(path: Path, descriptor: int, place: int) -> bool:
    """Whether there is something new to be read under that name: for a moment there may be nothing."""
    own = os.fstat(descriptor)
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    return (now.st_dev, now.st_ino) != (own.st_dev, own.st_ino) or now.st_size < place


def _decoded(lines: list[bytes]) -> list[str]:
    return [line.decode("utf-8", errors="replace") for line in lines]
