"""Parents of a node: 6 in the depth-robust graph of its own layer, 8 in the expander to the layer below.

Both are pseudo-random functions of node and porep id. API 1.0.0 and 1.1.0 differ in two details, marked.
Sources: storage-proofs-core, drgraph.rs and crypto/feistel.rs; storage-proofs-porep, vanilla/graph.rs.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, sha256

import numpy as np

from cuzk.sector.api_version import ApiVersion
from cuzk.sector.arrays import Counts
from cuzk.sector.porep.chacha import chacha_blocks
from cuzk.sector.porep.shape import DRG_DEGREE, EXPANDER_DEGREE, PARENTS

_SAMPLED_PARENTS = DRG_DEGREE - 1  # the sixth is the node before
_DRAWN = struct.Struct(f"<{2 * _SAMPLED_PARENTS}Q")  # of two blocks
_FEISTEL_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The graph of every layer of a sector: `nodes` a power of two, `porep_id` 32 bytes."""

    nodes: int
    porep_id: bytes
    api_version: ApiVersion

    def parents(self, node: int) -> tuple[int, ...]:
        """The 6 DRG parents, then the 8 expander parents."""
        return tuple(self.parents_of([node])[0].tolist())

    def parents_of(self, nodes: Sequence[int]) -> Counts:
        """(n, 14): the same of many nodes. 0.15 ms, and 0.05 ms a node."""
        drg = self.drg_parents(nodes)
        rows = [(*of_drg, *self.expander_parents(node)) for of_drg, node in zip(drg, nodes, strict=True)]
        return np.array(rows, dtype=np.int64).reshape(-1, PARENTS)

    def drg_parents(self, nodes: Sequence[int]) -> list[tuple[int, ...]]:
        draws = _draws(nodes, _drg_seed(self.porep_id))
        return [self._drg_parents(node, drawn) for node, drawn in zip(nodes, draws, strict=True)]

    def _drg_parents(self, node: int, draws: Sequence[int]) -> tuple[int, ...]:
        if node < 2:
            return (0,) * DRG_DEGREE
        sampled = _sample(node, draws)
        if self.api_version is ApiVersion.V1_0:
            return (*sampled, node - 1)
        return (node - 1, *sampled)

    def expander_parents(self, node: int) -> tuple[int, ...]:
        keys = _feistel_keys(self.porep_id)
        elements = self.nodes * EXPANDER_DEGREE
        first = node * EXPANDER_DEGREE
        permuted = [_permute(first + i, elements, keys) for i in range(EXPANDER_DEGREE)]
        if self.api_version is ApiVersion.V1_0:  # an overflow of that version, kept since
            permuted = [element & 0xFFFFFFFF for element in permuted]
        return tuple(element // EXPANDER_DEGREE for element in permuted)


@cache
def _drg_seed(porep_id: bytes) -> bytes:
    return sha256(b"Filecoin_DRSample" + porep_id).digest()[:28]


@cache
def _feistel_keys(porep_id: bytes) -> tuple[int, ...]:
    return struct.unpack("<4Q", sha256(b"Filecoin_Feistel" + porep_id).digest())[:_FEISTEL_ROUNDS]


def _draws(nodes: Sequence[int], seed: bytes) -> list[tuple[int, ...]]:
    """Of each node two random numbers for each parent that is sampled."""
    keys = [seed + node.to_bytes(4, "little") for node in nodes]
    counters = (bytes(16), (1).to_bytes(16, "little"))
    blocks = chacha_blocks([key + counter for key in keys for counter in counters], rounds=8)
    return [
        _DRAWN.unpack_from(first + second) for first, second in zip(blocks[::2], blocks[1::2], strict=True)
    ]


def _sample(node: int, draws: Sequence[int]) -> list[int]:
    """Five parents by bucket sampling: the distance's magnitude is uniform, then the distance within it.

    The graph is thought of as one of degree 2 with `_SAMPLED_PARENTS` small nodes for each node.
    """
    small_node = node * _SAMPLED_PARENTS
    buckets = (small_node - 1).bit_length()  # log2, rounded up
    parents = []
    for bucket_draw, distance_draw in zip(draws[0::2], draws[1::2], strict=True):
        highest = min(small_node, 1 << bucket_draw % buckets + 1)
        lowest = max(2, highest >> 1)
        distance = lowest + distance_draw % (highest - lowest + 1)
        parent = (small_node - distance) // _SAMPLED_PARENTS
        parents.append(node - 1 if parent == node else parent)
    return parents


def _permute(element: int, elements: int, keys: tuple[int, ...]) -> int:
    """A keyed permutation of 0 .. elements - 1: a Feistel network over the next power of four, repeated until
    the result lies within."""
    half_bits = max(1, ((elements - 1).bit_length() + 1) // 2)
    mask = (1 << half_bits) - 1
    while True:
        left, right = element >> half_bits, element & mask
        for key in keys:
            digest = blake2b(struct.pack(">QQ", right, key)).digest()
            left, right = right, left ^ int.from_bytes(digest[:8], "big") & mask
        element = left << half_bits | right
        if element < elements:
            return element
