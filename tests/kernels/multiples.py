"""Rows of points with known discrete logarithms: G, 2G, 3G, ... of either group, in any form."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from py_ecc import bls12_381 as oracle

from cuzk.kernels.batch_add import batch_add, batch_add_complete
from cuzk.kernels.curve import Point
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.modulus import FR
from cuzk.kernels.xyzz import curve_of
from tests.kernels.field_values import needs_ifma
from tests.kernels.point_values import points_to_rows, rows_to_points

GROUPS = [
    pytest.param(1, "g1", id="G1"),
    pytest.param(8, "g1", id="G1x8", marks=needs_ifma),
    pytest.param(1, "g2", id="G2"),
    pytest.param(8, "g2", id="G2x8", marks=needs_ifma),
]
_BY_TEXTBOOK = 64


def device_and_form(lanes: int, group: str, threads: int = 2) -> tuple[CpuDevice, Any]:
    device = CpuDevice(threads=threads, lanes=lanes)
    return device, getattr(device, group)


def to_oracle(point: Point[Any]) -> Any:
    """A point of plain integers as py_ecc's."""
    if point is None:
        return None
    field = oracle.FQ if isinstance(point[0], int) else oracle.FQ2
    return tuple(field(coordinate) for coordinate in point)


def rows_of(form: Any, points: Sequence[Point[Any]], spare: int) -> np.ndarray[Any, Any]:
    return points_to_rows(form, [to_oracle(point) for point in points], spare=spare)


def multiples_by_textbook(form: Any, count: int) -> list[Point[Any]]:
    curve = curve_of(form)
    points: list[Point[Any]] = []
    for _ in range(count):
        points.append(curve.add(points[-1] if points else None, curve.generator))
    return points


def multiples(form: Any, count: int, spare: int) -> np.ndarray[Any, Any]:
    """Row i is (i + 1)G: the first by textbook, then row m + i = row m-1 + row i; the last is checked."""
    first = multiples_by_textbook(form, min(count, _BY_TEXTBOOK))
    rows = rows_of(form, first, count - len(first) + 8 + spare)
    products = aligned_empty(max(count, 8), form.words).reshape(-1)
    done = len(first)
    while done < count:
        pairs = min(done, count - done) + 7 & ~7
        left, right = np.full(pairs, (done - 1) << 1, np.uint32), np.arange(0, 2 * pairs, 2, dtype=np.uint32)
        if not batch_add(form, rows, left, right, pairs, done, products):
            batch_add_complete(form, rows, left, right, pairs, done, products)
        done = min(2 * done, count)
    last = to_oracle(curve_of(form).multiply(count, curve_of(form).generator))
    assert rows_to_points(form, rows[count - 1 : count]) == [last]
    return rows


def scalar_rows(scalars: Sequence[int]) -> np.ndarray[Any, Any]:
    rows = [FR.limbs(scalar, 4, 64) for scalar in scalars]
    return np.array(rows, np.uint64).reshape(len(scalars), 4)


def random_scalars(count: int, seed: int) -> list[int]:
    """Uniform ones, mixed with the values at which recoding changes its mind."""
    rng = random.Random(seed)
    edges = [
        0,
        1,
        2,
        FR.p - 1,
        FR.p - 2,
        FR.p // 2,
        FR.p // 2 + 1,
        1 << 254,
        (1 << 254) - 1,
        1 << 15,
        1 << 16,
    ]
    return [rng.choice(edges) if rng.random() < 0.2 else rng.randrange(FR.p) for _ in range(count)]
