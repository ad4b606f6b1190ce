"""Commitments as hex and as CIDs. The CID of 2 KiB of zeros is the one that every Lotus node knows."""

from __future__ import annotations

import pytest

from cuzk.errors import InputError
from cuzk.sector.commitments import Committed, cid_of, parse_commitment

ZERO_HEX = "fc7e928296e516faade986b28f92d44a4f24b935485223376a799027bc18f833"
ZERO_CID = "baga6ea4seaqpy7usqklokfx2vxuynmupslkeutzexe2uqurdg5vhtebhxqmpqmy"


def test_the_data_commitment_of_zeros_has_the_known_cid() -> None:
    assert cid_of(bytes.fromhex(ZERO_HEX), Committed.DATA) == ZERO_CID
    for text in (ZERO_HEX, ZERO_CID):
        assert parse_commitment(text, Committed.DATA, where="comm_d_new").hex() == ZERO_HEX


def test_a_replica_commitment_has_a_cid_of_its_own() -> None:
    cid = cid_of(bytes.fromhex(ZERO_HEX), Committed.REPLICA)
    assert cid.startswith("bagboea4b5abc")
    assert parse_commitment(cid, Committed.REPLICA, where="comm_r_old").hex() == ZERO_HEX


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        ZERO_HEX[:-1],
        ZERO_HEX[:-2],
        ZERO_HEX + "00",
        ZERO_CID[:-1],
        ZERO_CID[:-1] + "z",  # bits behind the last byte
        ZERO_CID.upper(),
        ZERO_CID[1:],
        "ä" * 64,
        cid_of(bytes(32), Committed.REPLICA),
    ],
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_commitment(text, Committed.DATA, where="--comm-d-new")
    assert caught.value.where == "--comm-d-new"
    assert "the CID of a data commitment" in caught.value.what


def test_hex_that_begins_like_a_cid_is_hex() -> None:
    assert parse_commitment("b" * 64, Committed.DATA, where="here") == b"\xbb" * 32
