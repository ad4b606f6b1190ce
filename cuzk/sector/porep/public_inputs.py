"""The public inputs of a partition, from the statement alone: what a verifier computes for itself.

Order: replica_id, comm_d, comm_r; then for each challenge c eighteen numbers: c (path in D), its 6 DRG and 8
expander parents, c (challenge), c (path in R_last), c (path in C).
Sources: storage-proofs-porep, stacked/circuit/proof.rs; storage-proofs-core, gadgets/por.rs.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuzk.sector.arrays import Counts, Limbs, read_only
from cuzk.sector.porep.challenges import challenges
from cuzk.sector.porep.graph import Graph
from cuzk.sector.porep.inputs import Statement
from cuzk.sector.porep.registered_proof import RegisteredProof
from cuzk.sector.shape import NODE_BYTES


def graph_of(registered_proof: RegisteredProof) -> Graph:
    return Graph(
        nodes=registered_proof.shape.nodes,
        porep_id=registered_proof.porep_id,
        api_version=registered_proof.api_version,
    )


@lru_cache(maxsize=64)
def opened_nodes(statement: Statement, partition: int) -> Counts:
    """(C, 15) read-only: the challenges of a partition, each with its parents.

    Kept, as the check of the vanilla proofs and that of the proof both ask: they take 1 ms.
    """
    challenged = challenges(statement, partition)
    parents = graph_of(statement.registered_proof).parents_of(challenged)
    return read_only(np.column_stack([challenged, parents]))


def public_inputs(statement: Statement, partition: int) -> Limbs:
    """(3 + 18 C, 4) uint64, canonical, without ONE. Commitments are taken as they are, not checked."""
    opened = opened_nodes(statement, partition)
    numbers = np.concatenate([opened, *[opened[:, :1]] * 3], axis=1).ravel()
    encoded = np.frombuffer(statement.replica_id + statement.comm_d + statement.comm_r, dtype="<u8")
    inputs = np.zeros((3 + len(numbers), NODE_BYTES // 8), dtype=np.uint64)
    inputs[:3] = encoded.reshape(3, -1)
    inputs[3:, 0] = numbers
    return inputs
