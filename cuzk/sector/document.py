"""The bytes of a document that was given: a file's, or those in memory; unzipped, and not without limit."""

from __future__ import annotations

import os
import zlib
from functools import partial
from itertools import islice
from pathlib import Path

from cuzk.errors import InputError

LARGEST_DOCUMENT_BYTES = 2 << 30
"""Refused beyond this, packed or unpacked: the largest real file (126 partitions of 32 GiB) has 0.9 GB."""

_READ_BYTES = 1 << 24  # a read takes as much memory as it might give
_NEXT = "copy the file again, or make it again"


def read_document(path: Path) -> bytes:
    """The file as it is, at most a little more than the limit. Raises InputError."""
    try:
        with path.open("rb") as file:
            known = min(os.fstat(file.fileno()).st_size, LARGEST_DOCUMENT_BYTES)
            first = file.read(known + 1)  # all there is, unless it is a pipe, or grows
            rest = iter(partial(file.read, _READ_BYTES), b"")
            return b"".join([first, *islice(rest, (LARGEST_DOCUMENT_BYTES - known) // _READ_BYTES + 1)])
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        raise InputError(what, where=str(path), next="check the path and its permissions") from error


def unzipped(data: bytes, origin: str) -> bytes:
    """`data`, unpacked if it begins as gzip does. Raises InputError when nothing is left, or too much."""
    unpacked, what = data, ""
    if data.startswith(b"\x1f\x8b"):
        unzipper = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            unpacked = unzipper.decompress(data, LARGEST_DOCUMENT_BYTES + 1)
        except zlib.error as error:
            what = f"the gzip file is damaged: {error}"
        if not what and not unzipper.eof and len(unpacked) <= LARGEST_DOCUMENT_BYTES:
            what = "the gzip file is truncated"
    if len(unpacked) > LARGEST_DOCUMENT_BYTES:
        what = f"the document is larger than {LARGEST_DOCUMENT_BYTES >> 30} GiB"
    elif not unpacked or unpacked.isspace():
        what = what or "the file is empty"
    if what:
        raise InputError(what, where=origin, next=_NEXT)
    return unpacked
