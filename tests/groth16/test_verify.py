"""Verification: upstream's proofs hold, nothing near them does, and py_ecc agrees about the equation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar
from py_ecc.optimized_bls12_381 import FQ, FQ2, FQ12, add, curve_order, multiply, neg, pairing

from cuzk.errors import ParameterError, ProofError
from cuzk.groth16 import verify
from cuzk.groth16.parameters.verifying_key import VerifyingKey, read_verifying_key
from cuzk.groth16.proof import Proof
from cuzk.groth16.verify import Verifier
from cuzk.kernels.fr_vector import from_integers, to_integers
from tests.py_ecc_points import decompressed, g1_times, g2_times

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


@pytest.fixture(scope="session")
def verifier(upstream_key_path: Path) -> Verifier:
    return Verifier(read_verifying_key(upstream_key_path))


def holds(verifier: Verifier, inputs: np.ndarray, proof: Proof) -> bool:
    """A proof that cannot be read does not hold either."""
    try:
        return verifier.verify_partition(inputs, proof)
    except ProofError:
        return False


def test_upstream_proofs_hold_alone_and_together(verifier: Verifier, upstream_proofs: list[Any]) -> None:
    assert len(upstream_proofs) == 3
    for case in upstream_proofs:
        assert verifier.verify_partition(case.public_inputs, case.proof)
    for k in (1, 2, 3):
        assert verifier.verify_partitions(
            [case.public_inputs for case in upstream_proofs[:k]], [case.proof for case in upstream_proofs[:k]]
        )


def test_a_proof_does_not_hold_for_another_sector(verifier: Verifier, upstream_proofs: list[Any]) -> None:
    first, second, third = upstream_proofs
    assert not verifier.verify_partition(first.public_inputs, second.proof)
    inputs = [case.public_inputs for case in upstream_proofs]
    assert not verifier.verify_partitions(inputs, [second.proof, first.proof, third.proof])
    assert not verifier.verify_partitions(inputs, [first.proof, second.proof, second.proof])


@pytest.mark.parametrize("index", [0, 1, 2, 3, 20, 38])
def test_one_changed_input_is_noticed(index: int, verifier: Verifier, upstream_proofs: list[Any]) -> None:
    inputs = upstream_proofs[1].public_inputs.copy()
    inputs[index, 0] ^= np.uint64(1)
    assert not verifier.verify_partition(inputs, upstream_proofs[1].proof)


def test_swapped_inputs_are_noticed(verifier: Verifier, upstream_proofs: list[Any]) -> None:
    inputs = upstream_proofs[1].public_inputs.copy()
    inputs[[0, 1]] = inputs[[1, 0]]
    assert not verifier.verify_partition(inputs, upstream_proofs[1].proof)


@pytest.mark.parametrize("bit", range(0, 192 * 8, 61))
def test_one_flipped_bit_is_noticed(bit: int, verifier: Verifier, upstream_proofs: list[Any]) -> None:
    data = bytearray(upstream_proofs[1].proof.to_bytes())
    data[bit // 8] ^= 0x80 >> bit % 8
    assert not holds(verifier, upstream_proofs[1].public_inputs, Proof.from_bytes(bytes(data)))


@pytest.mark.parametrize("point", ["a", "b", "c"])
def test_a_negated_point_is_noticed(point: str, verifier: Verifier, upstream_proofs: list[Any]) -> None:
    proof = upstream_proofs[0].proof
    data = {name: getattr(proof, name) for name in ("a", "b", "c")}
    data[point] = bytes([data[point][0] ^ 0x20]) + data[point][1:]
    assert not verifier.verify_partition(upstream_proofs[0].public_inputs, Proof(**data))


def test_two_wrong_proofs_do_not_make_up_for_each_other(
    verifier: Verifier, upstream_proofs: list[Any]
) -> None:
    """Moving C by D in one and by -D in the other cancels in a plain product, not in a random one."""
    first, second = upstream_proofs[:2]
    shift = G1Point() * Scalar(99)
    a1, b1, c1 = first.proof.points()
    a2, b2, c2 = second.proof.points()
    moved = [Proof.from_points(a1, b1, c1 + shift), Proof.from_points(a2, b2, c2 - shift)]
    assert not verifier.verify_partitions([first.public_inputs, second.public_inputs], moved)


def test_an_unreadable_point_names_partition_and_point(
    verifier: Verifier, upstream_proofs: list[Any]
) -> None:
    good = upstream_proofs[0]
    bad = Proof(good.proof.a, b"\xc0" + bytes(95), good.proof.c)
    with pytest.raises(ProofError, match="point B is unreadable: the identity") as raised:
        verifier.verify_partitions([good.public_inputs] * 2, [good.proof, bad])
    assert raised.value.where == "partition 1"


@pytest.mark.parametrize("count", [0, 38, 40])
def test_another_number_of_inputs_is_another_circuit(
    count: int, verifier: Verifier, upstream_proofs: list[Any]
) -> None:
    with pytest.raises(ParameterError, match=f"takes 39 public inputs, not {count}"):
        verifier.verify_partition(np.zeros((count, 4), dtype=np.uint64), upstream_proofs[0].proof)


def forged(inputs: list[int], ic_dlogs: list[int], a: int, b: int) -> Proof:
    """The proof that whoever knows alpha, beta, gamma, delta = 2, 3, 5, 7 and the dlogs of ic can make."""
    x = ic_dlogs[0] + sum(value * dlog for value, dlog in zip(inputs, ic_dlogs[1:], strict=True))
    c = (a * b - 2 * 3 - 5 * x) * pow(7, -1, R) % R
    return Proof.from_points(G1Point() * Scalar(a), G2Point() * Scalar(b), G1Point() * Scalar(c))


def key_of(ic_dlogs: list[int]) -> VerifyingKey:
    ic = tuple(g1_times(k) for k in ic_dlogs)
    return VerifyingKey(
        alpha_g1=g1_times(2),
        beta_g1=g1_times(3),
        beta_g2=g2_times(3),
        gamma_g2=g2_times(5),
        delta_g1=g1_times(7),
        delta_g2=g2_times(7),
        ic=ic,
    )


def test_ten_partitions_of_a_large_sector_take_well_under_a_second() -> None:
    """327 public inputs; edge values among them, so that their sums pass r many times."""
    random = np.random.default_rng(7)
    dlogs = [int(k) for k in random.integers(1, 1 << 62, 328)]
    verifier = Verifier(key_of(dlogs))
    inputs = [[0, 1, R - 1, *(R - 1 - int(k) for k in random.integers(0, 1 << 62, 324))] for _ in range(10)]
    proofs = [forged(values, dlogs, a=17 + k, b=R - 5 - k) for k, values in enumerate(inputs)]
    begin = time.perf_counter()
    assert verifier.verify_partitions([from_integers(values) for values in inputs], proofs)
    assert time.perf_counter() - begin < 1
    inputs[9][326] += 1
    assert not verifier.verify_partitions([from_integers(values) for values in inputs], proofs)


@pytest.mark.parametrize("points", [1, 7, 39])
def test_slices_of_public_inputs_by_several_threads_make_the_same_sum(
    points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40 points of ic, the last alone in a slice among others; each input counts, at every border too."""
    monkeypatch.setattr(verify, "_SLICE", points)
    dlogs = [R - 1, *range(1, 40)]
    verifier = Verifier(key_of(dlogs))
    inputs = [[0, 1, R - 1, *(R - 1 - (k << 60) * j for j in range(36))] for k in (1, 2)]
    proofs = [forged(values, dlogs, a=17 + k, b=R - 5 - k) for k, values in enumerate(inputs)]
    assert verifier.verify_partition(from_integers(inputs[0]), proofs[0])
    assert verifier.verify_partitions([from_integers(values) for values in inputs], proofs)
    for index in (0, 5, 6, 7, 37, 38):
        other = list(inputs[0])
        other[index] = (other[index] + 1) % R
        assert not verifier.verify_partition(from_integers(other), proofs[0])


