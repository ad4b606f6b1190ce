"""The circuit of one partition of a sector update (SnapDeals).

Fixed part: which partition and encoding, comm_r_old, comm_d_new and comm_r_new as inputs; the roots of both
replicas, whose hashes with comm_c are comm_r; the *apex tree*, from the partition's apex leaves through the
partition's own root up to comm_d_new; the bits that challenges are made of. Then the challenges. Each proves
that its node of the new replica is that of the old one plus a data node times rho, and the paths of all
three, that of the data up to an apex leaf. Sources: storage-proofs-update, circuit.rs and gadgets.rs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from cuzk.circuit.builder import Bits, CircuitBuilder
from cuzk.circuit.insertion import select
from cuzk.circuit.merkle_path import merkle_path_of, sha256_node, siblings_of
from cuzk.circuit.numbers import (
    add,
    equate,
    free_number,
    free_numbers,
    inputize,
    multiply,
    pack,
    products_template,
    traced_product,
    unpack,
    weighted,
)
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.r1cs import ONE, Template, Tracer
from cuzk.circuit.witness import FreeValues
from cuzk.kernels.modulus import FR
from cuzk.sector.arrays import as_hashes
from cuzk.sector.shape import BINARY, NODE_BYTES
from cuzk.sector.update import UpdateInput
from cuzk.sector.update_shape import UPDATE_TAG, UpdateShape

updates_hash = partial(poseidon, domain_tag=UPDATE_TAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all challenges refer to.

    groups          of each challenge: the bits of its node within the partition, lowest first
    partition_bits  of every node: those above
    high_select     which high part of a node counts
    """

    partition_bits: Bits
    high_select: Bits
    phi: int
    root_r_old: int
    root_r_new: int
    apex_leaves: list[int]
    groups: list[Bits]


def build(builder: CircuitBuilder, shape: UpdateShape) -> None:
    """The circuit of one partition."""
    shared = fixed_part(builder, shape)
    for number in range(shape.challenges):
        builder.begin_strand(f"challenge {number}")
        challenge(builder, shape, shared, shared.groups[number])


def fixed_part(builder: CircuitBuilder, shape: UpdateShape) -> Shared:
    with builder.section("partition"):
        partition_and_select = free_number(builder)
        inputize(builder, partition_and_select)
        bits = unpack(builder, partition_and_select, shape.partition_bits + len(shape.high_choices))
        partition_bits = bits[: shape.partition_bits]
        partition = pack(builder, partition_bits)
    with builder.section("commitments"):
        comm_r_old, comm_d_new, comm_r_new = (committed(builder) for _ in range(3))
        phi = updates_hash(builder, [comm_d_new, comm_r_old])
        comm_c, root_r_old, root_r_new = (free_number(builder) for _ in range(3))
        apex_leaves = free_numbers(builder, shape.apex_leaves)
        siblings = free_numbers(builder, shape.partition_bits)
        equate(builder, poseidon(builder, [comm_c, root_r_old]), comm_r_old)
        equate(builder, poseidon(builder, [comm_c, root_r_new]), comm_r_new)
    with builder.section("apex tree"):
        apex_root = tree_root(builder, apex_leaves)
        arities = [BINARY] * shape.partition_bits
        merkle_path_of(
            builder, apex_root, comm_d_new, arities, sha256_node, index=partition_bits, siblings=siblings
        )
    with builder.section("challenge bits"):
        digests = [challenge_digest(builder, shape, partition, comm_r_new, j) for j in range(shape.digests)]
    return Shared(
        partition_bits=partition_bits,
        high_select=bits[shape.partition_bits :],
        phi=phi,
        root_r_old=root_r_old,
        root_r_new=root_r_new,
        apex_leaves=apex_leaves,
        groups=[group for digest in digests for group in groups_of(digest, shape)],
    )


def committed(builder: CircuitBuilder) -> int:
    """A free variable that is an input too."""
    commitment = free_number(builder)
    inputize(builder, commitment)
    return commitment


def tree_root(builder: CircuitBuilder, leaves: list[int]) -> int:
    """The root of the binary SHA-256 tree over 2^k leaves."""
    row = leaves
    while len(row) > 1:
        with builder.section(f"row of {len(row)}"):
            row = [sha256_node(builder, row[i : i + BINARY]) for i in range(0, len(row), BINARY)]
    return row[0]


