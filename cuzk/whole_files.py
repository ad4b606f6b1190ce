"""Files that are whole or absent: written beside their place, which they take when complete."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO


class NewFile:
    """A file under a temporary name in the folder of `path`. All methods raise OSError.

    Close it in any case: it is removed if it has not taken its place.
    It is locked while it is open, so that the next process to write the same path can tell it from what a
    killed process has left behind, and removes only that.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        _remove_leftovers(path)
        self.file = _locked(path)
        self._has_its_place = False

    def write(self, data: bytes | memoryview) -> None:
        """All of `data`: an unbuffered file takes 2 GiB at once, and less when the disk is nearly full."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.file.write(rest) :]

    def sync(self) -> None:
        """What was written is on the disk when this returns: a rename must not overtake it."""
        os.fsync(self.file.fileno())

    def take_place(self) -> None:
        """Replace what stands at `path`."""
        os.replace(self.file.name, self.path)
        self._has_its_place = True

    def close(self) -> None:
        if not self._has_its_place:
            Path(self.file.name).unlink(missing_ok=True)
        self.file.close()


def replace_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Make `path` hold these parts, one after the other, or leave it as it was. Raises OSError."""
    with closing(NewFile(path)) as new:
        for part in parts:
            new.write(part)
        new.sync()
        new.take_place()


def sync(file: BinaryIO) -> None:
    """The file's bytes are on the disk when this returns: a rename must not overtake them."""
    file.flush()
    os.fsync(file.fileno())


def _locked(path: Path) -> BinaryIO:
    """A new file beside `path`. Between its opening and its lock it may pass for a leftover: then another."""
    while True:
        name = f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        file: BinaryIO = path.with_name(name).open("xb", buffering=0)
        with suppress(OSError):  # a file system without locks: then nobody takes it for a leftover either
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path` that no process holds; what cannot be removed stays."""
    ours = re.compile(re.escape(f".{path.name}.") + r"\d+-[0-9a-f]{8}\.tmp")
    with suppress(OSError):
        for found in [entry for entry in path.parent.iterdir() if ours.fullmatch(entry.name)]:
            with suppress(OSError), found.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.unlink()
