"""The bytes of a request while it waits: in memory, or in a file of the store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Where the bytes are, either of the two, and how many."""

    path: Path | None = None
    content: bytes = b""
    size: int = 0

    def data(self) -> bytes:
        """Raises OSError."""
        return self.content if self.path is None else self.path.read_bytes()
