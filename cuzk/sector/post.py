"""Input of a proof of spacetime, winning or window: one piece a sector, read, checked, or made up for tests.

A piece (FallbackPoStSectorProof) has the sector's number, its commitments, and an R path for each challenge.
Which leaves are challenged follows from randomness, sector and position; comm_r and these leaves are the
public inputs. A window proof of fewer sectors than its circuit has repeats the last one, leaves included.
Sources: filecoin-proofs, types/mod.rs, api/post_util.rs; storage-proofs-post, fallback/vanilla.rs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import UsageError
from cuzk.kernels.modulus import FR
from cuzk.sector import bincode
from cuzk.sector.api_version import ApiVersion
from cuzk.sector.arrays import Bytes, Counts, as_hashes, as_limbs, read_only
from cuzk.sector.claim import SHORT
from cuzk.sector.made_up import MINER, Maker
from cuzk.sector.merkle import Paths
from cuzk.sector.path_check import (
    OpenedTree,
    comm_r_of,
    fail,
    first,
    poseidon,
    poseidon_roots,
    require_below_r,
)
from cuzk.sector.pieces import Pieces
from cuzk.sector.post_shape import PostShape, post_shape
from cuzk.sector.shape import NODE_BYTES
from cuzk.sector.sparse_tree import SparseTree
from cuzk.sector.tree_form import c_and_r_form

if TYPE_CHECKING:
    from cuzk.events import Progress
    from cuzk.kernels.device.cpu import CpuDevice

_MOST_PARTITIONS = 1 << 32

OTHER_STATEMENT = (
    "use the randomness, API version and partition index that the pieces were made with, or make them again"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PostInput:
    """The n sectors that one proof is about; K challenges each. See `claim.ProofInput`.

    sector_ids                     (n,) uint64
    comm_r, comm_c, comm_r_last    (n, 32)
    paths                          (n, K) in trees R_last
    partition_index                which of a deadline's window proofs this is: API 1.0.0 draws leaves from it
    """

    origin: str
    shape: PostShape
    api_version: ApiVersion
    randomness: bytes
    partition_index: int
    sector_ids: NDArray[np.uint64]
    comm_r: Bytes
    comm_c: Bytes
    comm_r_last: Bytes
    paths: Paths

    @property
    def partition_count(self) -> int:
        return 1

    def challenges(self) -> Counts:
        """(n, K): the leaves that must be opened, read-only."""
        ids = self.sector_ids.tobytes()
        return _challenges(self.shape, self.api_version, self.randomness, self.partition_index, ids)

    def public_inputs(self, partition: int) -> NDArray[np.uint64]:
        """(S (1 + C), 4) canonical: of each of the circuit's sectors comm_r, then its leaves."""
        assert partition == 0, partition
        sectors, challenges = self.shape.sector_count, self.shape.challenge_count
        inputs = np.zeros((sectors, 1 + challenges, NODE_BYTES // 8), dtype=np.uint64)
        place_in_circuit(as_limbs(self.comm_r), inputs[:, 0])
        place_in_circuit(self.challenges().reshape(-1, challenges), inputs[:, 1:, 0])
        return inputs.reshape(-1, NODE_BYTES // 8)

    def check_statement(self) -> None:
        """See `claim.ProofInput`."""
        if int.from_bytes(self.randomness, "little") >= FR.p:
            fail(
                "randomness is not below r", f"{self.origin}, randomness", "clear the two top bits of byte 31"
            )
        if not self.shape.is_winning and self.api_version is ApiVersion.V1_1:
            fail("no window proof has API version 1.1.0", f"{self.origin}, api_version", "use 1.0.0 or 1.2.0")
        if not 0 <= self.partition_index < _MOST_PARTITIONS:
            where = f"{self.origin}, partition_index"
            fail(f"no window has a partition {self.partition_index}", where, OTHER_STATEMENT)
        ids = self.sector_ids
        if at := first(ids[1:] <= ids[:-1]):
            what = f"sector {ids[at[0] + 1]} comes after sector {ids[at]}"
            order = "give the pieces by ascending sector: a verifier takes them in this order"
            fail(what, f"{self.origin}, {self._piece(at[0] + 1)}", order)
        self._require_below_r("comm_r")

    def check_partition(self, partition: int, device: CpuDevice) -> None:
        """See `claim.ProofInput`. The place is a piece, a challenge, a level of its path."""
        assert partition == 0, partition
        tree = self._opened_tree(device)
        for commitment in ("comm_c", "comm_r_last"):
            self._require_below_r(commitment)
        tree.check_values(self.origin)
        computed = comm_r_of(self.comm_c, self.comm_r_last, poseidon(device))
        if at := first((computed != as_limbs(self.comm_r)).any(axis=-1)):
            what = "comm_r is not the hash of comm_c and comm_r_last"
            fail(what, f"{self.origin}, {self._piece(*at)}", bincode.COPY_AGAIN)
        tree.check_roots(self.comm_r_last[:, None], "comm_r_last", self.origin)
        tree.check_paths(self.origin)

    def _opened_tree(self, device: CpuDevice) -> OpenedTree:
        return OpenedTree(
            paths=self.paths,
            nodes=self.challenges(),
            arities=self.shape.path_arities,
            path_roots=poseidon_roots(device),
            name=lambda sector, challenge: f"{self._piece(sector)}, challenge {challenge}, R path",
            next=OTHER_STATEMENT,
        )

    def _piece(self, number: int) -> str:
        return f"piece {number} (sector {self.sector_ids[number]})"

    def _require_below_r(self, commitment: str) -> None:
        require_below_r(
            getattr(self, commitment),
            lambda number: f"{self.origin}, {self._piece(number)}, {commitment}",
            bincode.COPY_AGAIN,
        )

    def facts(self) -> dict[str, dict[str, Any]]:
        """See `claim.ProofInput`."""
        ids = self.sector_ids.tolist()
        sector: dict[str, Any] = {
            "kind": self.shape.kind,
            "sector_size": self.shape.name,
            "api_version": self.api_version.value,
            "sectors": len(ids),
            "first_sector_number": ids[0],
            "last_sector_number": ids[-1],
            "challenges": self.shape.challenges,
        }
        if not self.shape.is_winning:
            sector["partition_index"] = self.partition_index
        commitments = {
            "randomness": self.randomness.hex(),
            "first_comm_r": self.comm_r[0].tobytes().hex(),
        }
        return {"sector": sector, "commitments": commitments}


def place_in_circuit(values: NDArray[Any], into: NDArray[Any]) -> None:
    """Of each of the circuit's S sectors what it has, (S, ...), from what is given of n, (n, ...).

    The last one's is repeated. The challenges of a winning proof are sectors of one challenge each.
    """
    into[: len(values)] = values
    into[len(values) :] = values[-1:]


def challenges(
    shape: PostShape,
    api_version: ApiVersion,
    randomness: bytes,
    partition_index: int,
    sector_ids: NDArray[np.uint64],
) -> Counts:
    """(n, K): the leaves that must be opened of the n sectors of a proof.

    Challenges have numbers from 0 on, but under API 1.0.0 a window's are counted through all its sectors.
    """
    starts = np.zeros(len(sector_ids), dtype=np.int64)
    if api_version is ApiVersion.V1_0 and not shape.is_winning:
        starts += shape.challenges * (partition_index * shape.sector_count + np.arange(len(starts)))
    drawn_from = np.empty((len(sector_ids), shape.challenges, 2), dtype="<u8")
    drawn_from[..., 0] = sector_ids[:, None]
    drawn_from[..., 1] = starts[:, None] + np.arange(shape.challenges)
    messages = drawn_from.view("V16").ravel().tolist()
    digests = b"".join([sha256(randomness + message).digest() for message in messages])
    first_words = np.frombuffer(digests, "<u8")[:: NODE_BYTES // 8]
    leaves: Counts = (first_words % np.uint64(shape.nodes)).astype(np.int64)  # leaf 0 is no exception
    return leaves.reshape(len(sector_ids), shape.challenges)


@lru_cache(maxsize=4)
def _challenges(
    shape: PostShape, api_version: ApiVersion, randomness: bytes, partition_index: int, sector_ids: bytes
) -> Counts:
    """The same, kept: a check, public inputs and whoever asks for these again take 20 ms each in a window."""
    ids = np.frombuffer(sector_ids, np.uint64)
    return read_only(challenges(shape, api_version, randomness, partition_index, ids))


@lru_cache(maxsize=4)
def piece_form(shape: PostShape) -> bincode.Form:
    """The bytes of a piece."""
    proof = bincode.merkle_proof(c_and_r_form(shape))
    proofs = bincode.items(shape.challenges, proof, noun="challenges", place="challenge")
    inner = bincode.struct(
        ("inclusion_proofs", proofs, ""), ("comm_c", bincode.HASH, ""), ("comm_r_last", bincode.HASH, "")
    )
    sectors = bincode.items(1, inner, noun="sectors")
    return bincode.struct(
        ("sector_id", bincode.U64, ""), ("comm_r", bincode.HASH, ""), ("sectors", sectors, "")
    )


def read_post(pieces: Pieces) -> PostInput:
    """Pieces as arrays. Only their form is checked. Raises InputError."""
    shape, origin = post_shape(pieces.kind, pieces.sector_bytes), pieces.origin
    if not 1 <= len(pieces.pieces) <= shape.most_sectors:
        most = "one" if shape.most_sectors == 1 else f"1 to {shape.most_sectors}"
        what = f"{len(pieces.pieces)} pieces where {most} can be proven"
        fail(what, f"{origin}, vanilla_proofs", "give the sectors of one partition, one piece each")
    if len(pieces.randomness) != NODE_BYTES:
        what = f"{len(pieces.randomness)} bytes where {NODE_BYTES} are expected"
        fail(what, f"{origin}, randomness", "give the randomness that the pieces were made with")
    records = bincode.read(piece_form(shape), pieces.pieces, lambda number: f"{origin}, piece {number}")
    inner = records["sectors"]["items"][:, 0]
    return PostInput(
        origin=origin,
        shape=shape,
        api_version=pieces.api_version,
        randomness=pieces.randomness,
        partition_index=pieces.partition_index,
        sector_ids=read_only(records["sector_id"]),
        comm_r=read_only(records["comm_r"]),
        comm_c=read_only(inner["comm_c"]),
        comm_r_last=read_only(inner["comm_r_last"]),
        paths=bincode.paths_of(inner["inclusion_proofs"]["items"], c_and_r_form(shape)),
    )


def synthesize_post(
    shape: PostShape, *, seed: int, device: CpuDevice, progress: Progress, sectors: int | None = None
) -> Pieces:
    """Pieces of sectors that nobody sealed: they pass every check. 2349 of 32 GiB take some seconds.

    sectors  1 and so on, of one partition; as many as fit unless given
    Raises UsageError when it takes fewer or more.
    """
    count = shape.most_sectors if sectors is None else sectors
    if not 1 <= count <= shape.most_sectors:
        what = (
            f"a {SHORT[shape.kind]} proof of {shape.name} has 1 to {shape.most_sectors} sectors, not {count}"
        )
        raise UsageError(what, where="--sectors", next="give another number, or none")
    make = Maker(f"cuzk {shape.kind} {shape.name} {seed}")
    api_version = ApiVersion.V1_0 if shape.is_winning else ApiVersion.V1_2
    randomness, ids = make.nodes("randomness", 1).tobytes(), np.arange(1, count + 1, dtype=np.uint64)
    progress(0, count)
    opened = challenges(shape, api_version, randomness, 0, ids)
    nodes = opened + shape.nodes * np.arange(count)[:, None]  # sector after sector
    leaves, hash_children = np.unique(nodes), poseidon(device)
    values = as_limbs(make.nodes("replica", len(leaves)))
    trees = SparseTree(leaves, values, shape.path_arities, hash_children, make_up=partial(make.level, "R"))
    records = bincode.blank(piece_form(shape), count)
    inner = records["sectors"]["items"][:, 0]
    records["sector_id"] = ids
    inner["comm_c"], inner["comm_r_last"] = make.nodes("comm_c", count), as_hashes(trees.roots)
    records["comm_r"] = as_hashes(comm_r_of(inner["comm_c"], inner["comm_r_last"], hash_children))
    form = c_and_r_form(shape)
    bincode.place_paths(trees.paths(nodes), form, inner["inclusion_proofs"]["items"])
    progress(count, count)
    return Pieces(
        origin=f"synthetic {shape.kind} {shape.name}, seed {seed}",
        kind=shape.kind,
        sector_bytes=shape.sector_bytes,
        pieces=tuple(bincode.encoded(records)),
        api_version=api_version,
        randomness=randomness,
        miner_id=MINER,
    )
