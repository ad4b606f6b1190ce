"""Values of which a sector's every node is known at once: pairs in the order of the Thue-Morse word.

Node i is the first value of a pair where i has an even number of one bits, else the second. Both halves of
the word are words again, the second with the values exchanged, so a level of a tree over it has two values
too, and neighbours always differ. The root is known after two hashes a level, before anybody asks which nodes
will be opened. With a pair of its own for each of 2^k blocks of nodes, this holds up to the level whose nodes
span a block; of those above, every one is computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuzk.sector.arrays import Bytes, Counts, Limbs, as_hashes, as_limbs
from cuzk.sector.merkle import HashChildren, Paths, path_indices
from cuzk.sector.shape import NODE_BYTES


class ThueMorse:
    """A tree of these arities, leaf level first, over the word: leaves, nodes, paths and root.

    pairs  (blocks, 2, 32), blocks a power of two
    root   32 bytes
    """

    def __init__(self, pairs: Bytes, arities: Sequence[int], hash_children: HashChildren) -> None:
        self._arities = tuple(arities)
        self._pairs = [as_limbs(pairs)]  # of each level whose nodes do not span more than a block
        self._rows: list[Limbs] = []  # (k, 4) of each level above
        blocks, left = len(pairs), int(np.prod(self._arities))
        for arity in self._arities:
            left //= arity
            if not self._rows and left >= blocks:
                order = ones_are_odd(np.arange(arity)) ^ np.array([[0], [1]])
                families = self._pairs[-1][:, order].reshape(-1, arity, NODE_BYTES // 8)
                self._pairs.append(hash_children(families).reshape(blocks, 2, NODE_BYTES // 8))
            else:
                row = (
                    self._rows[-1]
                    if self._rows
                    else self._limbs(len(self._pairs) - 1, np.arange(left * arity))
                )
                self._rows.append(hash_children(row.reshape(left, arity, NODE_BYTES // 8)))
        self.root = self.nodes(len(self._arities), np.zeros(1, np.int64)).tobytes()

    def _limbs(self, level: int, nodes: Counts) -> Limbs:
        """(..., 4) for (...) nodes of a level."""
        if level >= len(self._pairs):
            limbs: Limbs = self._rows[level - len(self._pairs)][nodes]
            return limbs
        pairs, spanned = self._pairs[level], int(np.prod(self._arities[level:]))
        of_pairs: Limbs = pairs[nodes // (spanned // len(pairs)), ones_are_odd(nodes)]
        return of_pairs

    def nodes(self, level: int, nodes: Counts) -> Bytes:
        """(..., 32) for (...) nodes of a level; level 0 are the leaves."""
        return as_hashes(self._limbs(level, nodes))

    def leaves(self, nodes: Counts) -> Bytes:
        """(n, 32) for (n,)."""
        return self.nodes(0, nodes)

    def paths(self, nodes: Counts) -> Paths:
        """For (n,) nodes."""
        indices, siblings, above = path_indices(nodes, self._arities), [], nodes
        for level, arity in enumerate(self._arities):
            above = above // arity
            others = np.arange(arity) != indices[:, level, None]
            family = self.nodes(level, above[:, None] * arity + np.arange(arity))
            siblings.append(family[others].reshape(len(nodes), arity - 1, NODE_BYTES))
        root = np.frombuffer(self.root, np.uint8)
        return Paths(
            roots=np.broadcast_to(root, (len(nodes), NODE_BYTES)),
            leaves=self.leaves(nodes),
            siblings=np.concatenate(siblings, axis=1),
            indices=indices,
        )


def ones_are_odd(numbers: Counts) -> Counts:
    """The parity of the number of one bits, for numbers below 2^63."""
    folded = numbers
    for distance in (32, 16, 8, 4, 2, 1):
        folded = folded ^ (folded >> distance)
    return folded & 1
