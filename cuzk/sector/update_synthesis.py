"""Updates of sectors that nobody sealed, as a prover is given them: they pass every check, at every size.

Challenges follow from comm_r_new, so every node of both replicas and of the data has to be committed to
before it is known which will be opened. Nothing here proves that a replica took time to make, so its nodes
may be chosen such that their trees are known at once: the data is one word of `thue_morse`, the old replica
one in each block of nodes that have the same high part, hence the same rho; so the new replica is one too. A
tree of 2^31 nodes takes 30,000 hashes.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cuzk.events import Progress
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.modulus import FR
from cuzk.sector.arrays import Bytes, as_hashes
from cuzk.sector.bincode import blank, encoded, place_paths
from cuzk.sector.made_up import MINER, SECTOR_NUMBER, Maker
from cuzk.sector.merkle import sha256_children
from cuzk.sector.path_check import comm_r_of, poseidon
from cuzk.sector.pieces import Pieces
from cuzk.sector.shape import BINARY, NODE_BYTES
from cuzk.sector.thue_morse import ThueMorse
from cuzk.sector.tree_form import c_and_r_form, d_form
from cuzk.sector.update import challenges, encoders, piece_form
from cuzk.sector.update_shape import UpdateShape


def synthesize_update(shape: UpdateShape, *, seed: int, device: CpuDevice, progress: Progress) -> Pieces:
    """An update of a sector of that size, which follows from `seed`; `progress` counts partitions."""
    make, hash_children = Maker(f"cuzk update {shape.name} {seed}"), poseidon(device)
    replica = partial(ThueMorse, arities=shape.path_arities, hash_children=hash_children)
    data_pair, blocks = make.nodes("data", 1, 2), 1 << shape.high_bits
    data = ThueMorse(data_pair, shape.d_arities, sha256_children)
    old_pairs, comm_c = make.nodes("old replica", blocks, 2), make.nodes("comm_c", 1)
    old = replica(old_pairs)
    comm_r_old = _comm_r(comm_c, old, device)
    first_nodes = np.arange(blocks) << shape.d_levels - shape.high_bits
    rhos = encoders(shape, data.root, comm_r_old, first_nodes, device)
    new = replica(_encoded(old_pairs, data_pair, rhos))
    comm_r_new = _comm_r(comm_c, new, device)
    records = blank(piece_form(shape), shape.partitions)
    records["comm_c"] = comm_c
    for number, record in enumerate(records):
        progress(number, shape.partitions)
        opened = challenges(shape, comm_r_new, number, device)
        apex_leaves = number * shape.apex_leaves + np.arange(shape.apex_leaves)
        record["apex_leafs"]["items"] = data.nodes(shape.d_path_levels, apex_leaves)
        proofs, tree_r = record["challenge_proofs"]["items"], c_and_r_form(shape)
        place_paths(old.paths(opened), tree_r, proofs["proof_r_old"])
        place_paths(data.paths(opened), d_form(shape), proofs["proof_d_new"])
        place_paths(new.paths(opened), tree_r, proofs["proof_r_new"])
    progress(shape.partitions, shape.partitions)
    return Pieces(
        origin=f"synthetic update of {shape.name}, seed {seed}",
        kind=shape.kind,
        sector_bytes=shape.sector_bytes,
        pieces=tuple(encoded(records)),
        comm_r_old=comm_r_old,
        comm_r_new=comm_r_new,
        comm_d_new=data.root,
        miner_id=MINER,
        sector_number=SECTOR_NUMBER,
    )


def _comm_r(comm_c: Bytes, replica: ThueMorse, device: CpuDevice) -> bytes:
    root = np.frombuffer(replica.root, np.uint8).reshape(1, NODE_BYTES)
    return comm_r_of(comm_c, root, poseidon(device)).tobytes()


def _encoded(old: Bytes, data: Bytes, rhos: list[int]) -> Bytes:
    """(blocks, 2, 32): old + data * rho, a rho a block."""
    first, second = to_integers(data.reshape(BINARY, NODE_BYTES))
    added = (value * rho for rho in rhos for value in (first, second))
    nodes = zip(to_integers(old.reshape(-1, NODE_BYTES)), added, strict=True)
    return as_hashes(from_integers((node + value) % FR.p for node, value in nodes)).reshape(old.shape)
