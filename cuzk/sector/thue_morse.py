"""Data of a sector of which every node is known at once: two values in the order of the Thue-Morse word.

Node i is the first value where i has an even number of one bits, else the second. Both halves of the word are
words again, the second with the values exchanged, so a level of tree D has two values too, and neighbours
always differ. comm_d is known after two hashes a level, before anybody asks which nodes will be opened.
"""

from __future__ import annotations

import numpy as np

from cuzk.sector.inputs import Bytes, Counts, Paths
from cuzk.sector.merkle import as_limbs, path_indices, sha256_children
from cuzk.sector.shape import NODE_BYTES

_SWAPPED = np.array([[0, 1], [1, 0]])


class ThueMorse:
    """The word of 2^levels nodes over `pair`, (2, 32): leaves, paths and root of its tree D."""

    def __init__(self, pair: Bytes, levels: int) -> None:
        values = [as_limbs(pair)]
        for _ in range(levels):
            values.append(sha256_children(values[-1][_SWAPPED]))
        self._levels = levels
        self._values = np.stack(values).view(np.uint8).reshape(levels + 1, 2, NODE_BYTES)
        self.root = self._values[levels, 0].tobytes()

    def leaves(self, nodes: Counts) -> Bytes:
        """(n, 32) for (n,)."""
        leaves: Bytes = self._values[0, ones_are_odd(nodes)]
        return leaves

    def paths(self, nodes: Counts) -> Paths:
        """For (n,) nodes."""
        levels = np.arange(self._levels)
        others = 1 - ones_are_odd(nodes[:, None] >> levels)
        return Paths(
            roots=np.broadcast_to(self._values[self._levels, 0], (len(nodes), NODE_BYTES)),
            leaves=self.leaves(nodes),
            siblings=self._values[levels, others],
            indices=path_indices(nodes, (2,) * self._levels),
        )


def ones_are_odd(numbers: Counts) -> Counts:
    """The parity of the number of one bits, for numbers below 2^63."""
    folded = numbers
    for distance in (32, 16, 8, 4, 2, 1):
        folded = folded ^ (folded >> distance)
    return folded & 1
