"""Input of the proofs of a sector update (SnapDeals): one piece a partition, read and checked.

A sector that was sealed with some data, mostly zeros, gets other data without being sealed again: a node of
the new replica is that of the old one plus a data node times rho. Symbols as in `update_shape`.

phi         G(comm_d_new, comm_r_old), G the Poseidon hash of two with a domain tag of its own
rho         of a node: G(phi, high part of its index)
challenges  of partition k: b bits each from G(comm_r_new, k * digests + j), above them the partition's number

Sources: storage-proofs-update, vanilla.rs and challenges.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.modulus import FR
from cuzk.sector.arrays import Bytes, Counts, Limbs, as_hashes, as_limbs, read_only
from cuzk.sector.bincode import COPY_AGAIN, HASH, Form, items, merkle_proof, paths_of, read, struct
from cuzk.sector.merkle import HashChildren, PathRoots, Paths, sha256_children, sha256_roots
from cuzk.sector.path_check import (
    OpenedTree,
    comm_r_of,
    fail,
    first,
    not_below_r,
    poseidon,
    poseidon_roots,
    require_below_r,
)
from cuzk.sector.pieces import Pieces
from cuzk.sector.shape import BINARY, NODE_BYTES
from cuzk.sector.tree_form import c_and_r_form, d_form
from cuzk.sector.update_shape import UPDATE_TAG, UpdateShape, update_shape_of

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

OTHER_UPDATE = "give the commitments of the update that the vanilla proofs were made for"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdatePartition:
    """The vanilla proof of one partition; (C) are its challenges.

    apex_leaves  (A, 32)
    old, new     (C) paths in trees R_last of the replica before and after
    data         (C) paths in tree D of the new data
    """

    comm_c: bytes
    apex_leaves: Bytes
    old: Paths
    data: Paths
    new: Paths

    @property
    def root_r_old(self) -> bytes:
        return bytes(self.old.roots[0])

    @property
    def root_r_new(self) -> bytes:
        return bytes(self.new.roots[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateInput:
    """One sector's update. See `claim.ProofInput`. Commitments are 32 bytes each."""

    origin: str
    shape: UpdateShape
    comm_r_old: bytes
    comm_r_new: bytes
    comm_d_new: bytes
    sector_number: int | None
    partitions: tuple[UpdatePartition, ...]

    @property
    def partition_count(self) -> int:
        return self.shape.partitions

    def check_statement(self) -> None:
        for name in ("comm_r_old", "comm_r_new", "comm_d_new"):
            commitment = np.frombuffer(getattr(self, name), np.uint8)
            where = f"{self.origin}, {name}"
            if not commitment.any():
                fail(f"{name} is all zeros", where, OTHER_UPDATE)
            if not_below_r(commitment):
                fail(f"{name} is not below r", where, OTHER_UPDATE)

    def check_partition(self, partition: int, device: CpuDevice) -> None:
        _Check(self, partition, device).run()

    def public_inputs(self, partition: int) -> NDArray[np.uint64]:
        """(4, 4): partition with the choice of the high part, comm_r_old, comm_d_new, comm_r_new."""
        number = partition + (self.shape.high_select << self.shape.partition_bits)
        first_input = number.to_bytes(NODE_BYTES, "little")
        return as_limbs(_hashes(first_input, self.comm_r_old, self.comm_d_new, self.comm_r_new))

    def facts(self) -> dict[str, dict[str, Any]]:
        shape = self.shape
        return {
            "sector": {
                "kind": shape.kind,
                "sector_size": shape.name,
                "sector_number": self.sector_number,
                "partitions": shape.partitions,
                "challenges": shape.challenges,
                "apex_leaves": shape.apex_leaves,
            },
            "commitments": {
                "comm_r_old": self.comm_r_old.hex(),
                "comm_r_new": self.comm_r_new.hex(),
                "comm_d_new": self.comm_d_new.hex(),
            },
            "challenged_nodes": {
                f"partition_{number}": node_of(partition.data.indices).tolist()
                for number, partition in enumerate(self.partitions)
            },
        }


