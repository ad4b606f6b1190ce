"""The compiled hash against the textbook one, whose digests `test_poseidon` compares with upstream's."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cuzk.kernels.device.cpu import CpuDevice, has_ifma
from cuzk.kernels.modulus import FR
from cuzk.kernels.poseidon import hash_textbook
from cuzk.kernels.poseidon_hash import HASHES_A_CHUNK, hash_many

LANES = [1, pytest.param(8, marks=pytest.mark.skipif(not has_ifma(), reason="no AVX-512 IFMA"))]
EDGES = [0, 1, FR.p - 1, FR.p // 2, 2**64 - 1, 2**254]


def rows(preimages):
    encoded = b"".join(value.to_bytes(32, "little") for preimage in preimages for value in preimage)
    return np.frombuffer(encoded, dtype=np.uint64).reshape(len(preimages), -1, 4)


def ints(digests):
    return [int.from_bytes(digest.tobytes(), "little") for digest in digests]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("arity", [2, 4, 8, 11])
def test_digests_equal_the_textbooks_on_edge_and_random_values(arity, lanes):
    rng = random.Random(arity)
    preimages = [[edge] * arity for edge in EDGES]
    preimages += [[rng.choice([*EDGES, rng.randrange(FR.p)]) for _ in range(arity)] for _ in range(20)]
    digests = hash_many(CpuDevice(1, lanes), rows(preimages))
    assert ints(digests) == [hash_textbook(preimage) for preimage in preimages]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, HASHES_A_CHUNK - 1, HASHES_A_CHUNK + 1])
def test_every_number_of_preimages_is_hashed_in_order(count, lanes):
    preimages = [[i, i + 1] for i in range(count)]
    digests = ints(hash_many(CpuDevice(2, lanes), rows(preimages)))
    assert len(digests) == count
    assert (digests[0], digests[-1]) == (hash_textbook([0, 1]), hash_textbook(preimages[-1]))
    assert len(set(digests)) == count


def test_no_preimage_gives_no_digest():
    assert hash_many(CpuDevice(1), np.empty((0, 8, 4), dtype=np.uint64)).shape == (0, 4)


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
    assert ints(digests) == textbook
    assert ints(hash_many(CpuDevice(1, lanes), rows(preimages))) != textbook
