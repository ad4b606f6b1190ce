"""A Commit 1 output as what can be proven, and its native checks: bad input costs a second, not a proof.

A sector passes if and only if the circuits of its partitions are satisfied, their public inputs are those
that a verifier computes, and the redundant parts of the document agree with the rest. In the order of checks:

statement   size and registered proof agree, commitments are canonical and not zero, replica_id is the miner's
hashes      every one is below r
nodes       challenges are those of the statement, parents those of the graph; indices of paths name them
paths       each leads from its leaf to its root; roots are comm_d, and one comm_c and comm_r_last with
            comm_r = H(comm_c, comm_r_last)
columns     hash to the leaves of their paths in tree C
labels      recompute from the parents' columns
encoding    label of the last layer + data = replica, the leaf of the path in tree R_last

The place named is the smallest that is surely wrong: a hash cannot tell which of its inputs is damaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.modulus import FR
from cuzk.sector.arrays import as_limbs
from cuzk.sector.merkle import sha256_roots
from cuzk.sector.path_check import (
    OpenedTree,
    comm_r_of,
    fail,
    first,
    poseidon,
    poseidon_roots,
    require_below_r,
)
from cuzk.sector.porep.inputs import COLUMN_NAMES, RUN_C1_AGAIN, PartitionInput, Statement
from cuzk.sector.porep.labels import label_parents, labels_of
from cuzk.sector.porep.public_inputs import opened_nodes, public_inputs
from cuzk.sector.porep.registered_proof import RegisteredProof
from cuzk.sector.porep.replica_id import replica_id
from cuzk.sector.porep.shape import PorepShape

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

Trees = tuple[OpenedTree, OpenedTree, OpenedTree]
"""D, R_last and C."""

OTHER_SECTOR = "use the registered proof, seed and ticket that the sector was sealed and proven with"
SYNTHETIC_TICKET = b"synthetic sector, sealed by none"
"""What marks a sector that `synthesize` made: real tickets are drawn at random."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class C1:
    """See `claim.ProofInput`.

    The wrapper's sector number and size are None when the document came without its wrapper.
    """

    origin: str
    registered_proof: RegisteredProof
    comm_r: bytes
    comm_d: bytes
    replica_id: bytes
    seed: bytes
    ticket: bytes
    sector_number: int | None
    sector_bytes: int | None
    partitions: tuple[PartitionInput, ...]

    @property
    def shape(self) -> PorepShape:
        return self.registered_proof.shape

    @property
    def partition_count(self) -> int:
        return self.registered_proof.partitions

    @property
    def statement(self) -> Statement:
        return Statement(
            registered_proof=self.registered_proof,
            replica_id=self.replica_id,
            comm_d=self.comm_d,
            comm_r=self.comm_r,
            seed=self.seed,
        )

    @property
    def is_synthetic(self) -> bool:
        """Whether nobody sealed it, as far as its ticket tells."""
        return self.ticket == SYNTHETIC_TICKET

    def check_statement(self, *, miner: int | None = None) -> None:
        """`miner` is the numeric id whose sector this should be, if the caller knows it."""
        _check_statement(self)
        if miner is not None:
            _check_miner(self, miner)

    def check_partition(self, partition: int, device: CpuDevice) -> None:
        _check_partition(self, self.partitions[partition], device)

    def public_inputs(self, partition: int) -> NDArray[np.uint64]:
        return public_inputs(self.statement, partition)

    def facts(self) -> dict[str, dict[str, Any]]:
        registered, shape = self.registered_proof, self.shape
        return {
            "sector": {
                "kind": shape.kind,
                "registered_proof": registered.name,
                "sector_size": shape.name,
                "sector_number": self.sector_number,
                "synthesized": self.is_synthetic,
                "api_version": registered.api_version.value,
                "challenges_drawn": registered.feature.value,
                "partitions": len(self.partitions),
                "challenges": shape.challenges,
                "layers": shape.layers,
            },
            "commitments": {
                "comm_d": self.comm_d.hex(),
                "comm_r": self.comm_r.hex(),
                "replica_id": self.replica_id.hex(),
                "seed": self.seed.hex(),
                "ticket": self.ticket.hex(),
            },
            "challenged_nodes": {
                f"partition_{partition.index}": partition.challenges.tolist() for partition in self.partitions
            },
        }


