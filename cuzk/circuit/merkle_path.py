"""Inclusion of a leaf in a tree, as rows: index bits and siblings are free, level by level from the leaf.

The node index goes out as an input, the computed root is equated with a given variable. Sources:
storage-proofs-core, gadgets/por.rs; filecoin-hashers, sha256.rs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cuzk.circuit.builder import CircuitBuilder
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


def sha256_node(builder: CircuitBuilder, children: Sequence[int]) -> int:
    """The parent of two nodes: SHA-256 of their bytes without the two top bits of the last byte."""
    preimage = np.concatenate([reverse_bits_of_bytes(to_bits(builder, child)) for child in children])
    return pack(builder, reverse_bits_of_bytes(sha256(builder, preimage)))
