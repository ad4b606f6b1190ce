"""Checks of inclusion paths, whichever proofs they belong to: values, indices, and hashes up to the root.

The place named is the smallest that is surely wrong: a hash cannot tell which of its inputs is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import InputError
from cuzk.kernels.modulus import FR
from cuzk.sector.arrays import Bytes, Counts, Limbs, as_limbs
from cuzk.sector.merkle import HashChildren, PathRoots, Paths, path_indices
from cuzk.sector.shape import NODE_BYTES

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

Wrong = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedTree:
    """Paths in one tree; their leading axes are those of `nodes` and of `name`'s arguments.

    nodes       the leaves that must be opened
    path_roots  by the hash of the tree
    name        what messages call a path
    next        what to do about a damaged one
    """

    paths: Paths
    nodes: Counts
    arities: tuple[int, ...]
    path_roots: PathRoots
    name: Callable[..., str]
    next: str

    def check_values(self, where: str) -> None:
        """Raise InputError unless every hash is below r."""
        levels = [level for level, arity in enumerate(self.arities) for _ in range(arity - 1)]
        parts = (self.paths.roots, "root"), (self.paths.leaves, "leaf")
        for hashes, part in parts:
            require_below_r(hashes, lambda *at, part=part: f"{where}, {self.name(*at)}, {part}", self.next)
        require_below_r(
            self.paths.siblings,
            lambda *at: f"{where}, {self.name(*at[:-1])}, level {levels[at[-1]]}",
            self.next,
        )

    def check_paths(self, where: str) -> None:
        """Raise InputError unless indices spell the leaf and hashes lead to the root."""
        expected = path_indices(self.nodes, self.arities)
        if at := first(self.paths.indices != expected):
            what = f"index {self.paths.indices[at]} does not lead to node {self.nodes[at[:-1]]}"
            fail(what, f"{where}, {self.name(*at[:-1])}, level {at[-1]}", self.next)
        axes, paths = self.nodes.shape, self.paths
        roots = self.path_roots(
            paths.leaves.reshape(-1, NODE_BYTES),
            paths.siblings.reshape(self.nodes.size, -1, NODE_BYTES),
            paths.indices.reshape(self.nodes.size, -1),
            self.arities,
        )
        differs = (roots != as_limbs(paths.roots).reshape(-1, 4)).any(axis=-1)
        if at := first(differs.reshape(axes)):
            fail("the path does not lead from its leaf to its root", f"{where}, {self.name(*at)}", self.next)

    def check_roots(self, expected: Bytes, named: str, where: str) -> None:
        """Raise InputError unless every root is the `named` commitment, (..., 32) of axes that fit."""
        if at := first((self.paths.roots != expected).any(axis=-1)):
            fail(f"the path's root is not the {named}", f"{where}, {self.name(*at)}", self.next)


def poseidon(device: CpuDevice, *, domain_tag: int | None = None) -> HashChildren:
    """The hash of trees C and R_last, and of comm_r; or, with a domain tag, another."""
    from cuzk.kernels.poseidon_hash import hash_many  # loads the compiler, which a statement does without

    return partial(hash_many, device, domain_tag=domain_tag)


def poseidon_roots(device: CpuDevice) -> PathRoots:
    """Of paths in trees C and R_last."""
    from cuzk.kernels.poseidon_hash import path_roots

    def roots(leaves: Bytes, siblings: Bytes, indices: Counts, arities: Sequence[int]) -> Limbs:
        return path_roots(device, as_limbs(leaves), as_limbs(siblings), indices, arities)

    return roots


def fail(what: str, where: str, next: str) -> NoReturn:
    raise InputError(what, where=where, next=next)


def first(wrong: Wrong) -> tuple[int, ...] | None:
    """Index of the first true entry, or None."""
    return tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else None


def require_below_r(hashes: Bytes, place: Callable[..., str], next: str) -> None:
    """Raise InputError unless every one of (..., 32) is below r; `place` has the axes as arguments."""
    if at := first(not_below_r(hashes)):
        fail("the hash is not below r", place(*at), next)


def not_below_r(hashes: Bytes) -> Wrong:
    """(...) for (..., 32)."""
    limbs, top = as_limbs(hashes), FR.limbs(FR.p, 4, 64)[-1]
    if (limbs[..., -1] < top).all():  # as good as always: one number in 2^63 has that of r
        return np.zeros(limbs.shape[:-1], dtype=np.bool_)
    at_least: Wrong = np.ones(limbs.shape[:-1], dtype=np.bool_)
    for i, limb in enumerate(FR.limbs(FR.p, 4, 64)):  # from the lowest up: a higher limb overrules
        at_least = (limbs[..., i] > limb) | ((limbs[..., i] == limb) & at_least)
    return at_least


def comm_r_of(comm_c: Bytes, comm_r_last: Bytes, hash_children: HashChildren) -> Limbs:
    """(n, 4) for (n, 32) each: what a replica is committed to as."""
    return hash_children(np.stack([as_limbs(comm_c), as_limbs(comm_r_last)], axis=1))
