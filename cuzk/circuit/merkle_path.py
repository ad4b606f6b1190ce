"""Inclusion of a leaf in a tree, as rows, level by level from the leaf; the computed root is equated.

Index bits and siblings are free, and the node index goes out as an input; or all of them are there already,
and there is no input. Sources: storage-proofs-core, gadgets/por.rs; filecoin-hashers, sha256.rs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Bits, CircuitBuilder
from cuzk.circuit.insertion import insert
from cuzk.circuit.numbers import (
    equate,
    free_bits,
    free_numbers,
    pack,
    pack_into_input,
    reverse_bits_of_bytes,
    to_bits,
)
from cuzk.circuit.sha256 import sha256
from cuzk.sector.arrays import Counts

Hash = Callable[[CircuitBuilder, Sequence[int]], int]
"""A gadget from the variables of all children to that of their parent."""


def merkle_path(builder: CircuitBuilder, leaf: int, root: int, arities: Sequence[int], hash_: Hash) -> None:
    """The path of `leaf` under `root`, both existing variables, through levels of these arities."""
    node, index = leaf, []
    for level, arity in enumerate(arities):
        with builder.section(f"level {level}"):
            position = free_bits(builder, arity.bit_length() - 1)
            siblings = free_numbers(builder, arity - 1)
            node = hash_(builder, insert(builder, node, siblings, position))
        index.append(position)
    with builder.section("index"):
        pack_into_input(builder, np.concatenate(index))
    with builder.section("root"):
        equate(builder, node, root)


def merkle_path_of(
    builder: CircuitBuilder,
    leaf: int,
    root: int,
    arities: Sequence[int],
    hash_: Hash,
    *,
    index: Bits,
    siblings: Sequence[int],
) -> None:
    """The same over existing variables: bits of the index, lowest first, and siblings of all levels."""
    node, bits, others = leaf, iter(index), iter(siblings)
    for level, arity in enumerate(arities):
        with builder.section(f"level {level}"):
            position = np.array([*islice(bits, arity.bit_length() - 1)])
            node = hash_(builder, insert(builder, node, [*islice(others, arity - 1)], position))
    assert not [*bits, *others]
    with builder.section("root"):
        equate(builder, node, root)


def siblings_of(arities: Sequence[int]) -> int:
    """How many siblings a path has."""
    return sum(arity - 1 for arity in arities)


def index_bits(indices: Counts, arities: Sequence[int]) -> NDArray[np.uint8]:
    """(..., levels) positions as the (..., n) free bits of their paths: each level's, lowest first."""
    widths = [arity.bit_length() - 1 for arity in arities]
    assert (indices >> widths == 0).all(), "a position outside its level"
    shifts = np.concatenate([np.arange(width) for width in widths])
    bits: NDArray[np.uint8] = (np.repeat(indices, widths, axis=-1) >> shifts & 1).astype(np.uint8)
    return bits


def sha256_node(builder: CircuitBuilder, children: Sequence[int]) -> int:
    """The parent of two nodes: SHA-256 of their bytes without the two top bits of the last byte."""
    preimage = np.concatenate([reverse_bits_of_bytes(to_bits(builder, child)) for child in children])
    return pack(builder, reverse_bits_of_bytes(sha256(builder, preimage)))
