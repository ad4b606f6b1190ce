"""Updates that nobody made: they pass every check at every size, and their trees are those of plain ints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.modulus import FR
from cuzk.kernels.poseidon import hash_textbook
from cuzk.sector.shape import KIB
from cuzk.sector.update import read_update
from cuzk.sector.update_shape import UPDATE_TAG, UpdateShape, update_shape_of, update_shapes
from cuzk.sector.update_synthesis import synthesize_update

DEVICE = CpuDevice(2)


def made(shape: UpdateShape, seed: int = 0):
    return synthesize_update(shape, seed=seed, device=DEVICE, progress=lambda done, total: None)


@pytest.mark.parametrize("shape", update_shapes(), ids=lambda shape: shape.name)
def test_an_update_of_every_size_passes_every_check(shape: UpdateShape) -> None:
    update = read_update(made(shape))
    assert update.shape == shape
    update.check_statement()
    for partition in range(shape.partitions):
        update.check_partition(partition, DEVICE)


def test_everything_follows_from_size_and_seed() -> None:
    small, other = update_shape_of(2 * KIB), update_shape_of(4 * KIB)
    assert made(small) == made(small)
    seen = {made(small).comm_d_new, made(small, 1).comm_d_new, made(other).comm_d_new}
    assert len(seen) == 3


def test_progress_counts_partitions() -> None:
    told: list[tuple[int, int]] = []
    synthesize_update(update_shape_of(16 * KIB), seed=0, device=DEVICE, progress=lambda *at: told.append(at))
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_encoding_and_commitments_are_those_of_the_textbook_hash() -> None:
    pieces = made(update_shape_of(2 * KIB))
    update = read_update(pieces)
    (own,) = update.partitions
    old, data, new, comm_c, root_new = (
        [int.from_bytes(bytes(row), "little") for row in rows]
        for rows in (own.old.leaves, own.data.leaves, own.new.leaves, [own.comm_c], [own.root_r_new])
    )
    comm_r_old, comm_r_new, comm_d_new = (
        int.from_bytes(value, "little") for value in (pieces.comm_r_old, pieces.comm_r_new, pieces.comm_d_new)
    )
    assert hash_textbook([*comm_c, *root_new]) == comm_r_new
    phi = hash_textbook([comm_d_new, comm_r_old], domain_tag=UPDATE_TAG)
    w = hash_textbook([comm_r_new, 0], domain_tag=UPDATE_TAG)
    nodes = [w >> 6 * i & 63 for i in range(10)]
    for node, *values in zip(nodes, old, data, new, strict=True):
        rho = hash_textbook([phi, node >> 5], domain_tag=UPDATE_TAG)
        assert (values[0] + values[1] * rho) % FR.p == values[2]
    assert len({*old, *new}) == 8  # both halves of both replicas have two values of their own


def test_a_made_up_update_with_other_commitments_does_not_pass() -> None:
    pieces = made(update_shape_of(2 * KIB))
    swapped = replace(pieces, comm_r_old=pieces.comm_r_new, comm_r_new=pieces.comm_r_old)
    with pytest.raises(Exception, match="comm_r_new asks for|not the hash"):
        read_update(swapped).check_partition(0, DEVICE)


def test_no_partition_opens_nodes_of_another() -> None:
    update = read_update(made(update_shape_of(32 * KIB)))
    for number, partition in enumerate(update.partitions):
        assert (partition.data.indices[:, -1] == number).all()
        assert len(np.unique(partition.apex_leaves, axis=0)) == 2
