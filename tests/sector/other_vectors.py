"""Upstream's sector updates and proofs of spacetime: pieces as callers give them, and what comes of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from cuzk.sector.pieces import Pieces, parse_envelope

OTHER = Path(__file__).parents[1] / "vectors" / "other"
EXPECT = json.loads((OTHER / "expect.json").read_text())
POSTS = [name for name in EXPECT["vectors"] if name.startswith("w")]
UPDATES = ("snap-2k", "snap-4k", "snap-16k", "snap-8m")


def envelope(name: str) -> bytes:
    """The file of a vector."""
    path = OTHER / f"{name}.json"
    return path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())


def document(name: str) -> Any:
    return json.loads(envelope(name))


def pieces_of(name: str) -> Pieces:
    return parse_envelope(envelope(name), origin=name)


def expected(name: str) -> dict[str, Any]:
    """Of the only partition."""
    [part] = EXPECT["vectors"][name]["parts"]
    return part
