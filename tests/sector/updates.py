"""Upstream's sector updates as pieces, and what is expected of their circuits, assignments and proofs."""

import gzip
import json
from pathlib import Path

from cuzk.sector.pieces import parse_envelope

OTHER = Path(__file__).parents[1] / "vectors" / "other"
EXPECTED = json.loads((OTHER / "expect.json").read_text())
NAMES = ("snap-2k", "snap-4k", "snap-16k", "snap-8m")


def update_pieces(name):
    """The pieces of a vector, as they travel."""
    path = OTHER / f"{name}.json"
    data = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    return parse_envelope(data, origin=name)