def read_update(pieces: Pieces) -> UpdateInput:
    """The update of these pieces. Raises InputError; only the form is checked here."""
    shape, count = update_shape_of(pieces.sector_bytes), len(pieces.pieces)
    if count != shape.partitions:
        what = f"{count} partition proofs where {shape.name} needs {shape.partitions}"
        fail(what, pieces.origin, COPY_AGAIN)
    for name in ("comm_r_old", "comm_r_new", "comm_d_new"):
        if len(getattr(pieces, name)) != NODE_BYTES:
            what = f"{name} has {len(getattr(pieces, name))} bytes where {NODE_BYTES} are expected"
            fail(what, f"{pieces.origin}, {name}", OTHER_UPDATE)
    records = read(piece_form(shape), pieces.pieces, lambda number: f"{pieces.origin}, partition {number}")
    return UpdateInput(
        origin=pieces.origin,
        shape=shape,
        comm_r_old=pieces.comm_r_old,
        comm_r_new=pieces.comm_r_new,
        comm_d_new=pieces.comm_d_new,
        sector_number=pieces.sector_number,
        partitions=tuple(_partition(shape, record) for record in records),
    )


@cache
def piece_form(shape: UpdateShape) -> Form:
    """A PartitionProof."""
    tree_r, tree_d = merkle_proof(c_and_r_form(shape)), merkle_proof(d_form(shape))
    proofs = struct(
        ("proof_r_old", tree_r, "old R path"),
        ("proof_d_new", tree_d, "D path"),
        ("proof_r_new", tree_r, "new R path"),
    )
    return struct(
        ("comm_c", HASH, ""),
        ("apex_leafs", items(shape.apex_leaves, HASH, noun="apex leaves"), ""),
        ("challenge_proofs", items(shape.challenges, proofs, noun="challenges", place="challenge"), ""),
    )


def _partition(shape: UpdateShape, record: Any) -> UpdatePartition:
    proofs, tree_r = record["challenge_proofs"]["items"], c_and_r_form(shape)
    return UpdatePartition(
        comm_c=record["comm_c"].tobytes(),
        apex_leaves=read_only(record["apex_leafs"]["items"]),
        old=paths_of(proofs["proof_r_old"], tree_r),
        data=paths_of(proofs["proof_d_new"], d_form(shape)),
        new=paths_of(proofs["proof_r_new"], tree_r),
    )


def updates_hash(device: CpuDevice) -> HashChildren:
    """G of (n, 2, 4) pairs."""
    return poseidon(device, domain_tag=UPDATE_TAG)


def challenges(shape: UpdateShape, comm_r_new: bytes, partition: int, device: CpuDevice) -> Counts:
    """(C,) the challenged nodes of a partition; some may be challenged twice."""
    first_digest, width = partition * shape.digests, shape.challenge_bits
    digests = _hash_with(device, comm_r_new, range(first_digest, first_digest + shape.digests))
    drawn = [
        digest >> width * i & ((1 << width) - 1) | partition << width
        for digest in map(_integer, digests)
        for i in range(shape.challenges_a_digest)
    ]
    return np.array(drawn[: shape.challenges], dtype=np.int64)


def encoders(
    shape: UpdateShape, comm_d_new: bytes, comm_r_old: bytes, nodes: Counts, device: CpuDevice
) -> list[int]:
    """rho of each of the nodes."""
    commitments = as_limbs(_hashes(comm_d_new, comm_r_old))
    phi = updates_hash(device)(commitments[None]).tobytes()
    high, which = np.unique(nodes >> shape.d_levels - shape.high_bits, return_inverse=True)
    rhos = [_integer(rho) for rho in _hash_with(device, phi, high.tolist())]
    return [rhos[i] for i in which.tolist()]


def node_of(indices: Counts) -> Counts:
    """(n,) leaves of a binary tree, from (n, levels) positions."""
    nodes: Counts = (indices << np.arange(indices.shape[-1])).sum(axis=-1)
    return nodes