def _check_statement(c1: C1) -> None:
    shape = c1.shape
    if c1.sector_bytes not in (None, shape.sector_bytes):
        what = (
            f"SectorSize is {c1.sector_bytes}, but {c1.registered_proof.name} has {shape.sector_bytes} bytes"
        )
        _fail(what, c1.origin, OTHER_SECTOR)
    for name in ("comm_d", "comm_r", "seed"):
        if not any(getattr(c1, name)):
            _fail(f"{name} is all zeros", f"{c1.origin}, {name}")
    for name in ("comm_d", "comm_r", "replica_id"):
        if int.from_bytes(getattr(c1, name), "little") >= FR.p:
            _fail(f"{name} is not below r", f"{c1.origin}, {name}")


def _check_miner(c1: C1, miner: int) -> None:
    if c1.sector_number is None:
        _fail(
            "the document has no sector number to check the miner with",
            c1.origin,
            "use the c1.json around it",
        )
    expected = replica_id(
        miner=miner,
        sector_number=c1.sector_number,
        ticket=c1.ticket,
        comm_d=c1.comm_d,
        porep_id=c1.registered_proof.porep_id,
    )
    if expected != c1.replica_id:
        what = f"replica_id is not that of miner {miner}, sector {c1.sector_number}, this ticket and comm_d"
        _fail(what, f"{c1.origin}, replica_id", f"check miner and sector number first; else {OTHER_SECTOR}")


def _check_partition(c1: C1, partition: PartitionInput, device: CpuDevice) -> None:
    where = f"{c1.origin}, partition {partition.index}"
    trees = _trees(c1.shape, partition, device)
    for tree in trees:
        tree.check_values(where)
    _check_hashes(partition, where)
    _check_nodes(c1, partition, where)
    for tree in trees:
        tree.check_paths(where)
    _check_roots(c1, partition, trees, device, where)
    _check_columns(partition, device, where)
    _check_labels(c1, partition, where)
    _check_encoding(partition, where)


def _fail(what: str, where: str, next: str = RUN_C1_AGAIN) -> NoReturn:
    fail(what, where, next)


def _trees(shape: PorepShape, partition: PartitionInput, device: CpuDevice) -> Trees:
    return (
        OpenedTree(
            paths=partition.d_paths,
            nodes=partition.challenges,
            arities=shape.d_arities,
            path_roots=sha256_roots,
            name=lambda challenge: f"challenge {challenge}, D path",
            next=RUN_C1_AGAIN,
        ),
        OpenedTree(
            paths=partition.r_paths,
            nodes=partition.challenges,
            arities=shape.path_arities,
            path_roots=poseidon_roots(device),
            name=lambda challenge: f"challenge {challenge}, R path",
            next=RUN_C1_AGAIN,
        ),
        OpenedTree(
            paths=partition.c_paths,
            nodes=partition.column_nodes,
            arities=shape.path_arities,
            path_roots=poseidon_roots(device),
            name=lambda challenge, column: f"challenge {challenge}, C path of {COLUMN_NAMES[column]}",
            next=RUN_C1_AGAIN,
        ),
    )


def _check_hashes(partition: PartitionInput, where: str) -> None:
    """Those outside trees."""
    for hashes, place in (
        (partition.columns, _row_place),
        (partition.labelings.parents, _label_parent_place),
        (partition.encodings.parents, lambda c, parent: f"challenge {c}, encoding, parent {parent}"),
    ):
        require_below_r(hashes, lambda *at, place=place: f"{where}, {place(*at)}", RUN_C1_AGAIN)


def _row_place(challenge: int, column: int, layer: int) -> str:
    return f"challenge {challenge}, column of {COLUMN_NAMES[column]}, layer {layer + 1}"


def _label_parent_place(challenge: int, layer: int, parent: int) -> str:
    return f"challenge {challenge}, label of layer {layer + 1}, parent {parent}"


def _check_nodes(c1: C1, partition: PartitionInput, where: str) -> None:
    """Challenges, parents, and the layers and nodes that labels say they have."""
    columns = opened_nodes(c1.statement, partition.index)
    expected = columns[:, 0]
    if at := first(partition.challenges != expected):
        what = (
            f"node {partition.challenges[at]} is opened, but replica_id and seed ask for node {expected[at]}"
        )
        _fail(what, f"{where}, challenge {at[0]}", OTHER_SECTOR)
    if at := first(partition.column_nodes != columns):
        what = f"node {partition.column_nodes[at]} is opened, but the graph has node {columns[at]}"
        _fail(what, f"{where}, challenge {at[0]}, column of {COLUMN_NAMES[at[1]]}", OTHER_SECTOR)
    layers = np.arange(1, c1.shape.layers + 1)
    labelings, encodings = partition.labelings, partition.encodings
    if at := first((labelings.layers != layers) | (labelings.nodes != expected[:, None])):
        what = f"the label says layer {labelings.layers[at]} of node {labelings.nodes[at]}"
        _fail(what, f"{where}, challenge {at[0]}, label of layer {at[1] + 1}")
    if at := first((encodings.layers != layers[-1]) | (encodings.nodes != expected)):
        what = f"the encoding says layer {encodings.layers[at]} of node {encodings.nodes[at]}"
        _fail(what, f"{where}, challenge {at[0]}, encoding")


