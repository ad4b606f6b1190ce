"""Sums of two points in XYZZ coordinates against the textbook: every case, with ZZ that is not 1."""

from __future__ import annotations

import itertools
from typing import Any

import numba
import numpy as np
import pytest

from cuzk.kernels.curve import invert, mul
from cuzk.kernels.device.cpu import aligned_empty
from cuzk.kernels.field import load_at, store
from cuzk.kernels.field_type import FQ, FQ2
from cuzk.kernels.xyzz import add, add_affine, curve_of, identity
from tests.kernels.field_values import to_ints
from tests.kernels.multiples import rows_of

MULTIPLES = [0, 1, -1, 2, -2, 3, 5]


@numba.njit
def sum_of_sums(form, words, rows, codes, out):  # type: ignore[no-untyped-def]
    """(P + Q) + (R + S) of four rows: the first two sums have a ZZ of their own."""
    sums = [identity(form), identity(form)]
    for k in range(4):
        x, y = load_at(form, rows, codes[k], 0), load_at(form, rows, codes[k], words)
        sums[k // 2] = add_affine(form, sums[k // 2], x, y)
    for i, coordinate in enumerate(add(sums[0], sums[1])):
        store(form, out, i, coordinate)


def plain(form: Any, row: np.ndarray[Any, Any]) -> Any:
    base = form.base
    back = pow(base.radix, -1, base.modulus.p)
    values = [value * back % base.modulus.p for value in to_ints(base, row.reshape(-1, base.words))]
    return values[0] if form.degree == 1 else tuple(values)


@pytest.mark.parametrize("form", [pytest.param(FQ, id="G1"), pytest.param(FQ2, id="G2")])
def test_all_pairs_of_sums_are_added(form: Any) -> None:
    """Identities, equal and opposite points among them."""
    curve, out = curve_of(form), aligned_empty(4, form.words)
    rows = rows_of(form, [curve.multiply(k, curve.generator) for k in MULTIPLES], spare=0)
    pairs = list(itertools.combinations(range(len(MULTIPLES)), 2))
    for first, second in itertools.product(pairs, pairs):
        sum_of_sums(form, form.words, rows, np.array([*first, *second], np.uint32), out)
        x, y, zz, zzz = (plain(form, row) for row in out)
        found = None if zz in (0, (0, 0)) else (mul(x, invert(zz)), mul(y, invert(zzz)))
        total = sum(MULTIPLES[i] for i in (*first, *second))
        assert found == curve.multiply(total, curve.generator)