def challenge_digest(
    builder: CircuitBuilder, shape: UpdateShape, partition: int, comm_r_new: int, number: int
) -> Bits:
    """The bits of the hash that gives the challenges of digest `number`, lowest first."""
    index = builder.instance(digest_index_template(shape.digests, number), numbers=[partition])
    return unpack(builder, updates_hash(builder, [comm_r_new, *index.tolist()]), FR.bits)


@lru_cache(maxsize=64)
def digest_index_template(digests: int, number: int) -> Template:
    """digests * partition + number; of number 0 upstream makes a term as well."""
    tracer = Tracer(numbers=1)
    index = traced_product(tracer, {ONE: number, tracer.numbers[0]: digests}, {ONE: 1})
    return products_template("index of digest", tracer, [index])


def groups_of(digest: Bits, shape: UpdateShape) -> list[Bits]:
    """The bits of each challenge of a digest; those of the last digest are not all needed."""
    width = shape.challenge_bits
    return [digest[width * i : width * (i + 1)] for i in range(shape.challenges_a_digest)]


def challenge(builder: CircuitBuilder, shape: UpdateShape, shared: Shared, own_bits: Bits) -> None:
    index = np.concatenate([own_bits, shared.partition_bits])
    high = high_part(builder, shape, index, shared.high_select)
    rho = updates_hash(builder, [shared.phi, high])
    old, data = free_numbers(builder, 2)
    new = add(builder, old, multiply(builder, data, rho))
    arities = shape.path_arities
    for name, leaf, root in (("old R path", old, shared.root_r_old), ("new R path", new, shared.root_r_new)):
        with builder.section(name):
            siblings = free_numbers(builder, siblings_of(arities))
            merkle_path_of(builder, leaf, root, arities, poseidon, index=index, siblings=siblings)
    below, apex_levels = shape.d_path_levels, shape.apex_levels
    with builder.section("D path"):
        apex = select(builder, shared.apex_leaves, own_bits[below : below + apex_levels])
        siblings = free_numbers(builder, below)
        merkle_path_of(
            builder, data, apex, [BINARY] * below, sha256_node, index=own_bits[:below], siblings=siblings
        )


def high_part(builder: CircuitBuilder, shape: UpdateShape, index: Bits, high_select: Bits) -> int:
    """The upper bits of a node index, as many as `high_select` says."""
    highest = index[-max(shape.high_choices) :]
    template = high_part_template(shape.high_choices)
    (high,) = builder.instance(template, bits=np.concatenate([highest, high_select])).tolist()
    return int(high)


@lru_cache(maxsize=2)
def high_part_template(choices: tuple[int, ...]) -> Template:
    """Bits of the index, lowest first, and those that select a choice."""
    widest = max(choices)
    tracer = Tracer(bits=widest + len(choices))
    index, select_bits = tracer.bits[:widest], tracer.bits[widest:]
    kept_parts = []
    for width, chosen in zip(choices, select_bits, strict=True):
        part = traced_product(tracer, weighted(index[widest - width :]), {ONE: 1})
        kept_parts.append(traced_product(tracer, {part: 1}, {chosen: 1}))
    high = traced_product(tracer, dict.fromkeys(kept_parts, 1), {ONE: 1})
    return products_template("high part", tracer, [high])


def free_values(given: UpdateInput, partition: int) -> FreeValues:
    """What the circuit's free variables hold, in the order of their allocation; no bits are free."""
    shape, own = given.shape, given.partitions[partition]
    roots = np.frombuffer(own.comm_c + own.root_r_old + own.root_r_new, np.uint8).reshape(-1, NODE_BYTES)
    above = own.data.siblings[0, shape.challenge_bits :]
    of_challenges = np.concatenate(
        [
            own.old.leaves[:, None],
            own.data.leaves[:, None],
            own.old.siblings,
            own.new.siblings,
            own.data.siblings[:, : shape.d_path_levels],
        ],
        axis=1,
    )
    parts = [as_hashes(given.public_inputs(partition)), roots, own.apex_leaves, above]
    return FreeValues(
        numbers=np.concatenate([*parts, of_challenges.reshape(-1, NODE_BYTES)]), bits=np.zeros(0, np.uint8)
    )
