"""Single points in compiled code, of the CPU and of the GPU: XYZZ coordinates, all cases, no inversion.

(X, Y, ZZ, ZZZ) is the affine point (X/ZZ, Y/ZZZ) with ZZ^3 = ZZZ^2; ZZ = 0 is the identity. A point in
kernels is a tuple of four elements of a one-lane form. What sums by batches leaves, some hundred points, is
folded here.
Costs      `add_affine` 8M + 2S, `add` 12M + 2S, `double` 6M + 3S, plus comparisons.
Sources    [EFD] shortw, xyzz: madd-2008-s, add-2008-s, dbl-2008-s-1 (a = 0).
Twin       `curve.Curve`; tests compare every case.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numba.extending import overload, register_jitable

from cuzk.kernels import field
from cuzk.kernels.curve import G1, G2, Curve, Point, invert, mul
from cuzk.kernels.device.cpu import aligned_empty
from cuzk.kernels.field import (
    first_lane,
    fq2,
    from_mont,
    is_zero,
    load_at,
    one,
    sqr,
    store_at,
    to_mont,
    words_of,
    zero,
)
from cuzk.kernels.field_type import FQ, FQ2, FieldForm, Fq2Form
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FQ as FQ_MODULUS

Form: TypeAlias = FieldForm | Fq2Form
Rows: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Codes: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]


def one_lane_form(form: Form) -> Form:
    """The form that single points of this group have in compiled code."""
    return FQ if form.degree == 1 else FQ2


def curve_of(form: Form) -> Curve[Any]:
    """The group whose coordinates have this form."""
    return G1 if form.degree == 1 else G2


@register_jitable
def vanishes(x):  # type: ignore[no-untyped-def]
    """Whether an element of one lane is 0."""
    return field.any_lane(is_zero(x))


@register_jitable
def identity(form):  # type: ignore[no-untyped-def]
    return one(form), one(form), zero(form), zero(form)


@register_jitable
def double(p):  # type: ignore[no-untyped-def]
    """2P; the order is odd, so y = 0 does not occur, and the identity stays itself: ZZ = 0."""
    x, y, zz, zzz = p
    u = y + y
    v = sqr(u)
    w = u * v
    s = x * v
    square = sqr(x)
    m = square + square + square
    x3 = sqr(m) - s - s
    return x3, m * (s - x3) - w * y, v * zz, w * zzz


@register_jitable
def add_affine(form, p, x2, y2):  # type: ignore[no-untyped-def]
    """P + (x2, y2), all cases; (0, 0) is the identity."""
    x1, y1, zz1, zzz1 = p
    if vanishes(x2) and vanishes(y2):
        return p
    if vanishes(zz1):
        return x2, y2, one(form), one(form)
    dx, dy = x2 * zz1 - x1, y2 * zzz1 - y1
    if vanishes(dx):
        return double(p) if vanishes(dy) else (x1, y1, dx, dx)
    pp = sqr(dx)
    ppp = dx * pp
    v = x1 * pp
    x3 = sqr(dy) - ppp - v - v
    return x3, dy * (v - x3) - y1 * ppp, zz1 * pp, zzz1 * ppp


@register_jitable
def add(p, q):  # type: ignore[no-untyped-def]
    """P + Q, all cases."""
    x1, y1, zz1, zzz1 = p
    x2, y2, zz2, zzz2 = q
    if vanishes(zz2):
        return p
    if vanishes(zz1):
        return q
    left_x, left_y = x1 * zz2, y1 * zzz2
    dx, dy = x2 * zz1 - left_x, y2 * zzz1 - left_y
    if vanishes(dx):
        return double(p) if vanishes(dy) else (x1, y1, dx, dx)
    pp = sqr(dx)
    ppp = dx * pp
    v = left_x * pp
    x3 = sqr(dy) - ppp - v - v
    return x3, dy * (v - x3) - left_y * ppp, zz1 * zz2 * pp, zzz1 * zzz2 * ppp


def load_single(form: Any, rows: Any, row: Any, column: Any) -> Any:
    """The element at (row, column) as one-lane element. Of eight lanes, rows up to row + 7 are read."""
    raise NotImplementedError("called from compiled code only")


@overload(load_single)
def _load_single_fq(form, rows, row, column):  # type: ignore[no-untyped-def]
    if not field.is_field(form):
        return None
    if form.form.lanes == 1:
        return lambda form, rows, row, column: load_at(form, rows, row, column)
    return lambda form, rows, row, column: to_mont(
        FQ, first_lane(from_mont(form, load_at(form, rows, row, column)))
    )


@overload(load_single)
def _load_single_fq2(form, rows, row, column):  # type: ignore[no-untyped-def]
    if field.is_field(form):
        return None
    base = form.form.base
    words = base.words
    return lambda form, rows, row, column: fq2(
        load_single(base, rows, row, column), load_single(base, rows, row, column + words)
    )


EMPTY = 0xFFFFFFFF  # the code of no point
ROWS_READ_PAST = 7  # rows that must follow the last point of an eight-lane form


@jit
def _horner(form, single, rows, codes, out):  # type: ignore[no-untyped-def]
    parts, positions = codes.shape
    total = identity(single)
    for position in range(positions - 1, -1, -1):
        total = double(total)
        for part in range(parts):
            code = codes[part, position]
            if code != EMPTY:
                row = code >> 1
                x, y = load_single(form, rows, row, 0), load_single(form, rows, row, words_of(form))
                total = add_affine(single, total, x, zero(single) - y if code & 1 else y)
    for i, coordinate in enumerate(total):
        store_at(single, out, i, 0, coordinate)


def horner(form: Form, rows: Rows, codes: Codes) -> Point[Any]:
    """Sum of 2^j * P[i, j] in plain integers, P[i, j] the point of code codes[i, j]: `row << 1 | negative`.

    rows   (n, 2 * words) points of this form; ROWS_READ_PAST more rows must lie behind any that is named
    codes  (parts, positions) uint32, EMPTY allowed. Cost 1 us a position and point in G1, 3 us in G2.
    """
    single = one_lane_form(form)
    out = aligned_empty(4, single.words)
    _horner(form, single, rows, codes, out)
    return _affine(single, out)


def _affine(single: Form, xyzz: Rows) -> Point[Any]:
    """Plain affine coordinates of one XYZZ point in Montgomery form."""
    x, y, zz, zzz = (_plain(single, row.tolist()) for row in xyzz)
    if zz in (0, (0, 0)):
        return None
    inverse = invert(zzz)
    ratio = mul(zz, inverse)  # its square is 1/ZZ, as ZZ^3 = ZZZ^2
    return mul(x, mul(ratio, ratio)), mul(y, inverse)


def _plain(single: Form, words: list[int]) -> Any:
    """The number, or the pair, that the words of one element hold in Montgomery form."""
    if isinstance(single, Fq2Form):
        half = single.base.words
        return _plain(single.base, words[:half]), _plain(single.base, words[half:])
    value = sum(word << (64 * i) for i, word in enumerate(words))
    return value * _inverse(single.radix) % FQ_MODULUS.p


@cache
def _inverse(radix: int) -> int:
    return pow(radix, -1, FQ_MODULUS.p)
