"""Multi-scalar multiplication against the textbook, mostly through points of known discrete logarithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.kernels import segment_sums
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.modulus import FR
from cuzk.kernels.msm import MAX_WINDOW, WindowPlan, best_window, msm, msm_textbook, recode, scratch_rows
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

R = FR.p


def _multiple(form: Any, scalar: int) -> Any:
    return curve_of(form).multiply(scalar % R, curve_of(form).generator)


def _check(
    device: CpuDevice, form: Any, logarithms: Sequence[int], scalars: Sequence[int], c: int | None = None
) -> None:
    """The MSM of the points logarithms[i] * G is the one multiple of G that it must be."""
    known = {k: _multiple(form, k) for k in set(logarithms)}
    rows = rows_of(form, [known[k] for k in logarithms], spare=scratch_rows(device, form, len(scalars), c=c))
    expected = _multiple(form, sum(k * s for k, s in zip(logarithms, scalars, strict=True)))
    assert msm(device, form, rows, scalar_rows(scalars), c=c) == expected


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_msm_equals_the_textbook(lanes: int, group: str) -> None:
    device, form = device_and_form(lanes, group)
    points, scalars = multiples_by_textbook(form, 6), random_scalars(6, seed=1)
    rows = rows_of(form, points, spare=scratch_rows(device, form, 6))
    assert msm(device, form, rows, scalar_rows(scalars)) == msm_textbook(curve_of(form), points, scalars)


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 63, 300])
def test_msm_of_any_number_of_points_is_right(lanes: int, group: str, n: int) -> None:
    device, form = device_and_form(lanes, group)
    _check(device, form, range(1, n + 1), random_scalars(n, seed=n))


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_every_window_gives_the_same_point(lanes: int, group: str) -> None:
    device, form = device_and_form(lanes, group)
    for c in range(2, MAX_WINDOW + 1):
        _check(device, form, range(1, 31), random_scalars(30, seed=c), c=c)


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_points_are_cut_into_parts_when_threads_outnumber_windows(lanes: int, group: str) -> None:
    device, form = device_and_form(lanes, group, threads=64)
    assert WindowPlan(n=100, c=8, threads=64).parts > 1
    _check(device, form, range(1, 101), random_scalars(100, seed=40), c=8)


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
@pytest.mark.parametrize("scalar", [0, 1, R - 1, R // 2, R // 2 + 1, 0x8000, 0x8000_8000_8000_8000])
def test_equal_scalars_put_all_points_into_one_bucket(
    lanes: int, group: str, scalar: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of 16 points or fewer, so that the bucket is cut and its partial sums are taken up again."""
    monkeypatch.setattr(segment_sums, "CHUNK_BYTES", 1 << 11)
    device, form = device_and_form(lanes, group)
    _check(device, form, range(1, 60), [scalar] * 59)


LOGARITHMS: dict[str, Callable[[int], int]] = {
    "one repeated point": lambda i: 7,
    "opposite points": lambda i: 7 * (-1) ** i,
    "few distinct points": lambda i: i % 3 + 1,
    "every third the identity": lambda i: i * (i % 3 > 0),
    "all identities": lambda i: 0,
    "sums that meet": lambda i: (-1) ** (i // 4) * (i % 8),
}


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
@pytest.mark.parametrize("kind", LOGARITHMS)
@pytest.mark.parametrize("distinct", [1, 2, 100])
def test_points_that_need_the_complete_law_are_summed_right(
    lanes: int, group: str, kind: str, distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_sums, "CHUNK_BYTES", 1 << 12)
    device, form = device_and_form(lanes, group)
    scalars = [random_scalars(distinct, seed=distinct + 3)[i % distinct] for i in range(100)]
    _check(device, form, [LOGARITHMS[kind](i) for i in range(100)], scalars)


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_an_index_picks_the_points(lanes: int, group: str) -> None:
    device, form = device_and_form(lanes, group)
    index, scalars = np.array([5, 0, 19, 5], np.uint32), random_scalars(4, seed=9)
    rows = rows_of(form, multiples_by_textbook(form, 20), spare=scratch_rows(device, form, 4))
    expected = _multiple(form, sum((int(i) + 1) * s for i, s in zip(index, scalars, strict=True)))
    assert msm(device, form, rows, scalar_rows(scalars), index=index) == expected


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_msm_of_2_to_the_13_and_three_points_is_right(lanes: int, group: str) -> None:
    device, form = device_and_form(lanes, group)
    n = (1 << 13) + 3
    rows, scalars = multiples(form, n, scratch_rows(device, form, n)), random_scalars(n, seed=13)
    expected = _multiple(form, sum((i + 1) * s for i, s in enumerate(scalars)))
    assert msm(device, form, rows, scalar_rows(scalars)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_msm_of_2_to_the_18_points_is_right(lanes: int, group: str) -> None:
    device, form = device_and_form(lanes, group)
    n = 1 << 18
    rows, scalars = multiples(form, n, scratch_rows(device, form, n)), random_scalars(n, seed=18)
    expected = _multiple(form, sum((i + 1) * s for i, s in enumerate(scalars)))
    assert msm(device, form, rows, scalar_rows(scalars)) == expected


_SCALARS = st.integers(0, R - 1) | st.sampled_from([0, 1, R - 1, R // 2, R // 2 + 1])
_TERMS = st.lists(st.tuples(st.integers(-4, 4), _SCALARS), max_size=40)


@settings(deadline=None, max_examples=60)  # the first call may compile
@given(_TERMS, st.sampled_from([2, 3, 5, 8]))
def test_msm_of_small_multiples_is_the_multiple_of_the_dot_product(terms: list[Any], c: int) -> None:
    device, form = device_and_form(CpuDevice().lanes, "g1")
    _check(device, form, [k for k, _ in terms], [s for _, s in terms], c=c)


@pytest.mark.parametrize("c", range(2, MAX_WINDOW + 1))
def test_digits_are_in_range_and_add_up_to_the_scalar(c: int) -> None:
    device, form = device_and_form(1, "g1")
    scalars = random_scalars(500, seed=c)
    plan = WindowPlan(n=len(scalars), c=c, threads=2)
    rows = rows_of(form, multiples_by_textbook(form, 1), spare=0)
    digits = np.empty(plan.digits_shape, np.int32)
    recode(device, rows, scalar_rows(scalars), np.zeros(len(scalars), np.uint32), plan, digits)
    for i, scalar in enumerate(scalars):
        column = digits[:, i].tolist()
        assert all(abs(digit) <= plan.buckets for digit in column)
        assert sum(digit << (c * w) for w, digit in enumerate(column)) in (scalar, scalar - R)


def test_the_window_grows_with_the_number_of_points() -> None:
    windows = [best_window(1 << k, threads=2) for k in range(23)]
    assert windows == sorted(windows) and windows[-1] == MAX_WINDOW and windows[0] >= 2
