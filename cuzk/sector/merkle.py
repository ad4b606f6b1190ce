"""Inclusion paths, natively and many at once: where a path's indices lead, and which root it hashes to.

Arrays have the leading axis of n paths of one form; `arities` has an entry a level, leaf level first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from cuzk.sector.arrays import Bytes, Counts, Limbs, as_limbs
from cuzk.sector.shape import NODE_BYTES

HashChildren = Callable[[Limbs], Limbs]
"""(n, arity, 4) children to (n, 4) nodes."""

PathRoots = Callable[[Bytes, Bytes, Counts, Sequence[int]], Limbs]
"""What n paths hash to, (n, 4): see `computed_roots`, whose arguments but the last these are."""

TRIMMED = np.array([(1 << 64) - 1] * 3 + [(1 << 62) - 1], dtype=np.uint64)
"""The limbs of a digest that `replica_id.trim254` leaves."""


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
    """Of paths in tree D."""
    return computed_roots(leaves, siblings, indices, arities, sha256_children)


def computed_roots(
    leaves: Bytes, siblings: Bytes, indices: Counts, arities: Sequence[int], hash_children: HashChildren
) -> Limbs:
    """(n, 4): what n paths hash to, given (n, 32) leaves, (n, S, 32) siblings and (n, levels) indices."""
    running, others = as_limbs(leaves), as_limbs(siblings)
    start = 0
    for level, arity in enumerate(arities):
        is_running = indices[:, level, None] == np.arange(arity)
        children = np.empty((len(running), arity, NODE_BYTES // 8), dtype=np.uint64)
        children[is_running] = running  # one a row, so in the order of the paths
        children[~is_running] = others[:, start : start + arity - 1].reshape(-1, NODE_BYTES // 8)
        running = hash_children(children)
        start += arity - 1
    return running
