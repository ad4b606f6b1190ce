"""Values for sectors that nobody sealed: made up, but the same wherever and whenever they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import shake_256

import numpy as np

from cuzk.sector.arrays import Bytes, Limbs, as_limbs
from cuzk.sector.shape import NODE_BYTES

MINER, SECTOR_NUMBER = 1000, 1
"""Whose sectors these are, and the number of the first: of t01000, as lotus-bench's."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Values that follow from a text."""

    text: str

    def nodes(self, what: str, *axes: int) -> Bytes:
        """(*axes, 32) below 2^254."""
        count = int(np.prod(axes))
        drawn = bytearray(shake_256(f"{self.text} {what}".encode()).digest(count * NODE_BYTES))
        nodes = np.frombuffer(drawn, dtype=np.uint8).reshape(*axes, NODE_BYTES)
        nodes[..., -1] &= 0x3F
        return nodes

    def level(self, tree: str, level: int, count: int) -> Limbs:
        """(count, 4): what a sparse tree asks for."""
        return as_limbs(self.nodes(f"{tree} {level}", count))