def _hash_with(device: CpuDevice, first: bytes, seconds: Sequence[int]) -> Limbs:
    """(n, 4): G(first, second) of each second."""
    pairs = _hashes(*(part for second in seconds for part in (first, second.to_bytes(NODE_BYTES, "little"))))
    return updates_hash(device)(as_limbs(pairs).reshape(-1, 2, NODE_BYTES // 8))


def _hashes(*hashes: bytes) -> Bytes:
    """(n, 32)."""
    return np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, NODE_BYTES)


def _integer(hash_: NDArray[Any]) -> int:
    return int.from_bytes(hash_.tobytes(), "little")


class _Check:
    """All native checks of one partition, in the order of `run`; `check_statement` has passed."""

    def __init__(self, given: UpdateInput, partition: int, device: CpuDevice) -> None:
        self._given, self._own, self._device = given, given.partitions[partition], device
        self._where = f"{given.origin}, partition {partition}"
        self._nodes = challenges(given.shape, given.comm_r_new, partition, device)
        own, arities, roots = self._own, given.shape.path_arities, poseidon_roots(device)
        self._old = self._tree("old R path", own.old, arities, roots)
        self._new = self._tree("new R path", own.new, arities, roots)
        self._data = self._tree("D path", own.data, given.shape.d_arities, self._data_roots)

    def _tree(self, name: str, paths: Paths, arities: tuple[int, ...], roots: PathRoots) -> OpenedTree:
        return OpenedTree(
            paths=paths,
            nodes=self._nodes,
            arities=arities,
            path_roots=roots,
            name=lambda challenge: f"challenge {challenge}, {name}",
            next=COPY_AGAIN,
        )

    def _data_roots(self, leaves: Bytes, siblings: Bytes, indices: Counts, arities: Sequence[int]) -> Limbs:
        """By way of the nodes at the level of the apex leaves, which are kept for `_check_apex`."""
        below = self._given.shape.d_path_levels
        self._reached = sha256_roots(leaves, siblings[:, :below], indices[:, :below], arities[:below])
        return sha256_roots(
            as_hashes(self._reached), siblings[:, below:], indices[:, below:], arities[below:]
        )

    def run(self) -> None:
        own, where, given = self._own, self._where, self._given
        require_below_r(_hashes(own.comm_c), lambda _: f"{where}, comm_c", COPY_AGAIN)
        require_below_r(own.apex_leaves, lambda leaf: f"{where}, apex leaf {leaf}", COPY_AGAIN)
        for tree in (self._old, self._data, self._new):
            tree.check_values(where)
        self._check_update()
        for tree in (self._old, self._data, self._new):
            tree.check_paths(where)
        self._old.check_roots(_hashes(own.root_r_old), "root of challenge 0", where)
        self._new.check_roots(_hashes(own.root_r_new), "root of challenge 0", where)
        self._data.check_roots(_hashes(given.comm_d_new), "comm_d_new", where)
        self._check_replicas()
        self._check_apex()
        self._check_encoding()

    def _check_update(self) -> None:
        """Where no opened node is a challenge, it is not a path that is damaged."""
        if (node_of(self._own.data.indices) != self._nodes).all():
            fail("the opened nodes are not those that comm_r_new asks for", self._where, OTHER_UPDATE)

    def _check_replicas(self) -> None:
        own, given = self._own, self._given
        roots = _hashes(own.root_r_old, own.root_r_new)
        comm_c = np.broadcast_to(_hashes(own.comm_c), roots.shape)
        computed = comm_r_of(comm_c, roots, poseidon(self._device))
        for name, found in zip(("comm_r_old", "comm_r_new"), computed, strict=True):
            if found.tobytes() != getattr(given, name):
                what = f"{name} is not the hash of comm_c and the root of the R paths"
                fail(what, self._where, OTHER_UPDATE)

    def _check_apex(self) -> None:
        """Apex leaves are the nodes of the D paths at their level, and all of them lead to comm_d_new."""
        shape, own, data = self._given.shape, self._own, self._own.data
        leaves = self._nodes >> shape.d_path_levels & shape.apex_leaves - 1
        if at := first((as_limbs(own.apex_leaves)[leaves] != self._reached).any(axis=-1)):
            what = f"this is not the node that the D path of challenge {at[0]} leads to"
            fail(what, f"{self._where}, apex leaf {leaves[at]}", COPY_AGAIN)
        row = as_limbs(own.apex_leaves)
        while len(row) > 1:
            row = sha256_children(row.reshape(-1, BINARY, NODE_BYTES // 8))
        root = sha256_roots(
            as_hashes(row),
            data.siblings[:1, shape.challenge_bits :],
            data.indices[:1, shape.challenge_bits :],
            (BINARY,) * shape.partition_bits,
        )
        if root.tobytes() != self._given.comm_d_new:
            fail("these do not lead to comm_d_new", f"{self._where}, apex leaves", COPY_AGAIN)

    def _check_encoding(self) -> None:
        """New replica = old replica + data * rho."""
        given, own = self._given, self._own
        rhos = encoders(given.shape, given.comm_d_new, given.comm_r_old, self._nodes, self._device)
        nodes = zip(own.old.leaves, own.data.leaves, rhos, own.new.leaves, strict=True)
        for challenge, (old, data, rho, new) in enumerate(nodes):
            if (_integer(old) + _integer(data) * rho) % FR.p != _integer(new):
                what = "old replica + data * rho is not the new replica, the leaf of the new R path"
                fail(what, f"{self._where}, challenge {challenge}, encoding", COPY_AGAIN)
