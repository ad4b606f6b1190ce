"""Encodings of points in parameter files to rows of a form and back, millions at a time, checked.

Encoding   G1 96 bytes x, y; G2 192 bytes x.c1, x.c0, y.c1, y.c0; 48 bytes big-endian each. The first byte's
           top bits are flags: 0x80 compressed, 0x40 identity, 0x20 sign; all clear here, as in every number
           below p.
Row        2*words uint64 in Montgomery form: x, then y; c0 before c1.
Cost       about 75 ns a G1 point and core, of which the curve equation takes 27.
Twin       `groth16.encoding` decodes single points with plain integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.field import (
    from_mont,
    is_below_p,
    is_zero,
    lanes_of,
    load_at,
    mask_bits,
    sqr,
    store_at,
    to_mont,
    words_of,
)
from cuzk.kernels.field_formula import define
from cuzk.kernels.field_memory import gather_encoded, store_encoded
from cuzk.kernels.field_type import FormType
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import CURVE_B
from cuzk.kernels.modulus import FQ as FQ_MODULUS

COORDINATE_BYTES = 48
_FLAGS = 0xE0
_IDENTITY_FLAG = 0x40
_TASK = 1 << 16  # points a thread takes at a time


@dataclass(frozen=True, slots=True)
class BadPoint:
    """The first point that does not decode: its index and what is wrong with it."""

    index: int
    reason: str


def curve_b(form: Any) -> Any:
    """The constant of the curve equation y^2 = x^3 + b: 4 in G1, 4 + 4u in G2."""
    raise NotImplementedError("called from compiled code only")


@define(curve_b, FormType)
def _curve_b(form: Any) -> Any:
    base = form.of_base
    b = base.constant(CURVE_B * form.form.base.radix % FQ_MODULUS.p)
    return b if form.form.degree == 1 else form.pair(b, b)


def encoded_bytes(form: Any) -> int:
    """Bytes of an uncompressed point."""
    return 2 * int(form.degree) * COORDINATE_BYTES


def padded(count: int) -> int:
    """Rows to allocate for `count` points: eight-lane kernels write whole groups."""
    return -(-count // 8) * 8


@jit
def _decode(form, encoded, index, rows, begin, end):
    """rows[begin:end] of the points index[begin:end]: the place of the first bad one, or -1.

    The last one fills up its group.
    """
    half = encoded.shape[1] // 2
    for i in range(begin, end, lanes_of(form)):
        plain_x = gather_encoded(form, encoded, i, end - 1, 0, index)
        plain_y = gather_encoded(form, encoded, i, end - 1, half, index)
        x, y = to_mont(form, plain_x), to_mont(form, plain_y)
        store_at(form, rows, i, 0, x)
        store_at(form, rows, i, words_of(form), y)
        on_curve = is_zero(sqr(y) - x * sqr(x) - curve_b(form))
        bad = mask_bits(~(on_curve & is_below_p(plain_x) & is_below_p(plain_y)))
        if bad:
            while not bad & 1:
                bad >>= 1
                i += 1
            return i
    return -1


@jit
def _encode(form, rows, encoded):
    """The encodings of the first len(encoded) rows: whole groups, then what is left one by one."""
    half, lanes = encoded.shape[1] // 2, lanes_of(form)
    for i in range(0, len(encoded), lanes):
        x = from_mont(form, load_at(form, rows, i, 0))
        y = from_mont(form, load_at(form, rows, i, words_of(form)))
        if i + lanes <= len(encoded):
            store_encoded(form, encoded, i, i + lanes, 0, x)
            store_encoded(form, encoded, i, i + lanes, half, y)
        else:
            group = np.empty((lanes, encoded.shape[1]), np.uint8)
            store_encoded(form, group, 0, lanes, 0, x)
            store_encoded(form, group, 0, lanes, half, y)
            encoded[i:] = group[: len(encoded) - i]


def decode_points(
    device: CpuDevice,
    form: Any,
    encoded: np.ndarray[Any, Any],
    rows: np.ndarray[Any, Any],
    index: np.ndarray[Any, np.dtype[np.uint32]] | None = None,
    about_to_read: Callable[[int, int], None] = lambda first, last: None,
) -> BadPoint | None:
    """rows[k] := point index[k] of the encoded ones, checked to be on the curve; the first bad one, or None.

    encoded        (n, 96 or 192) uint8
    rows           at least as many as points, `padded`, of 2*words uint64, from `aligned_empty`
    index          (k,) which points; without it all, in order
    about_to_read  called by each thread with the least and the greatest number of those that it comes to; it
                   may raise
    Whether points lie in the subgroup is not checked here: see `subset_sums`.
    """
    index = np.arange(len(encoded), dtype=np.uint32) if index is None else index
    count = len(index)
    assert encoded.shape[1] == encoded_bytes(form) and len(rows) >= padded(count), (encoded.shape, rows.shape)

    def task(begin: int) -> int:
        end = min(begin + _TASK, count)
        about_to_read(int(index[begin:end].min()), int(index[begin:end].max()))
        return int(_decode(form, encoded, index, rows, begin, end))

    bad = [int(index[place]) for place in device.map(task, range(0, count, _TASK)) if place >= 0]
    return BadPoint(bad[0], reason_of(encoded[bad[0]])) if bad else None


def reason_of(encoded: np.ndarray[Any, Any]) -> str:
    """What is wrong with a point that was found bad."""
    flags = int(encoded[0]) & _FLAGS
    if flags == _IDENTITY_FLAG:
        return "is the identity"
    if flags:
        return "is not an uncompressed point (flag bits are set)"
    coordinates = (
        encoded[i : i + COORDINATE_BYTES].tobytes() for i in range(0, len(encoded), COORDINATE_BYTES)
    )
    if any(int.from_bytes(coordinate, "big") >= FQ_MODULUS.p for coordinate in coordinates):
        return "has a coordinate that is not below the field modulus"
    return "is not on the curve"


def encode_block(form: Any, rows: np.ndarray[Any, Any], encoded: np.ndarray[Any, Any]) -> None:
    """encoded[:n] := the points of rows[:n], none of which is the identity.

    rows     at least `padded(n)` rows, n = len(encoded)
    encoded  (n, 96 or 192) uint8
    """
    count = len(encoded)
    assert encoded.shape[1] == encoded_bytes(form) and len(rows) >= padded(count), (encoded.shape, rows.shape)
    _encode(form, rows, encoded)


def rows_of_points(form: Any, points: list[Any], rows: np.ndarray[Any, Any]) -> None:
    """rows[:n] := affine points as plain integers (`curve.Point`), for a few; the identity becomes zeros."""
    base = form.base
    for row, point in zip(rows, points, strict=False):
        for i, component in enumerate(_components(point, form.degree)):
            value = component * base.radix % base.modulus.p
            row[i * base.words : (i + 1) * base.words] = base.modulus.limbs(value, base.words, base.word_bits)


def _components(point: Any, degree: int) -> list[int]:
    if point is None:
        return [0] * (2 * degree)
    return [c for coordinate in point for c in (coordinate if degree == 2 else (coordinate,))]
