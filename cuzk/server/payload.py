"""The bytes of a request while it waits: in memory, or in a file of the store."""

from __future__ import annotations

import io
import shutil
from dataclasses import dataclass
from pathlib import Path

#: Read at once. A kernel without preemption, as servers have, gives the core to nobody else meanwhile: of
#: 100 MiB, into fresh memory, that was 200 ms, in which the event loop waited for it, whatever its priority.
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Where the bytes are, either of the two, and how many."""

    path: Path | None = None
    content: bytes = b""
    size: int = 0

    def data(self) -> bytes:
        """Raises OSError."""
        if self.path is None:
            return self.content
        whole = io.BytesIO()
        with self.path.open("rb", buffering=0) as file:
            shutil.copyfileobj(file, whole, _PIECE_BYTES)
        return whole.getvalue()