@pytest.mark.parametrize("value", [R, R + 1, (1 << 256) - 1])
def test_an_input_that_is_not_below_r_is_refused(
    value: int, verifier: Verifier, upstream_proofs: list[Any]
) -> None:
    """It would be another encoding of the same statement."""
    inputs = upstream_proofs[0].public_inputs.copy()
    inputs[7] = from_integers([value])
    with pytest.raises(ValueError, match="invalid"):
        verifier.verify_partition(inputs, upstream_proofs[0].proof)


def test_py_ecc_finds_the_same_equation_for_an_upstream_proof(
    upstream_key_path: Path, upstream_proofs: list[Any]
) -> None:
    """All of it anew from bytes, by py_ecc: about four seconds for four pairings."""
    case = upstream_proofs[1]
    key = upstream_key_path.read_bytes()
    ic = [g1_by_py_ecc(key[868 + 96 * i : 964 + 96 * i]) for i in range(40)]
    x = ic[0]
    for value, point in zip(to_integers(case.public_inputs), ic[1:], strict=True):
        x = add(x, multiply(point, value))
    a, b, c = map(decompressed, (case.proof.a, case.proof.b, case.proof.c))
    product = FQ12.one()
    for g1, g2 in (
        (a, b),
        (neg(g1_by_py_ecc(key[:96])), g2_by_py_ecc(key[192:384])),
        (neg(x), g2_by_py_ecc(key[384:576])),
        (neg(c), g2_by_py_ecc(key[672:864])),
    ):
        product *= pairing(g2, g1)
    assert product == FQ12.one() and curve_order == R


def g1_by_py_ecc(data: bytes) -> Any:
    x, y = (int.from_bytes(data[i : i + 48], "big") for i in (0, 48))
    return FQ(x), FQ(y), FQ(1)


def g2_by_py_ecc(data: bytes) -> Any:
    x1, x0, y1, y0 = (int.from_bytes(data[i : i + 48], "big") for i in range(0, 192, 48))
    return FQ2([x0, x1]), FQ2([y0, y1]), FQ2.one()
