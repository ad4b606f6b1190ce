"""What a prover is given for one sector: the vanilla proofs as plain arrays, challenges along the first axis.

Every hash, node, label and commitment is 32 bytes, the little-endian encoding of an Fr; whether it is
canonical (< r) and fits its neighbours is what `c1` finds out. A partition has C challenges, a sector has
L layers.

An axis of 15 counts *columns*: 0 is the challenged node itself (`c_x`), 1..6 are its DRG parents, 7..14 its
expander parents.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.sector.arrays import Bytes, Counts
from cuzk.sector.merkle import Paths
from cuzk.sector.porep.registered_proof import RegisteredProof
from cuzk.sector.porep.shape import DRG_DEGREE, EXPANDER_DEGREE

COLUMN_NAMES = (
    "the challenged node",
    *(f"DRG parent {i}" for i in range(DRG_DEGREE)),
    *(f"expander parent {i}" for i in range(EXPANDER_DEGREE)),
)
"""What messages call the 15 columns."""

RUN_C1_AGAIN = "run C1 for this sector again, or copy its output again"
"""What to do about a damaged input."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labelings:
    """Preimages of labels: what a node's label in one layer was hashed from.

    parents  (..., 37, 32)
    layers   (...) int64, 1-based
    nodes    (...) int64
    """

    parents: Bytes
    layers: Counts
    nodes: Counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionInput:
    """The vanilla proofs of one partition.

    d_paths       (C): binary tree D over the data; its leaves are the data nodes, its roots comm_d
    r_paths       (C): tree R_last over the replica; its roots are comm_r_last
    c_paths       (C, 15): tree C over the column hashes; its roots are comm_c
    columns       (C, 15, L, 32): labels of the node in layers 1..L
    column_nodes  (C, 15) int64: indices of the nodes
    labelings     (C, L); encodings (C): of the challenged node
    """

    index: int
    d_paths: Paths
    r_paths: Paths
    c_paths: Paths
    columns: Bytes
    column_nodes: Counts
    labelings: Labelings
    encodings: Labelings

    @property
    def challenges(self) -> Counts:
        """(C,) the challenged nodes, as the circuit takes them."""
        return self.labelings.nodes[:, 0]

    @property
    def comm_c(self) -> bytes:
        return bytes(self.c_paths.roots[0, 0])

    @property
    def comm_r_last(self) -> bytes:
        return bytes(self.r_paths.roots[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What the proofs of a sector claim: challenges and public inputs follow from it alone."""

    registered_proof: RegisteredProof
    replica_id: bytes
    comm_d: bytes
    comm_r: bytes
    seed: bytes
