"""Proofs as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzk.errors import InputError, ProofError
from cuzk.groth16.proof import PROOF_BYTES, Proof, join_proofs, split_proofs

A, B, C = G1Point() * Scalar(3), G2Point() * Scalar(4), G1Point() * Scalar(5)


def test_points_survive_bytes() -> None:
    data = Proof.from_points(A, B, C).to_bytes()
    assert len(data) == PROOF_BYTES == 192
    assert data == b"".join(bytes(point.to_compressed_bytes()) for point in (A, B, C))
    assert Proof.from_bytes(data).points() == (A, B, C)


@pytest.mark.parametrize("size", [0, 1, 191, 193, 384])
def test_another_length_is_no_proof(size: int) -> None:
    with pytest.raises(InputError, match=f"not {size}"):
        Proof.from_bytes(bytes(size))


def test_proofs_of_a_sector_follow_each_other() -> None:
    proofs = [Proof.from_points(A * Scalar(k), B, C) for k in range(1, 11)]
    data = join_proofs(proofs)
    assert len(data) == 1920
    assert split_proofs(data) == proofs


@pytest.mark.parametrize("size", [0, 100, 191, 1919, 1921])
def test_a_length_that_is_no_multiple_is_refused(size: int) -> None:
    with pytest.raises(InputError, match=f"{size} bytes are no sequence of proofs"):
        split_proofs(bytes(size))


@pytest.mark.parametrize(("name", "offset"), [("A", 0), ("B", 48), ("C", 144)])
def test_a_damaged_point_is_named_with_its_place(name: str, offset: int) -> None:
    data = bytearray(Proof.from_points(A, B, C).to_bytes())
    data[offset] &= 0x7F  # no longer marked as compressed
    with pytest.raises(ProofError) as raised:
        Proof.from_bytes(bytes(data)).points(where="partition 7")
    assert raised.value.where == "partition 7" and raised.value.what.startswith(f"point {name} ")


@given(st.lists(st.tuples(st.integers(0, 191), st.integers(1, 255)), max_size=3))
def test_damaged_bytes_are_refused_or_stand_for_other_points(damage: list[tuple[int, int]]) -> None:
    """What is accepted has no second encoding, so bytes of another proof are never taken for this one."""
    data = bytearray(Proof.from_points(A, B, C).to_bytes())
    for offset, mask in damage:
        data[offset] ^= mask
    try:
        points = Proof.from_bytes(bytes(data)).points()
    except ProofError:
        return
    assert Proof.from_points(*points).to_bytes() == data
