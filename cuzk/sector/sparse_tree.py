"""Merkle trees of which a few leaves matter: every node beside their paths is made up, every other is absent.

A node that several paths need is one entry of a level, so paths agree wherever they meet. With all leaves
given it is an ordinary tree, in which nothing is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cuzk.sector.arrays import Bytes, Counts, Limbs, as_hashes
from cuzk.sector.merkle import HashChildren, Paths, path_indices
from cuzk.sector.shape import NODE_BYTES

MakeUp = Callable[[int, int], Limbs]
"""level, count -> (count, 4) canonical nodes."""


class SparseTree:
    """The tree over some leaves; or several trees, leaf i of tree t being node t * size + i.

    nodes, leaves  (n,) ascending, and their values (n, 4)
    arities        an entry a level, leaf level first
    roots          (trees, 4) uint64, of the trees that have leaves
    """

    def __init__(
        self,
        nodes: Counts,
        leaves: Limbs,
        arities: Sequence[int],
        hash_children: HashChildren,
        make_up: MakeUp,
    ) -> None:
        self._arities = tuple(arities)
        self._leaves, self._nodes = leaves, nodes
        self._levels: list[
            tuple[Counts, Limbs]
        ] = []  # (k,) ascending nodes of the level above, (k, arity, 4)
        values = leaves
        for level, arity in enumerate(self._arities):
            above, rows = np.unique(nodes // arity, return_inverse=True)
            children = np.empty((len(above), arity, NODE_BYTES // 8), dtype=np.uint64)
            known = np.zeros((len(above), arity), dtype=np.bool_)
            known[rows, nodes % arity] = True
            children[known] = values  # both are ascending
            children[~known] = make_up(level, int(np.count_nonzero(~known)))
            self._levels.append((above, children))
            nodes, values = above, hash_children(children)
        self._trees, self.roots = nodes, values

    def paths(self, nodes: Counts) -> Paths:
        """The paths of leaves that were given; the leading axes are those of `nodes`."""
        axes, flat = nodes.shape, nodes.reshape(-1)
        indices = path_indices(flat, self._arities)
        siblings, position = [], flat
        for level, ((above, children), arity) in enumerate(zip(self._levels, self._arities, strict=True)):
            position = position // arity
            others = np.arange(arity) != indices[:, level, None]
            family = children[np.searchsorted(above, position)]
            siblings.append(family[others].reshape(len(flat), arity - 1, NODE_BYTES // 8))
        leaves = self._leaves[np.searchsorted(self._nodes, flat)]
        roots = self.roots[np.searchsorted(self._trees, position)]
        return Paths(
            roots=_hashes(roots, *axes),
            leaves=_hashes(leaves, *axes),
            siblings=_hashes(np.concatenate(siblings, axis=1), *axes, -1),
            indices=indices.reshape(*axes, -1),
        )


def _hashes(limbs: Limbs, *axes: int) -> Bytes:
    """(*axes, 32) uint8."""
    return as_hashes(limbs).reshape(*axes, NODE_BYTES)
