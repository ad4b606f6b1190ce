"""The compiled hash against the textbook one, whose digests `test_poseidon` compares with upstream's."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cuzk.kernels.device.cpu import CpuDevice, has_ifma
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.modulus import FR
from cuzk.kernels.poseidon import hash_textbook
from cuzk.kernels.poseidon_hash import LEAST_HASHES, hash_many, path_roots

LANES = [1, pytest.param(8, marks=pytest.mark.skipif(not has_ifma(), reason="no AVX-512 IFMA"))]
EDGES = [0, 1, FR.p - 1, FR.p // 2, 2**64 - 1, 2**254]


def rows(preimages):
    return from_integers(value for preimage in preimages for value in preimage).reshape(len(preimages), -1, 4)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("arity", [2, 4, 8, 11])
def test_digests_equal_the_textbooks_on_edge_and_random_values(arity, lanes):
    rng = random.Random(arity)
    preimages = [[edge] * arity for edge in EDGES]
    preimages += [[rng.choice([*EDGES, rng.randrange(FR.p)]) for _ in range(arity)] for _ in range(20)]
    digests = hash_many(CpuDevice(1, lanes), rows(preimages))
    assert to_integers(digests) == [hash_textbook(preimage) for preimage in preimages]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, LEAST_HASHES - 1, LEAST_HASHES + 1, 9 * LEAST_HASHES + 3])
def test_every_number_of_preimages_is_hashed_in_order(count, lanes):
    preimages = [[i, i + 1] for i in range(count)]
    digests = to_integers(hash_many(CpuDevice(2, lanes), rows(preimages)))
    assert len(digests) == count
    assert (digests[0], digests[-1]) == (hash_textbook([0, 1]), hash_textbook(preimages[-1]))
    assert len(set(digests)) == count


def test_no_preimage_gives_no_digest():
    assert hash_many(CpuDevice(1), np.empty((0, 8, 4), dtype=np.uint64)).shape == (0, 4)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("writable", [True, False])
def test_preimages_may_be_a_part_of_another_array(lanes, writable):
    table = rows([[k, 2 * k, 3 * k, 5 * k, FR.p - 1 - k] for k in range(20)]).copy()
    table.flags.writeable = writable
    digests = hash_many(CpuDevice(1, lanes), table[1::2, 1:])
    expected = [hash_textbook([2 * k, 3 * k, 5 * k, FR.p - 1 - k]) for k in range(1, 20, 2)]
    assert to_integers(digests) == expected


def root_textbook(leaf, siblings, positions, arities):
    for position, arity in zip(positions, arities, strict=True):
        others, siblings = siblings[: arity - 1], siblings[arity - 1 :]
        leaf = hash_textbook([*others[:position], leaf, *others[position:]])
    return leaf


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(("arities", "count"), [((8,), 1), ((8, 2, 4, 8), 9), ((2, 11), 35), ((4, 4), 100)])
def test_paths_lead_where_the_textbook_says(arities, count, lanes):
    """Each position of each level comes up, edge values at every place; more than one task is cut."""
    rng = random.Random(count)
    length = sum(arity - 1 for arity in arities)
    paths = [
        (
            rng.choice(EDGES),
            [rng.choice([*EDGES, rng.randrange(FR.p)]) for _ in range(length)],
            [(k + level) % arity for level, arity in enumerate(arities)],
        )
        for k in range(count)
    ]
    leaves, siblings, positions = zip(*paths, strict=True)
    roots = path_roots(
        CpuDevice(3, lanes),
        rows([[leaf] for leaf in leaves])[:, 0],
        rows(siblings),
        np.array(positions, np.int64),
        arities,
    )
    assert to_integers(roots) == [root_textbook(*path, arities) for path in paths]


@pytest.mark.parametrize("position", [-1, 8])
def test_a_position_outside_its_level_reads_no_memory_that_is_not_there(position):
    with pytest.raises(AssertionError, match="outside its level"):
        path_roots(CpuDevice(1), rows([[1]])[:, 0], rows([[2] * 7]), np.array([[position]]), (8,))


@pytest.mark.parametrize("lanes", LANES)
def test_a_domain_tag_makes_another_hash(lanes):
    """The tag 2^40 of sector updates: known answers of storage-proofs-update."""
    known = {
        (0, 1): "587707bcc44ea7e5c7677339ea0b58e325fea03481c51fad4e92f0e7c4354a31",
        (1, 2): "3c2fe9b59c5f0de453bbb6db5c84af5448c7d4c1fbf41830ab05dbaf9b872c70",
    }
    preimages = [[*pair] for pair in known]
    digests = hash_many(CpuDevice(1, lanes), rows(preimages), domain_tag=1 << 40)
    assert [digest.tobytes().hex() for digest in digests] == [*known.values()]
    textbook = [hash_textbook(preimage, domain_tag=1 << 40) for preimage in preimages]
    assert to_integers(digests) == textbook
    assert to_integers(hash_many(CpuDevice(1, lanes), rows(preimages))) != textbook
