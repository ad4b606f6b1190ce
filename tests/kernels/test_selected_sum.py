"""Sums under bits and mostly bits against the textbook, through points of known discrete logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuzk.kernels import segment_sums, selected_sum
from cuzk.kernels.modulus import FR
from cuzk.kernels.msm import msm_textbook
from cuzk.kernels.selected_sum import mostly_bits_sum, scratch_rows, selected_sum_textbook
from cuzk.kernels.xyzz import curve_of
from tests.kernels.multiples import (
    GROUPS,
    device_and_form,
    multiples,
    multiples_by_textbook,
    random_scalars,
    rows_of,
    scalar_rows,
)


def _bits(n: int, density: float) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(n).random(n) < density).astype(np.uint8)


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
@pytest.mark.parametrize("n", [0, 1, 2, 9, 65, 200])
@pytest.mark.parametrize("density", [0.0, 0.5, 1.0])
def test_the_sum_equals_the_textbook(lanes: int, group: str, n: int, density: float) -> None:
    device, form = device_and_form(lanes, group)
    points, bits = multiples_by_textbook(form, n), _bits(n, density)
    rows = rows_of(form, points, spare=scratch_rows(device, form, n))
    expected = selected_sum_textbook(curve_of(form), points, bits.tolist())
    assert selected_sum.selected_sum(device, form, rows, bits) == expected


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_blocks_and_rounds_of_many_points_add_up(lanes: int, group: str) -> None:
    """More than one block, and three rounds in each: 64 * 64 < 5,000."""
    device, form = device_and_form(lanes, group)
    n = 20_011
    rows, bits = multiples(form, n, scratch_rows(device, form, n)), _bits(n, 0.98)
    logarithm = int((np.flatnonzero(bits) + 1).sum())
    expected = curve_of(form).multiply(logarithm, curve_of(form).generator)
    assert selected_sum.selected_sum(device, form, rows, bits) == expected


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
@pytest.mark.parametrize("cycle", [[7], [7, -7], [0], [0, 1], [1, 2, 3, -3, -2, -1], [5, -5, 0, 1]])
def test_repeated_opposite_and_identity_points_are_summed_right(
    lanes: int, group: str, cycle: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_sums, "CHUNK_BYTES", 1 << 12)
    device, form = device_and_form(lanes, group)
    curve, n = curve_of(form), 300
    values = [cycle[i % len(cycle)] for i in range(n)]
    known = {k: curve.multiply(k, curve.generator) for k in set(values)}
    rows = rows_of(form, [known[k] for k in values], spare=scratch_rows(device, form, n))
    expected = curve.multiply(sum(values), curve.generator)
    assert selected_sum.selected_sum(device, form, rows, np.ones(n, np.uint8)) == expected


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
@pytest.mark.parametrize("full", [0, 1, 20])
def test_bits_and_other_scalars_are_summed_together(lanes: int, group: str, full: int) -> None:
    device, form = device_and_form(lanes, group)
    n = 50
    points, scalars = multiples_by_textbook(form, n), random_scalars(full, seed=full)
    index = np.sort(np.random.default_rng(1).permutation(n)[:full]).astype(np.uint32)
    bits = _bits(n, 0.7)
    bits[index] = 0
    rows = rows_of(form, points, spare=scratch_rows(device, form, n, full))
    all_scalars = bits.tolist()
    for i, scalar in zip(index.tolist(), scalars, strict=True):
        all_scalars[i] = scalar
    expected = msm_textbook(curve_of(form), points, all_scalars)
    assert mostly_bits_sum(device, form, rows, bits, index, scalar_rows(scalars)) == expected


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_a_full_scalar_and_the_bits_may_cancel(lanes: int, group: str) -> None:
    device, form = device_and_form(lanes, group)
    curve = curve_of(form)
    points = [curve.multiply(k, curve.generator) for k in (1, 2, 3)]
    rows = rows_of(form, points, spare=scratch_rows(device, form, 3, 1))
    bits, index = np.array([1, 1, 0], np.uint8), np.array([2], np.uint32)
    assert mostly_bits_sum(device, form, rows, bits, index, scalar_rows([FR.p - 1])) is None
