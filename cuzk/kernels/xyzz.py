"""Single points in compiled code: XYZZ coordinates of one-lane forms, all cases, no inversion.

(X, Y, ZZ, ZZZ) is the affine point (X/ZZ, Y/ZZZ) with ZZ^3 = ZZZ^2; ZZ = 0 is the identity. A point in kernels is a
tuple of four elements.
Costs      `add_affine` 8M + 2S, `add` 12M + 2S, `double` 6M + 3S, plus comparisons.
Sources    [EFD] shortw, xyzz: madd-2008-s, add-2008-s, dbl-2008-s-1 (a = 0).
Twin       `curve.Curve`; tests compare every case.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba.extending import overload

from cuzk.kernels import field
from cuzk.kernels.curve import G1, G2, Curve, Point, invert, mul
from cuzk.kernels.device.cpu import aligned_empty
from cuzk.kernels.field import first_lane, from_mont, is_zero, load_at, one, sqr, store_at, to_mont, words_of, zero
from cuzk.kernels.field_type import FQ, FieldForm
from cuzk.kernels.fq2 import FQ2, Fq2Form, fq2
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FQ as FQ_MODULUS

Form: TypeAlias = FieldForm | Fq2Form
Rows: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]


def one_lane_form(form: Form) -> Form:
    """The form that single points of this group have in compiled code."""
    return FQ if isinstance(form, FieldForm) else FQ2


def curve_of(form: Form) -> Curve[Any]:
    """The group whose coordinates have this form."""
    return G1 if isinstance(form, FieldForm) else G2


@jit
def _is_zero(x):  # type: ignore[no-untyped-def]
    return field.any_lane(is_zero(x))


@jit
def identity(form):  # type: ignore[no-untyped-def]
    return one(form), one(form), zero(form), zero(form)


@jit
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


@jit
def add(p, q):  # type: ignore[no-untyped-def]
    """P + Q, both XYZZ, all cases."""
    x1, y1, zz1, zzz1 = p
    x2, y2, zz2, zzz2 = q
    if _is_zero(zz1):
        return q
    if _is_zero(zz2):
        return p
    u1, s1 = x1 * zz2, y1 * zzz2
    dx, dy = x2 * zz1 - u1, y2 * zzz1 - s1
    if _is_zero(dx):
        return double(p) if _is_zero(dy) else (x1, y1, dx, dx)
    pp = sqr(dx)
    ppp = dx * pp
    v = u1 * pp
    x3 = sqr(dy) - ppp - v - v
    return x3, dy * (v - x3) - s1 * ppp, zz1 * zz2 * pp, zzz1 * zzz2 * ppp


@jit
def add_affine(form, p, x2, y2):  # type: ignore[no-untyped-def]
    """P + (x2, y2), all cases; (0, 0) is the identity."""
    x1, y1, zz1, zzz1 = p
    if _is_zero(x2) and _is_zero(y2):
        return p
    if _is_zero(zz1):
        return x2, y2, one(form), one(form)
    dx, dy = x2 * zz1 - x1, y2 * zzz1 - y1
    if _is_zero(dx):
        return double(p) if _is_zero(dy) else (x1, y1, dx, dx)
    pp = sqr(dx)
    ppp = dx * pp
    v = x1 * pp
    x3 = sqr(dy) - ppp - v - v
    return x3, dy * (v - x3) - y1 * ppp, zz1 * pp, zzz1 * ppp


def load_single(form: Any, rows: Any, row: Any, column: Any) -> Any:
    """The element at (row, column) as one-lane element. Of an eight-lane form, eight rows are read: row .. row+7."""
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


ROWS_READ_PAST = 7  # rows that `horner` reads past the last point, of an eight-lane form


@jit
def _horner(form, single, rows, parts, positions, out):  # type: ignore[no-untyped-def]
    total = identity(single)
    for position in range(positions - 1, -1, -1):
        total = double(total)
        for part in range(parts):
            row = part * positions + position
            x, y = load_single(form, rows, row, 0), load_single(form, rows, row, words_of(form))
            total = add_affine(single, total, x, y)
    for i, coordinate in enumerate(total):
        store_at(single, out, i, 0, coordinate)


def horner(form: Form, rows: Rows, parts: int, positions: int) -> Point[Any]:
    """Sum of 2^j * rows[i * positions + j] over all parts i and positions j, in plain integers.

    rows  (parts * positions + ROWS_READ_PAST, 2 * words) points, identities allowed. Cost 1 us a row in G1.
    """
    single = one_lane_form(form)
    out = aligned_empty(4, single.words)
    _horner(form, single, rows, parts, positions, out)
    return _affine(single, out)


def _affine(single: Form, xyzz: Rows) -> Point[Any]:
    """Plain affine coordinates of one XYZZ point in Montgomery form."""
    x, y, zz, zzz = (_plain(single, row.tolist()) for row in xyzz)
    if zz in (0, (0, 0)):
        return None
    return mul(x, invert(zz)), mul(y, invert(zzz))


def _plain(single: Form, words: list[int]) -> Any:
    """The number, or the pair, that the words of one element hold in Montgomery form."""
    if isinstance(single, Fq2Form):
        half = single.base.words
        return _plain(single.base, words[:half]), _plain(single.base, words[half:])
    value = sum(word << (64 * i) for i, word in enumerate(words))
    return value * pow(single.radix, -1, FQ_MODULUS.p) % FQ_MODULUS.p
