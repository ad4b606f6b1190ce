"""Sectors that nobody sealed, as a prover is given them: they pass every check, and 64 GiB take a second.

Interactive challenges follow from replica_id and seed, so they are known before anything is committed to.
Labels of the challenged nodes are then computed from made-up labels of their parents, and trees C and R_last
exist around the opened nodes only. Non-interactive and synthetic challenges follow from comm_r, which commits
to every label: then every node is labelled, as in sealing, which is for small sectors only. That there is no
other way is what a proof of replication rests on.

Everything follows from registered proof and seed. The sector is number 1 of miner t01000, as lotus-bench's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cuzk.errors import UsageError
from cuzk.events import Progress
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.modulus import FR
from cuzk.sector.arrays import Bytes, Counts, Limbs, as_hashes, as_limbs, read_only
from cuzk.sector.made_up import MINER, SECTOR_NUMBER, Maker
from cuzk.sector.merkle import sha256_children
from cuzk.sector.path_check import comm_r_of, poseidon
from cuzk.sector.porep.c1 import C1, SYNTHETIC_TICKET
from cuzk.sector.porep.challenges import challenges
from cuzk.sector.porep.graph import Graph
from cuzk.sector.porep.inputs import Labelings, PartitionInput, Statement
from cuzk.sector.porep.labels import label_of, label_parents
from cuzk.sector.porep.public_inputs import graph_of, opened_nodes
from cuzk.sector.porep.registered_proof import Feature, RegisteredProof
from cuzk.sector.porep.replica_id import replica_id
from cuzk.sector.porep.shape import PARENTS
from cuzk.sector.shape import NODE_BYTES
from cuzk.sector.sparse_tree import SparseTree
from cuzk.sector.thue_morse import ThueMorse

LARGEST_LABELLED_NODES = 1 << 18
"""8 MiB, about a minute: a node takes 0.2 ms, most of it for finding its parents."""

_NODES_A_MESSAGE = 1 << 10


def synthesize(registered: RegisteredProof, *, seed: int, device: CpuDevice, progress: Progress) -> C1:
    """A sector of that registered proof; `progress` counts the nodes that are labelled.

    Raises UsageError when its challenges follow from comm_r and it is larger than 8 MiB.
    """
    _require_feasible(registered)
    make = Maker(f"cuzk {registered.name} {seed}")
    shape = registered.shape
    data = ThueMorse(make.nodes("data", 1, 2), shape.d_arities, sha256_children)
    draft = Statement(
        registered_proof=registered,
        replica_id=replica_id(
            miner=MINER,
            sector_number=SECTOR_NUMBER,
            ticket=SYNTHETIC_TICKET,
            comm_d=data.root,
            porep_id=registered.porep_id,
        ),
        comm_d=data.root,
        comm_r=bytes(NODE_BYTES),
        seed=make.nodes("seed", 1).tobytes(),
    )
    replica = _replica(draft, data, make, device, progress)
    comm_c, comm_r_last = as_hashes(replica.tree_c.roots), as_hashes(replica.tree_r.roots)
    comm_r = comm_r_of(comm_c, comm_r_last, poseidon(device)).tobytes()
    statement = replace(draft, comm_r=comm_r)
    return C1(
        origin=f"synthetic {registered.name}, seed {seed}",
        registered_proof=registered,
        comm_r=comm_r,
        comm_d=data.root,
        replica_id=statement.replica_id,
        seed=statement.seed,
        ticket=SYNTHETIC_TICKET,
        sector_number=SECTOR_NUMBER,
        sector_bytes=shape.sector_bytes,
        partitions=tuple(replica.opened(statement, k) for k in range(registered.partitions)),
    )


def _require_feasible(registered: RegisteredProof) -> None:
    if registered.feature is Feature.INTERACTIVE or registered.shape.nodes <= LARGEST_LABELLED_NODES:
        return
    raise UsageError(
        f"{registered.name} draws challenges from comm_r: only a sealed sector has the answers",
        where="--registered-proof",
        next=f"use {registered.size_key}_1, whose circuit and parameters are the same, or at most 8 MiB",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Replica:
    """What partitions are opened from.

    nodes    (n,) ascending: nodes that have a column
    columns  (n, L, 32)
    """

    data: ThueMorse
    nodes: Counts
    columns: Bytes
    tree_c: SparseTree
    tree_r: SparseTree

    def opened(self, statement: Statement, partition: int) -> PartitionInput:
        opened = opened_nodes(statement, partition)
        challenged = opened[:, 0]
        columns = self.columns[np.searchsorted(self.nodes, opened)]
        labelings = _labelings(columns, challenged)
        opening = PartitionInput(
            index=partition,
            d_paths=self.data.paths(challenged),
            r_paths=self.tree_r.paths(challenged),
            c_paths=self.tree_c.paths(opened),
            columns=columns,
            column_nodes=opened,
            labelings=labelings,
            encodings=Labelings(
                parents=labelings.parents[:, -1],
                layers=labelings.layers[:, -1],
                nodes=labelings.nodes[:, -1],
            ),
        )
        as_read: PartitionInput = _as_read(opening)
        return as_read


def _labelings(columns: Bytes, challenged: Counts) -> Labelings:
    """The preimages of the challenged nodes' labels, from (C, 15, L, 32) columns."""
    layers = range(columns.shape[2])
    parents = [columns[:, column, layer] for column, layer in map(label_parents, layers)]
    shape = (len(challenged), len(layers))
    return Labelings(
        parents=np.stack(parents, axis=1),
        layers=np.broadcast_to(np.arange(1, len(layers) + 1), shape),
        nodes=np.broadcast_to(challenged[:, None], shape),
    )


