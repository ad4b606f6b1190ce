"""Batched affine additions and the inversion behind them, against py_ecc and Python's pow."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from py_ecc import bls12_381 as oracle

from cuzk.kernels.batch_add import batch_add, batch_add_complete
from cuzk.kernels.device.cpu import aligned_empty
from cuzk.kernels.field import FQ, FQ8, canonical, load, store
from cuzk.kernels.inverse import inverse
from cuzk.kernels.jit import jit
from tests.kernels.field_values import edge_values, needs_ifma, to_ints, to_rows
from tests.kernels.point_values import GROUPS, generator, points_to_rows, rows_to_points


@jit
def _inverses(form, lanes, a, out):  # type: ignore[no-untyped-def]
    for i in range(0, len(a), lanes):
        store(form, out, i, canonical(inverse(form, load(form, a, i))))


@pytest.mark.parametrize("form", [FQ, pytest.param(FQ8, marks=needs_ifma)], ids=lambda form: form.name)
def test_inverse_equals_python_on_edge_and_random_values(form: Any) -> None:
    p, rng = form.modulus.p, random.Random(2)
    values = [v for v in edge_values(p) if v] + [rng.randrange(1, p) for _ in range(300)]
    values = values[: len(values) // 8 * 8]
    out = aligned_empty(len(values), form.words)
    _inverses(form, form.lanes, to_rows(form, values), out)
    assert to_ints(form, out) == [pow(v, -1, p) * form.radix**2 % p for v in values]


@pytest.mark.parametrize("form", [FQ, pytest.param(FQ8, marks=needs_ifma)], ids=lambda form: form.name)
def test_inverse_of_zero_is_zero(form: Any) -> None:
    out = aligned_empty(8, form.words)
    _inverses(form, form.lanes, to_rows(form, [3, 5, 7, 0, 11, 13, 17, 19]), out)
    expected_zero = range(8) if form.lanes == 8 else [3]
    assert all(to_ints(form, out)[i] == 0 for i in expected_zero)


def _scratch(form: Any, pairs: int) -> np.ndarray[Any, Any]:
    return aligned_empty(pairs, form.words).reshape(-1)


def _signed(point: Any, code: int) -> Any:
    return oracle.neg(point) if code & 1 and point is not None else point


def _multiples(group: str, count: int) -> list[Any]:
    points, g = [], generator(group)
    for _ in range(count):
        points.append(g if not points else oracle.add(points[-1], g))
    return points


@pytest.mark.parametrize(("group", "form"), GROUPS)
def test_distinct_points_with_random_signs_add_as_in_py_ecc(group: str, form: Any) -> None:
    rng = random.Random(3)
    points, count = _multiples(group, 20), 40
    pairs = [rng.sample(range(20), 2) for _ in range(count)]
    left, right = (np.array([2 * pair[k] + rng.randrange(2) for pair in pairs], np.uint32) for k in (0, 1))
    rows = points_to_rows(form, points, spare=count)
    assert batch_add(form, rows, left, right, count, 20, _scratch(form, count))
    expected = [
        oracle.add(_signed(points[a >> 1], a), _signed(points[b >> 1], b))
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert rows_to_points(form, rows[20:]) == expected
    assert batch_add_complete(form, rows, left, right, count, 20, _scratch(form, count)) == (None in expected)
    assert rows_to_points(form, rows[20:]) == expected


@pytest.mark.parametrize(("group", "form"), GROUPS)
@pytest.mark.parametrize("place", [0, 7, 8, 15])
def test_equal_x_is_found_wherever_it_stands_and_nothing_is_written(
    group: str, form: Any, place: int
) -> None:
    points = _multiples(group, 18)
    left, right = np.arange(0, 32, 2, np.uint32), np.arange(4, 36, 2, np.uint32)
    right[place] = left[place] | 1
    rows = points_to_rows(form, points, spare=16)
    rows[18:] = 77
    assert not batch_add(form, rows, left, right, 16, 18, _scratch(form, 16))
    assert (rows[18:] == 77).all()


@pytest.mark.parametrize(("group", "form"), GROUPS)
def test_the_complete_law_knows_identity_doubling_and_opposites(group: str, form: Any) -> None:
    g, *_, p = _multiples(group, 3)
    points = [None, g, p, oracle.neg(p)]
    pairs = [(a, b) for a in range(8) for b in range(8)]  # every pair of codes of four rows
    left, right = (np.array([pair[k] for pair in pairs], np.uint32) for k in (0, 1))
    rows = points_to_rows(form, points, spare=64)
    assert batch_add_complete(form, rows, left, right, 64, 4, _scratch(form, 64))
    expected = [oracle.add(_signed(points[a >> 1], a), _signed(points[b >> 1], b)) for a, b in pairs]
    assert rows_to_points(form, rows[4:]) == expected
    no_identity = np.array([2, 2, 4, 4, 3, 5, 2, 4], np.uint32)
    assert not batch_add_complete(form, rows, no_identity, no_identity, 8, 4, _scratch(form, 8))
