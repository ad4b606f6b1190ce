"""Points as rows of each group form, and back; py_ecc holds the group law on the test's side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from py_ecc import bls12_381 as oracle

from cuzk.kernels.device.cpu import aligned_empty
from cuzk.kernels.field import FQ, FQ8
from cuzk.kernels.field_type import FQ2, FQ2_8
from tests.kernels.field_values import needs_ifma, to_ints, to_rows

GROUPS = [
    pytest.param("G1", FQ, id="G1"),
    pytest.param("G1", FQ8, id="G1x8", marks=needs_ifma),
    pytest.param("G2", FQ2, id="G2"),
    pytest.param("G2", FQ2_8, id="G2x8", marks=needs_ifma),
]
"""Arguments `group, form` of a test that runs for every form of both groups."""
Point = Any  # py_ecc's affine point: a pair of field elements, None for the identity


def generator(group: str) -> Point:
    return oracle.G1 if group == "G1" else oracle.G2


def _components(form: Any, point: Point) -> list[int]:
    degree = form.degree
    if point is None:
        return [0] * (2 * degree)
    if degree == 1:
        return [int(c) for c in point]
    return [int(c) for coordinate in point for c in coordinate.coeffs]


def points_to_rows(form: Any, points: list[Point], spare: int = 0) -> np.ndarray[Any, Any]:
    """Rows of the points, Montgomery form, followed by `spare` uninitialised rows."""
    base = form.base
    rows = aligned_empty(len(points) + spare, 2 * form.words)
    for row, point in zip(rows, points, strict=False):
        values = [c * base.radix % base.modulus.p for c in _components(form, point)]
        row[:] = to_rows(base, values).reshape(-1)
    return rows


def rows_to_points(form: Any, rows: np.ndarray[Any, Any]) -> list[Point]:
    base = form.base
    p, r_inverse = base.modulus.p, pow(base.radix, -1, base.modulus.p)
    points = []
    for row in rows:
        values = [v * r_inverse % p for v in to_ints(base, row.reshape(-1, base.words))]
        if not any(values):
            points.append(None)
        elif len(values) == 2:
            points.append((oracle.FQ(values[0]), oracle.FQ(values[1])))
        else:
            points.append((oracle.FQ2(values[:2]), oracle.FQ2(values[2:])))
    return points


def encode_point(point: Point) -> bytes:
    """The uncompressed encoding of a point that is not the identity."""
    x, y = point
    if isinstance(x, oracle.FQ):
        return int(x).to_bytes(48, "big") + int(y).to_bytes(48, "big")
    return b"".join(int(c).to_bytes(48, "big") for z in (x, y) for c in reversed(z.coeffs))
