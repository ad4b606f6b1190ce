"""The circuit of a proof of spacetime, winning or window, and the values of its free variables.

Sectors that share nothing, each in this order: comm_r_last, comm_c and comm_r, which is an input and the hash
of the other two; then for each challenge a leaf and its R path, whose index is an input. Source:
storage-proofs-post, fallback/circuit.rs.
"""

from __future__ import annotations

import numpy as np

from cuzk.circuit.builder import CircuitBuilder
from cuzk.circuit.merkle_path import index_bits, merkle_path
from cuzk.circuit.numbers import equate, free_number, free_numbers, inputize
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.witness import FreeValues
from cuzk.sector.arrays import reshaped_view
from cuzk.sector.post import PostInput, place_in_circuit
from cuzk.sector.post_shape import PostShape
from cuzk.sector.shape import NODE_BYTES


def build(builder: CircuitBuilder, shape: PostShape) -> None:
    """All rows but those of the inputs."""
    with builder.strands("challenge" if shape.is_winning else "sector", shape.sector_count):
        sector(builder, shape)


def sector(builder: CircuitBuilder, shape: PostShape) -> None:
    comm_r_last, comm_c, comm_r = free_numbers(builder, 3)
    inputize(builder, comm_r)
    equate(builder, comm_r, poseidon(builder, [comm_c, comm_r_last]))
    for number in range(shape.challenge_count):
        with builder.section("R path" if shape.is_winning else f"challenge {number}"):
            leaf = free_number(builder)
            merkle_path(builder, leaf, comm_r_last, shape.path_arities, poseidon)


def free_values(given: PostInput, partition: int) -> FreeValues:
    """What the circuit's free variables hold, in the order of their allocation; nothing is checked here."""
    assert partition == 0, partition
    shape, paths, challenges = given.shape, given.paths, given.shape.challenge_count
    siblings = paths.siblings.shape[-2]
    numbers = np.empty((shape.sector_count, 3 + challenges * (1 + siblings), NODE_BYTES), np.uint8)
    for number, commitment in enumerate((given.comm_r_last, given.comm_c, given.comm_r)):
        place_in_circuit(commitment, numbers[:, number])
    opened = reshaped_view(numbers[:, 3:], shape.sector_count, challenges, 1 + siblings, NODE_BYTES)
    place_in_circuit(paths.leaves.reshape(-1, challenges, NODE_BYTES), opened[:, :, 0])
    place_in_circuit(paths.siblings.reshape(-1, challenges, siblings, NODE_BYTES), opened[:, :, 1:])
    index = index_bits(paths.indices, shape.path_arities)
    bits = np.empty((shape.sector_count, challenges, index.shape[-1]), np.uint8)
    place_in_circuit(index.reshape(-1, *bits.shape[1:]), bits)
    return FreeValues(numbers=numbers.reshape(-1, NODE_BYTES), bits=bits.ravel())
