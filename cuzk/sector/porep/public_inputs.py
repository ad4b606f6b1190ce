"""The public inputs of a partition, from the statement alone: what a verifier computes for itself.

Order: replica_id, comm_d, comm_r; then for each challenge c eighteen numbers: c (path in D), its 6 DRG and 8
expander parents, c (challenge), c (path in R_last), c (path in C).
Sources: storage-proofs-porep, stacked/circuit/proof.rs; storage-proofs-core, gadgets/por.rs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


def public_inputs(statement: Statement, partition: int) -> NDArray[np.uint64]:
    """(3 + 18 C, 4) uint64, canonical, without ONE. Commitments are taken as they are, not checked."""
    graph = graph_of(statement.registered_proof)
    nodes: list[int] = []
    for challenge in challenges(statement, partition):
        nodes += [challenge, *graph.parents(challenge), challenge, challenge, challenge]
    encoded = statement.replica_id + statement.comm_d + statement.comm_r
    encoded += b"".join(node.to_bytes(NODE_BYTES, "little") for node in nodes)
    return np.frombuffer(encoded, dtype="<u8").reshape(-1, NODE_BYTES // 8)