def _as_read(value: Any) -> Any:
    """A dataclass with its arrays `read_only`."""
    if isinstance(value, np.ndarray):
        return read_only(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _as_read(getattr(value, field.name)) for field in fields(value)})
    return value


def _replica(
    draft: Statement, data: ThueMorse, make: Maker, device: CpuDevice, progress: Progress
) -> _Replica:
    """Columns and trees of the nodes that a statement without its comm_r lets be opened."""
    graph, shape = graph_of(draft.registered_proof), draft.registered_proof.shape
    labelled = _labelled_nodes(draft)
    parents = _parents(graph, labelled, progress)
    nodes = np.unique(np.concatenate([labelled, parents.reshape(-1)]))
    columns = make.nodes("labels", len(nodes), shape.layers)
    _label(columns, nodes, labelled, parents, draft.replica_id)
    labels = columns[np.searchsorted(nodes, labelled), -1]
    encoded = _encoded(labels, data.leaves(labelled))
    hash_children = poseidon(device)
    tree = partial(SparseTree, arities=shape.path_arities, hash_children=hash_children)
    return _Replica(
        data=data,
        nodes=nodes,
        columns=columns,
        tree_c=tree(nodes, hash_children(as_limbs(columns)), make_up=partial(make.level, "C")),
        tree_r=tree(labelled, encoded, make_up=partial(make.level, "R")),
    )


def _labelled_nodes(draft: Statement) -> Counts:
    """Ascending: the challenged nodes, or all nodes where nobody knows them yet."""
    registered = draft.registered_proof
    if registered.feature is not Feature.INTERACTIVE:
        return np.arange(registered.shape.nodes)
    return np.unique([challenges(draft, partition) for partition in range(registered.partitions)])


def _parents(graph: Graph, nodes: Counts, progress: Progress) -> Counts:
    """(n, 14) for (n,)."""
    parents = np.empty((len(nodes), PARENTS), dtype=np.int64)
    for first in range(0, len(nodes), _NODES_A_MESSAGE):
        progress(first, len(nodes))
        some = slice(first, first + _NODES_A_MESSAGE)
        parents[some] = graph.parents_of(nodes[some].tolist())
    progress(len(nodes), len(nodes))
    return parents


def _label(columns: Bytes, nodes: Counts, labelled: Counts, parents: Counts, replica_id: bytes) -> None:
    """Replace the columns of the labelled nodes by labels.

    Layer by layer in ascending order: a label depends on lower nodes of its layer and on the layer below.
    """
    own, above = np.searchsorted(nodes, labelled), np.searchsorted(nodes, parents)
    for layer in range(columns.shape[1]):
        column, layers = label_parents(layer)
        for node, row, parent_rows in zip(labelled.tolist(), own, above[:, column - 1], strict=True):
            preimage = columns[parent_rows, layers].tobytes() if node else b""
            columns[row, layer] = np.frombuffer(label_of(replica_id, layer, node, preimage), dtype=np.uint8)


def _encoded(labels: Bytes, data: Bytes) -> Limbs:
    """(n, 4): the replica, label + data."""
    pairs = zip(to_integers(labels), to_integers(data), strict=True)
    return from_integers((label + value) % FR.p for label, value in pairs)
