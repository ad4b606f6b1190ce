"""The bytes of a request while it waits: in memory, or in a file of the journal."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Payload:
    """Where the bytes are, either of the two, and how many."""

    path: Path | None = None
    content: bytes = b""
    size: int = 0

    @classmethod
    def in_memory(cls, content: bytes) -> Payload:
        return cls(content=content, size=len(content))

    def data(self) -> bytes:
        """Raises OSError."""
        return self.content if self.path is None else self.path.read_bytes()

    def discard(self) -> None:
        """Nobody will read it again."""
        if self.path is not None:
            with suppress(OSError):  # at the next start whatever no job names is removed
                self.path.unlink(missing_ok=True)
