"""The textbook group law against py_ecc, and single points in compiled code against the textbook."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from py_ecc import bls12_381 as oracle

from cuzk.kernels.curve import G1, G2, Curve
from cuzk.kernels.modulus import FQ, FR
from cuzk.kernels.xyzz import EMPTY, ROWS_READ_PAST, curve_of, horner
from tests.kernels.multiples import GROUPS, device_and_form, rows_of, to_oracle

CURVES = pytest.mark.parametrize("curve", [G1, G2], ids=lambda curve: curve.name)


@CURVES
def test_sums_of_all_pairs_equal_py_ecc(curve: Curve[Any]) -> None:
    points = [curve.multiply(k, curve.generator) for k in (0, 1, -1, 2, -2, 3, 5)]
    for p, q in itertools.product(points, points):
        assert to_oracle(curve.add(p, q)) == oracle.add(to_oracle(p), to_oracle(q))


@CURVES
@pytest.mark.parametrize("scalar", [0, 1, 2, FR.p - 1, FR.p, FR.p + 1, 0x123456789ABCDEF])
def test_multiples_equal_py_ecc(curve: Curve[Any], scalar: int) -> None:
    expected = oracle.multiply(to_oracle(curve.generator), scalar) if scalar else None
    assert to_oracle(curve.multiply(scalar, curve.generator)) == expected


@CURVES
def test_a_negative_scalar_negates_the_point(curve: Curve[Any]) -> None:
    assert curve.multiply(-5, curve.generator) == curve.negate(curve.multiply(5, curve.generator))
    assert curve.negate(None) is None


@CURVES
def test_a_point_off_the_curve_is_not_contained(curve: Curve[Any]) -> None:
    x, y = curve.generator
    off = (x, (y + 1) % FQ.p) if isinstance(y, int) else (x, (y[0], (y[1] + 1) % FQ.p))
    assert curve.contains(None) and curve.contains(curve.multiply(9, curve.generator))
    assert not curve.contains(off)


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_a_fold_meets_doublings_opposites_and_identities(lanes: int, group: str) -> None:
    """Every pair of small multiples as two parts of one position: the second addition sees each case."""
    _, form = device_and_form(lanes, group)
    curve = curve_of(form)
    values = [0, 1, -1, 2, -2, 3]
    rows = rows_of(form, [curve.multiply(k, curve.generator) for k in values], spare=ROWS_READ_PAST)
    for i, j in itertools.product(range(len(values)), repeat=2):
        codes = np.array([[2 * i], [2 * j]], np.uint32)
        assert horner(form, rows, codes) == curve.multiply(values[i] + values[j], curve.generator)


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_a_fold_weighs_positions_by_powers_of_two_and_heeds_signs(lanes: int, group: str) -> None:
    _, form = device_and_form(lanes, group)
    curve, rng = curve_of(form), random.Random(5)
    rows = rows_of(form, [curve.multiply(k, curve.generator) for k in range(1, 9)], spare=ROWS_READ_PAST)
    codes = np.array([[rng.randrange(16) for _ in range(40)] for _ in range(3)], np.uint32)
    codes[1, ::3] = EMPTY
    signed = [(0 if code == EMPTY else (code // 2 + 1) * (-1) ** (code & 1), j % 40)
              for j, code in enumerate(codes.reshape(-1).tolist())]  # fmt: skip
    expected = curve.multiply(sum(value << j for value, j in signed), curve.generator)
    assert horner(form, rows, codes) == expected


def test_a_fold_of_nothing_is_the_identity() -> None:
    _, form = device_and_form(1, "g1")
    rows = rows_of(form, [G1.generator], spare=ROWS_READ_PAST)
    assert horner(form, rows, np.full((2, 3), EMPTY, np.uint32)) is None
