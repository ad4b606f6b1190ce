"""Upstream's proofs of spacetime: their pieces as callers give them, and what is expected of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cuzk.sector.pieces import Pieces, parse_envelope

OTHER = Path(__file__).parents[1] / "vectors" / "other"
EXPECT = json.loads((OTHER / "expect.json").read_text())
NAMES = [name for name in EXPECT["vectors"] if name.startswith("w")]


def document(name: str) -> Any:
    return json.loads((OTHER / f"{name}.json").read_text())


def pieces(name: str) -> Pieces:
    return parse_envelope((OTHER / f"{name}.json").read_bytes(), origin=name)


def expected(name: str) -> dict[str, Any]:
    """Of the only partition."""
    [part] = EXPECT["vectors"][name]["parts"]
    return part
