"""Known answers are upstream's (neptune): digests of the tables and of the preimages 0, 1, .., arity - 1."""

from hashlib import sha256

import pytest

from cuzk.kernels.modulus import FR
from cuzk.kernels.poseidon import FULL_ROUNDS, constants, hash_textbook

ARITIES = (2, 4, 8, 11)
DIGESTS = {
    2: 0x396508D75E76A56B739E0FD902EFE161A6FBA9339D05A69D2E203C369A02E7FF,
    4: 0x58A54B10A9E5848A00DB3C6579229399FB6B4605BF1327EC019814FF6662075D,
    8: 0x2394611DA3A5DE5512010042116770774B682E9D9CC4AED92A9934F56D38A5E6,
    11: 0x0C0FC1B2E5227F286CA537E232EBE87A09F3DCD8CCB08FC1CEE3BBC32B693163,
}
TABLES = {  # SHA-256 over the 32-byte little-endian encodings
    2: {
        "round_constants": "cf4dfb7448132022e22b32e3dce6b125cb06329448f9e8d8fe53a71c73cbe6d4",
        "compressed": "b768b730ce5198394d948d76421ab53b08cc16ec1ac082cf503f370192253e16",
        "pre_sparse": "13d6e8e5ba45b0d2096617d055499f36adad1aab6853de143ed42b14eea9a0f6",
        "sparse": "a2fe507a83bddb8d57e5a00e7e58e79800c272b0db7dd4141943f6e567e99138",
    },
    8: {
        "round_constants": "9a4a743575f0eaf285c93d73f8adaf4e7ef4042c2445b42bddaf1a64e5face72",
        "compressed": "f5a94aea73a583d080abdf7d71259fab9107f5523a4a1eddc41468f94564dd16",
        "pre_sparse": "dcfbdaea3eb7e347664c8f881c5443b1895f10c85cab0878022eb287defa8587",
        "sparse": "3f823785875d8cc161c963d2a62d103a3fefab30eb4244cef877d8e624fb79f4",
    },
    11: {
        "round_constants": "479dc0d71d694cd50d853dec0c94aeb37df2a69929eaa23b545a52b1226aec06",
        "compressed": "2d7c0e4e9b98eda82102b69f1a964ae59ccf98b0008b6d3d632d86f4fea79d1d",
        "pre_sparse": "f2a7353f0ce5ad724a7a58bf2db0e37f7c5662f064a6c97466021af83279a96e",
        "sparse": "810a4d7f126f6e5fb3eb1980b57c70f90bb835219373d955726e30b3ca931556",
    },
}
FIRST_CONSTANTS = {
    2: 0x669F064BFA3AE17A23BD51861DBB4A24501EAC92A2758B36A7320A009D6ED3D8,
    8: 0x6CE90D12C4045FE08C3CADDB776DD84AC52B4AE7E48CD49443984154F2F4C2F9,
    11: 0x1F6C9576E648B5047399BFC5F38902E0D506F18E0F3AB77DE6DE096BD089BCE4,
}


def flat(table):
    """All integers of nested tuples, in order."""
    return [table] if isinstance(table, int) else [value for part in table for value in flat(part)]


def list_digest(table):
    return sha256(b"".join(value.to_bytes(32, "little") for value in flat(table))).hexdigest()


@pytest.mark.parametrize("arity", sorted(TABLES))
def test_tables_have_upstreams_digests(arity):
    table = constants(arity)
    assert {name: list_digest(getattr(table, name)) for name in TABLES[arity]} == TABLES[arity]
    assert table.round_constants[0][0] == FIRST_CONSTANTS[arity]


@pytest.mark.parametrize("arity", ARITIES)
def test_textbook_digests_are_upstreams(arity):
    assert hash_textbook(range(arity)) == DIGESTS[arity]


@pytest.mark.parametrize("arity", ARITIES)
def test_the_mds_matrix_is_the_cauchy_matrix_of_the_width(arity):
    entries = flat(constants(arity).mds)
    width = arity + 1
    products = {entry * (k // width + k % width + width) % FR.p for k, entry in enumerate(entries)}
    assert products == {1} and len(entries) == width**2


@pytest.mark.parametrize("arity", ARITIES)
def test_there_are_as_many_keys_as_the_optimised_permutation_adds(arity):
    table = constants(arity)
    assert len(table.compressed) == FULL_ROUNDS * table.width + table.partial_rounds
    assert [(len(w), len(v)) for w, v in table.sparse] == [(arity + 1, arity)] * table.partial_rounds
