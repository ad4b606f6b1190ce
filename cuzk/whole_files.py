"""Files that are whole or absent: written beside their place and renamed when complete."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO


def temporary_beside(path: Path) -> Path:
    """A name in the same folder that no other process uses, for what is renamed when complete."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def replace_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Make `path` hold these parts, one after the other, or leave it as it was. Raises OSError."""
    temporary = temporary_beside(path)
    try:
        with temporary.open("xb") as file:
            for part in parts:
                file.write(part)
            sync(file)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def sync(file: BinaryIO) -> None:
    """The file's bytes are on the disk when this returns: a rename must not overtake them."""
    file.flush()
    os.fsync(file.fileno())
