"""Files that are whole or absent, room on a disk, and the manifest's digest of a file."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuzk.errors import DiskError, ParameterError, ResourceError
from cuzk.events import Progress
from cuzk.whole_files import replace_whole

DIGEST_HEX = 32
"""A manifest's digest: the first 32 hex digits of a file's unkeyed BLAKE2b-512."""

_HASH_CHUNK_BYTES = 1 << 22
_SMALL_BYTES = 1 << 24


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an OSError of reading the parameter file `path` into what the user can mend."""
    try:
        yield
    except FileNotFoundError as error:
        raise ParameterError(
            "the file is missing", where=str(path), next="give the folder that holds it"
        ) from error
    except OSError as error:
        raise DiskError(
            f"the file cannot be read: {error.strerror}", where=str(path), next="check path and permissions"
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an OSError of writing `path`, a file or folder, into what the user can mend."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise DiskError(
            "the disk is full" if full else f"the file cannot be written: {error.strerror}",
            where=str(path),
            next="free some space or choose another folder"
            if full
            else "choose a folder that you may write to",
        ) from error


def read_small(path: Path) -> bytes:
    """A whole file of at most 16 MiB. Raises as `reading` does, and ParameterError when it is larger."""
    with reading(path), path.open("rb") as file:
        data = file.read(_SMALL_BYTES + 1)
    if len(data) > _SMALL_BYTES:
        raise ParameterError("the file is far too large for its kind", where=str(path), next="check its name")
    return data


def replace_atomically(path: Path, data: bytes) -> None:
    """Make `path` hold `data`, or leave it as it was. Raises ResourceError."""
    with writing(path):
        replace_whole(path, [data])


def require_space(folder: Path, needed_bytes: int) -> None:
    """Raises ResourceError, with both numbers, when `folder` has not room for `needed_bytes`."""
    with writing(folder):
        free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise ResourceError(
            f"{needed_bytes:,} bytes are needed and {free_bytes:,} are free",
            where=str(folder),
            next="free some space or choose another folder",
        )


def make_folder(folder: Path) -> None:
    """The folder exists afterwards. Raises ResourceError."""
    with writing(folder):
        if folder.is_file():
            raise ResourceError("this is a file, not a folder", where=str(folder), next="name a folder")
        folder.mkdir(parents=True, exist_ok=True)


def file_digest(path: Path, progress: Progress | None = None) -> str:
    """The manifest's digest of a file, about 1 s a GB; `progress` counts bytes. Raises as `reading` does."""
    hasher = hashlib.blake2b()
    with reading(path), path.open("rb") as file:
        total = os.fstat(file.fileno()).st_size
        done = 0
        while chunk := file.read(_HASH_CHUNK_BYTES):
            hasher.update(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total)
    return hasher.hexdigest()[:DIGEST_HEX]
