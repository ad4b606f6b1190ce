"""Inclusion paths, natively and many at once: where a path's indices lead, and which root it hashes to.

Arrays have the leading axis of n paths of one form; `arities` has an entry a level, leaf level first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from cuzk.sector.arrays import Bytes, Counts, Limbs
from cuzk.sector.shape import BINARY, NODE_BYTES

HashChildren = Callable[[Limbs], Limbs]
"""(n, arity, 4) children to (n, 4) nodes."""

PathRoots = Callable[[Bytes, Bytes, Counts, Sequence[int]], Limbs]
"""(n, 4): what n paths hash to, from (n, 32) leaves, (n, S, 32) siblings, (n, levels) indices and arities."""

TRIMMED = np.array([(1 << 64) - 1] * 3 + [(1 << 62) - 1], dtype=np.uint64)
"""The limbs of a digest that `replica_id.trim254` leaves."""

_TRIMMED_BYTES = [bytes([last & 0x3F]) for last in range(1 << 8)]
"""The same of a digest's last byte."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paths:
    """Inclusion paths in trees of one form; `...` are the leading axes, levels go from leaf to root.

    roots     (..., 32)
    leaves    (..., 32)
    siblings  (..., S, 32), S = sum of (arity - 1) over the levels: the other children, in increasing position
    indices   (..., levels) int64: position of the running node among its siblings
    """

    roots: Bytes
    leaves: Bytes
    siblings: Bytes
    indices: Counts

    def __getitem__(self, key: int | slice | tuple[int | slice | Counts, ...]) -> Paths:
        """The same paths, indexed along their leading axes."""
        return Paths(
            roots=self.roots[key],
            leaves=self.leaves[key],
            siblings=self.siblings[key],
            indices=self.indices[key],
        )


def sha256_children(children: Limbs) -> Limbs:
    """Nodes of tree D: trimmed SHA-256 of both children. 1 us a node."""
    data = children.tobytes()
    pairs = [data[start : start + 2 * NODE_BYTES] for start in range(0, len(data), 2 * NODE_BYTES)]
    digests = b"".join([sha256(pair).digest() for pair in pairs])
    nodes: Limbs = np.frombuffer(digests, dtype="<u8").reshape(-1, NODE_BYTES // 8) & TRIMMED
    return nodes


def path_indices(nodes: Counts, arities: Sequence[int]) -> Counts:
    """(n, levels) for (n,) leaves: each level's digit of the leaf's number, the lowest first."""
    digits, rest = [], nodes
    for arity in arities:
        digits.append(rest % arity)
        rest = rest // arity
    return np.stack(digits, axis=-1)


def sha256_roots(leaves: Bytes, siblings: Bytes, indices: Counts, arities: Sequence[int]) -> Limbs:
    """Of paths in tree D, which is binary. 0.7 us a node: Python's part is as little as can be, as it holds
    its lock."""
    assert set(arities) <= {BINARY}, arities
    others, start, roots = siblings.tobytes(), 0, []
    for leaf, is_right in zip(leaves, indices.tolist(), strict=True):
        node = leaf.tobytes()
        for right in is_right:
            other = others[start : start + NODE_BYTES]
            start += NODE_BYTES
            digest = sha256(other + node if right else node + other).digest()
            node = digest[:-1] + _TRIMMED_BYTES[digest[-1]]
        roots.append(node)
    return np.frombuffer(b"".join(roots), dtype="<u8").reshape(-1, NODE_BYTES // 8)
