"""The circuit of one PoRep partition, and the values of its free variables from vanilla proofs.

Fixed part: replica_id, comm_d, comm_r as inputs; the roots comm_r_last and comm_c, whose hash is comm_r.
Then the challenges, alike but for what they share: replica bits and roots. A challenge proves, in this
order, its data node (D path), the columns of its 14 parents (C paths), its labels of all layers, the
replica node that they encode (R path), and its own column (C path). Sources: storage-proofs-porep,
stacked/circuit/proof.rs and params.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Bits, CircuitBuilder
from cuzk.circuit.label import NODE_BITS, label
from cuzk.circuit.merkle_path import index_bits, merkle_path, sha256_node
from cuzk.circuit.numbers import (
    add,
    equate,
    free_bits,
    free_number,
    free_numbers,
    inputize,
    pack_into_input,
    reverse_bits_of_bytes,
    to_bits,
)
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.witness import FreeValues
from cuzk.sector.arrays import Counts
from cuzk.sector.porep.c1 import C1
from cuzk.sector.porep.shape import DRG_DEGREE, LABEL_PARENTS, PARENTS, PorepShape
from cuzk.sector.shape import NODE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all challenges refer to."""

    replica_bits: Bits
    comm_d: int
    comm_r_last: int
    comm_c: int


def build(builder: CircuitBuilder, shape: PorepShape, *, challenges: int | None = None) -> None:
    """The circuit of one partition; with `challenges`, of only the first so many."""
    with builder.section("commitments"):
        shared = commitments(builder)
    with builder.strands("challenge", shape.challenges if challenges is None else challenges):
        challenge(builder, shape, shared)


def commitments(builder: CircuitBuilder) -> Shared:
    replica_id = free_number(builder)
    inputize(builder, replica_id)
    replica_bits = reverse_bits_of_bytes(to_bits(builder, replica_id))
    comm_d = free_number(builder)
    inputize(builder, comm_d)
    comm_r = free_number(builder)
    inputize(builder, comm_r)
    comm_r_last = free_number(builder)
    comm_c = free_number(builder)
    equate(builder, comm_r, poseidon(builder, [comm_c, comm_r_last]))
    return Shared(replica_bits=replica_bits, comm_d=comm_d, comm_r_last=comm_r_last, comm_c=comm_c)


def challenge(builder: CircuitBuilder, shape: PorepShape, shared: Shared) -> None:
    data = free_number(builder)
    with builder.section("D path"):
        merkle_path(builder, data, shared.comm_d, shape.d_arities, sha256_node)
    columns = []
    for parent in range(PARENTS):
        with builder.section(f"parent {parent}"):
            columns.append(free_numbers(builder, shape.layers))
            merkle_path(builder, poseidon(builder, columns[-1]), shared.comm_c, shape.path_arities, poseidon)
    with builder.section("node"):
        node = free_bits(builder, NODE_BITS)
        pack_into_input(builder, node)
    labels = []
    for layer in range(1, shape.layers + 1):
        with builder.section(f"layer {layer} label"):
            parents = label_parents(builder, columns, layer)
            labels.append(label(builder, shared.replica_bits, layer, node, parents))
    with builder.section("R path"):
        encoded = add(builder, labels[-1], data)
        merkle_path(builder, encoded, shared.comm_r_last, shape.path_arities, poseidon)
    with builder.section("own column"):
        merkle_path(builder, poseidon(builder, labels), shared.comm_c, shape.path_arities, poseidon)


def label_parents(builder: CircuitBuilder, columns: Sequence[Sequence[int]], layer: int) -> list[Bits]:
    """The bits of a label's 37 parents: DRG parents in this layer, expander parents in the one before."""
    rows = [column[layer - 1] for column in columns[:DRG_DEGREE]]
    if layer > 1:
        rows += [column[layer - 2] for column in columns[DRG_DEGREE:]]
    bits = [reverse_bits_of_bytes(to_bits(builder, row)) for row in rows]
    return [bits[i % len(bits)] for i in range(LABEL_PARENTS)]


def free_values(c1: C1, index: int) -> FreeValues:
    """The values of the circuit's free variables for one partition, in the order of their allocation.

    Index bits come from the paths and node bits from the labelings; nothing is checked here. All challenges
    are taken at once: this holds Python's lock, which whoever feeds a GPU wants.
    """
    shape, own = c1.shape, c1.partitions[index]
    count, arities = len(own.challenges), shape.path_arities
    roots = (c1.replica_id, c1.comm_d, c1.comm_r, own.comm_r_last, own.comm_c)
    of_node, of_parents = own.c_paths[:, 0], own.c_paths[:, 1:]
    numbers = [
        own.d_paths.leaves[:, None],
        own.d_paths.siblings,
        np.concatenate([own.columns[:, 1:], of_parents.siblings], axis=2).reshape(count, -1, NODE_BYTES),
        own.r_paths.siblings,
        of_node.siblings,
    ]
    bits = [
        index_bits(own.d_paths.indices, shape.d_arities),
        index_bits(of_parents.indices, arities).reshape(count, -1),
        bits_of(own.challenges, NODE_BITS),
        index_bits(own.r_paths.indices, arities),
        index_bits(of_node.indices, arities),
    ]
    of_challenges = np.concatenate(numbers, axis=1).reshape(-1, NODE_BYTES)
    shared = np.frombuffer(b"".join(roots), dtype=np.uint8).reshape(-1, NODE_BYTES)
    return FreeValues(
        numbers=np.concatenate([shared, of_challenges]), bits=np.concatenate(bits, axis=1).ravel()
    )


def bits_of(values: Counts, count: int) -> NDArray[np.uint8]:
    """(n, count) bits of (n,) values, lowest first."""
    assert (values >> count == 0).all(), (values, count)
    return (values[:, None] >> np.arange(count) & 1).astype(np.uint8)