def _check_roots(c1: C1, partition: PartitionInput, trees: Trees, device: CpuDevice, where: str) -> None:
    """One comm_d, comm_r_last and comm_c, and comm_r made of the last two."""
    commitments = {"comm_d": c1.comm_d, "comm_r_last": partition.comm_r_last, "comm_c": partition.comm_c}
    for tree, (name, commitment) in zip(trees, commitments.items(), strict=True):
        named = name if name == "comm_d" else f"{name} of challenge 0"
        tree.check_roots(np.frombuffer(commitment, dtype=np.uint8), named, where)
    comm_c, comm_r_last = partition.c_paths.roots[0, :1], partition.r_paths.roots[:1]
    if comm_r_of(comm_c, comm_r_last, poseidon(device)).tobytes() != c1.comm_r:
        _fail("comm_r is not the hash of comm_c and comm_r_last", where)


def _check_columns(partition: PartitionInput, device: CpuDevice, where: str) -> None:
    rows = as_limbs(partition.columns)
    hashes = poseidon(device)(rows.reshape(-1, *rows.shape[2:]))
    differs = (hashes != as_limbs(partition.c_paths.leaves).reshape(-1, 4)).any(axis=-1)
    if at := first(differs.reshape(rows.shape[:2])):
        what = "the column does not hash to the leaf of its C path"
        _fail(what, f"{where}, challenge {at[0]}, column of {COLUMN_NAMES[at[1]]}")


def _check_labels(c1: C1, partition: PartitionInput, where: str) -> None:
    """Labels' parents are rows of the parents' columns, and hash to the challenged node's own column.

    What is told is wrong in the lowest layer where anything is: others follow from it.
    """
    layers = range(c1.shape.layers)
    columns, below = (np.stack(of_layers) for of_layers in zip(*map(label_parents, layers), strict=True))
    given, rows = as_limbs(partition.labelings.parents), as_limbs(partition.columns)
    computed = labels_of(c1.replica_id, partition.challenges, partition.labelings.parents)
    wrong_parents = (given != rows[:, columns, below]).any(axis=-1)
    wrong_labels = (as_limbs(computed) != rows[:, 0]).any(axis=-1)
    if not (wrong := wrong_parents.any(axis=(0, 2)) | wrong_labels.any(axis=0)).any():
        return
    layer = int(wrong.argmax())
    if at := first(wrong_parents[:, layer]):
        column, layer_below = columns[layer, at[1]], below[layer, at[1]]
        what = f"the parent is not the label of {COLUMN_NAMES[column]} in layer {layer_below + 1}"
        _fail(what, f"{where}, {_label_parent_place(at[0], layer, at[1])}")
    at = first(wrong_labels[:, layer])
    assert at is not None, layer
    what = "the label does not recompute from replica_id and its parents"
    _fail(what, f"{where}, {_row_place(at[0], 0, layer)}", OTHER_SECTOR)


def _check_encoding(partition: PartitionInput, where: str) -> None:
    """Label of the last layer + data = replica, and the redundant preimage that came with it."""
    if at := first((partition.encodings.parents != partition.labelings.parents[:, -1]).any(axis=-1)):
        what = "the parent is not the one of the last layer's label"
        _fail(what, f"{where}, challenge {at[0]}, encoding, parent {at[1]}")
    nodes = zip(partition.columns[:, 0, -1], partition.d_paths.leaves, partition.r_paths.leaves, strict=True)
    for challenge, (label, data, replica) in enumerate(nodes):
        key, value, encoded = (int.from_bytes(node.tobytes(), "little") for node in (label, data, replica))
        if (key + value) % FR.p != encoded:
            what = "label of the last layer + data is not the replica, the leaf of the R path"
            _fail(what, f"{where}, challenge {challenge}, encoding")
