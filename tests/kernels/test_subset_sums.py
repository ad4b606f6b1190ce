"""Random sums find points outside the subgroup: py_ecc makes such points, arkworks recognises them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar
from py_ecc import bls12_381 as affine
from py_ecc import optimized_bls12_381 as oracle
from py_ecc.bls.point_compression import compress_G1, compress_G2

from cuzk.kernels.modulus import FQ, FR
from cuzk.kernels.subset_sums import random_subset_sums, scratch_rows
from tests.kernels.multiples import GROUPS, device_and_form
from tests.kernels.point_values import points_to_rows
from tests.py_ecc_points import be48, decompressed

Z = -0xD201000000010000  # the curve's parameter: everything about it follows
COFACTORS = {
    "g1": (Z - 1) ** 2 // 3,
    "g2": (Z**8 - 4 * Z**7 + 5 * Z**6 - 4 * Z**4 + 6 * Z**3 - 4 * Z**2 - 4 * Z + 13) // 9,
}
SMALL_ORDERS = [("g1", 3), ("g1", 11), ("g1", 10177), ("g2", 13), ("g2", 23), ("g2", 2713)]
SUMS = 45  # of which a point outside the subgroup spoils about half, each on its own
ABOUT_HALF = range(4, SUMS - 4 + 1)  # all but 10^-9 of the binomial distribution


def points_on_the_curve(group: str) -> Iterator[Any]:
    """py_ecc's points with a small x, nearly all of them outside the subgroup."""
    field, b = (oracle.FQ, oracle.b) if group == "g1" else (oracle.FQ2, oracle.b2)
    for first in itertools.count(1):  # py_ecc takes x = 0 for the identity when it decompresses
        x = field(first) if group == "g1" else field([first, 1])
        y = square_root(group, x * x * x + b)
        if y is not None:
            yield x, y, field.one()


def square_root(group: str, value: Any) -> Any:
    """p = 3 mod 4: a power. p^2 = 9 mod 16: a power, times an eighth root of one."""
    if group == "g1":
        root = value ** ((FQ.p + 1) // 4)
        return root if root * root == value else None
    root = value ** ((FQ.p**2 + 7) // 16)
    eighth = oracle.FQ2([1, 1]) ** ((FQ.p**2 - 1) // 8)
    return next((root * eighth**k for k in range(8) if (root * eighth**k) ** 2 == value), None)


@cache
def point_of_order(group: str, order: int) -> Any:
    rest = COFACTORS[group] * FR.p
    assert rest % order == 0
    while rest % order == 0:
        rest //= order
    for point in points_on_the_curve(group):
        small = oracle.multiply(point, rest)
        while not oracle.is_inf(small):
            if oracle.is_inf(oracle.multiply(small, order)):
                return to_arkworks(integers_of(oracle.normalize(small)))
            small = oracle.multiply(small, order)
    raise AssertionError("the curve has infinitely few points")


def integers_of(point: Any) -> Any:
    """py_ecc's affine point as plain integers, c0 before c1."""
    return tuple(tuple(map(int, z.coeffs)) if hasattr(z, "coeffs") else int(z) for z in point)


def to_arkworks(point: Any) -> Any:
    """Of plain coordinates; the point must lie on the curve."""
    if isinstance(point[0], int):
        projective = (*map(oracle.FQ, point), oracle.FQ.one())
        assert oracle.is_on_curve(projective, oracle.b)
        return G1Point.from_compressed_bytes_unchecked(be48(compress_G1(projective)))
    projective = (*map(oracle.FQ2, point), oracle.FQ2.one())
    assert oracle.is_on_curve(projective, oracle.b2)
    return G2Point.from_compressed_bytes_unchecked(be48(*compress_G2(projective)))


def to_affine(point: Any) -> Any:
    """arkworks' point as py_ecc's affine one."""
    x, y = integers_of(oracle.normalize(decompressed(bytes(point.to_compressed_bytes()))))
    return (affine.FQ(x), affine.FQ(y)) if isinstance(point, G1Point) else (affine.FQ2(x), affine.FQ2(y))


def sums_of(lanes: int, group: str, points: list[Any]) -> list[Any]:
    """The sums, the identity left out; points here and there are arkworks'."""
    device, form = device_and_form(lanes, group)
    spare = scratch_rows(device, form, len(points)) + 8
    rows = points_to_rows(form, [to_affine(point) for point in points], spare=spare)
    sums = random_subset_sums(device, form, rows, len(points))
    return [to_arkworks(point) for point in sums if point is not None]


def good_points(group: str, count: int) -> list[Any]:
    generator = G1Point() if group == "g1" else G2Point()
    return [generator * Scalar(0xC0FFEE + 7919 * i) for i in range(count)]


def outside(points: list[Any]) -> int:
    return sum(not is_in_subgroup(point) for point in points)


def is_in_subgroup(point: Any) -> bool:
    try:
        return bool(type(point).from_compressed_bytes(point.to_compressed_bytes()) == point)
    except ValueError:
        return False


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
@pytest.mark.parametrize("count", [1, 9, 64])
def test_sums_of_points_of_the_subgroup_stay_in_it(lanes: int, group: str, count: int) -> None:
    sums = sums_of(lanes, group, good_points(group, count))
    assert len(sums) in ABOUT_HALF or count > 1
    assert outside(sums) == 0


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
def test_sums_of_one_point_are_the_point_and_its_negative(lanes: int, group: str) -> None:
    [point] = good_points(group, 1)
    calls = [sums_of(lanes, group, [point]) for _ in range(12)]  # of three signs each
    assert all(len(sums) in ABOUT_HALF for sums in calls)
    assert all(total in (point, -point) for sums in calls for total in sums)
    assert any(point in sums for sums in calls) and any(-point in sums for sums in calls)


@pytest.mark.parametrize(("lanes", "group"), GROUPS)
@pytest.mark.parametrize("place", [0, 8, 20])
def test_one_point_moved_by_one_of_small_order_spoils_about_half_of_the_sums(
    lanes: int, group: str, place: int
) -> None:
    for order in (order for its_group, order in SMALL_ORDERS if its_group == group):
        points = good_points(group, 21)
        points[place] += point_of_order(group, order)
        assert outside(sums_of(lanes, group, points)) in ABOUT_HALF


@pytest.mark.parametrize(("group", "order"), SMALL_ORDERS)
def test_two_points_whose_errors_cancel_in_the_plain_sum_are_found(group: str, order: int) -> None:
    points, small = good_points(group, 17), point_of_order(group, order)
    points[3], points[11] = points[3] + small, points[11] - small
    assert outside(sums_of(1, group, points)) >= ABOUT_HALF.start


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_points_that_are_all_outside_are_found(group: str) -> None:
    points = [to_arkworks(integers_of(p[:2])) for p in itertools.islice(points_on_the_curve(group), 24)]
    assert outside(points) == 24
    assert outside(sums_of(1, group, points)) > ABOUT_HALF.start
