"""Point encodings of parameter files to rows of a group form and back, millions at a time, checked on the way.

Encoding   G1 96 bytes x, y; G2 192 bytes x.c1, x.c0, y.c1, y.c0; 48 bytes big-endian each. The first byte's top bits
           are flags: 0x80 compressed, 0x40 identity, 0x20 sign; all clear here.
Row        2*words uint64 in Montgomery form: x, then y; c0 before c1.
Cost       about 60 ns a G1 point and core, of which the curve equation takes 27.
Twin       `groth16.encoding` decodes single points with plain integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import overload

from cuzk.kernels.field import (
    canonical,
    fq2,
    from_mont,
    is_zero,
    lanes_of,
    load_at,
    mask_bits,
    one,
    sqr,
    store_at,
    to_mont,
    words_of,
)
from cuzk.kernels.field_type import FormType
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FQ as FQ_MODULUS

COORDINATE_BYTES = 48
_WORDS = 6
_FLAGS = 0xE0
_IDENTITY_FLAG = 0x40
_BLOCK = 1024  # points a step: their rows stay in the second-level cache between reading and checking
_TASK = 1 << 16  # points a thread takes at a time

_MODULUS = np.array(FQ_MODULUS.limbs(FQ_MODULUS.p, _WORDS, 64), np.uint64)
_LOW_52 = (1 << 52) - 1

GOOD, IDENTITY, FLAGGED, TOO_LARGE, OFF_CURVE = range(5)
REASONS = {
    IDENTITY: "is the identity",
    FLAGGED: "is not an uncompressed point (flag bits are set)",
    TOO_LARGE: "has a coordinate that is not below the field modulus",
    OFF_CURVE: "is not on the curve",
}


@dataclass(frozen=True, slots=True)
class BadPoint:
    """The first point that does not decode: its index and what is wrong with it."""

    index: int
    reason: str


def curve_b(form: Any) -> Any:
    """The constant of the curve equation y^2 = x^3 + b: 4 in G1, 4 + 4u in G2."""
    raise NotImplementedError("called from compiled code only")


@overload(curve_b)
def _overload_curve_b(form):  # type: ignore[no-untyped-def]
    if not isinstance(form, FormType):
        return None
    if form.form.degree == 2:
        base = form.form.base
        return lambda form: fq2(curve_b(base), curve_b(base))
    return lambda form: canonical(one(form) + one(form) + one(form) + one(form))


def encoded_bytes(form: Any) -> int:
    """Bytes of an uncompressed point."""
    return 2 * form.degree * COORDINATE_BYTES


def padded(count: int) -> int:
    """Rows to allocate for `count` points: eight-lane kernels write whole groups."""
    return -(-count // 8) * 8


def _component_order(form: Any) -> np.ndarray[Any, Any]:
    """Byte offset in the encoding of each component of a row."""
    order = [0, 1] if form.degree == 1 else [1, 0, 3, 2]
    return np.array(order, np.int64) * COORDINATE_BYTES


@jit
def _read_component(encoded, point, offset, words):  # type: ignore[no-untyped-def]
    """words := the 48 big-endian bytes at `offset`; False if they are not below p."""
    for i in range(_WORDS):
        first, word = offset + 8 * (_WORDS - 1 - i), np.uint64(0)
        for k in range(8):
            word = word << np.uint64(8) | np.uint64(encoded[point, first + k])
        words[i] = word
    for i in range(_WORDS - 1, -1, -1):
        if words[i] != _MODULUS[i]:
            return words[i] < _MODULUS[i]
    return False


@jit
def _write_component(words, encoded, point, offset):  # type: ignore[no-untyped-def]
    for i in range(_WORDS):
        first, word = offset + 8 * (_WORDS - 1 - i), words[i]
        for k in range(8):
            encoded[point, first + k] = np.uint8(word >> np.uint64(56 - 8 * k) & np.uint64(0xFF))


@jit
def _words_to_row(words, rows, row, column, row_words):  # type: ignore[no-untyped-def]
    """Plain 64-bit words into a row: as they are, or as eight limbs of 52 bits."""
    if row_words == _WORDS:
        for i in range(_WORDS):
            rows[row, column + i] = words[i]
        return
    for i in range(row_words):
        first, shift = 52 * i // 64, 52 * i % 64
        limb = words[first] >> np.uint64(shift)
        if shift > 12 and first + 1 < _WORDS:
            limb |= words[first + 1] << np.uint64(64 - shift)
        rows[row, column + i] = limb & np.uint64(_LOW_52)


@jit
def _row_to_words(rows, row, column, row_words, words):  # type: ignore[no-untyped-def]
    if row_words == _WORDS:
        for i in range(_WORDS):
            words[i] = rows[row, column + i]
        return
    for i in range(_WORDS):
        words[i] = np.uint64(0)
    for i in range(row_words):
        first, shift = 52 * i // 64, 52 * i % 64
        words[first] |= rows[row, column + i] << np.uint64(shift)
        if shift > 12 and first + 1 < _WORDS:
            words[first + 1] |= rows[row, column + i] >> np.uint64(64 - shift)


@jit
def _read_point(encoded, point, offsets, rows, base_words, words):  # type: ignore[no-untyped-def]
    flags = encoded[point, 0] & _FLAGS
    if flags:
        return IDENTITY if flags == _IDENTITY_FLAG else FLAGGED
    for j in range(len(offsets)):
        if not _read_component(encoded, point, offsets[j], words):
            return TOO_LARGE
        _words_to_row(words, rows, point, j * base_words, base_words)
    return GOOD


@jit
def _group_to_mont(form, rows, row):  # type: ignore[no-untyped-def]
    """One group of plain rows to Montgomery form; the lanes that are off the curve as bits."""
    x = to_mont(form, load_at(form, rows, row, 0))
    y = to_mont(form, load_at(form, rows, row, words_of(form)))
    store_at(form, rows, row, 0, x)
    store_at(form, rows, row, words_of(form), y)
    return mask_bits(~is_zero(sqr(y) - x * sqr(x) - curve_b(form)))


@jit
def _decode(form, encoded, offsets, rows, begin, end):  # type: ignore[no-untyped-def]
    """Points begin..end to rows; (index, code) of the first bad one, (-1, GOOD) if there is none.

    `begin` is a multiple of 8; the last group is filled up with copies of its last point.
    """
    lanes, base_words = lanes_of(form), 2 * words_of(form) // len(offsets)
    words = np.empty(_WORDS, np.uint64)
    for block in range(begin, end, _BLOCK):
        block_end = min(block + _BLOCK, end)
        for point in range(block, block_end):
            code = _read_point(encoded, point, offsets, rows, base_words, words)
            if code != GOOD:
                return point, code
        group_end = block + (block_end - block + lanes - 1) // lanes * lanes
        for row in range(block_end, group_end):
            rows[row] = rows[block_end - 1]
        for row in range(block, group_end, lanes):
            off_curve = _group_to_mont(form, rows, row)
            if off_curve:
                while not off_curve & 1:
                    off_curve >>= 1
                    row += 1
                return row, OFF_CURVE
    return -1, GOOD


@jit
def _encode(form, rows, offsets, encoded, begin, end):  # type: ignore[no-untyped-def]
    """Rows begin..end to their encodings; the rows' whole last group is read."""
    lanes, base_words = lanes_of(form), 2 * words_of(form) // len(offsets)
    words = np.empty(_WORDS, np.uint64)
    for row in range(begin, end, lanes):
        x = from_mont(form, load_at(form, rows, row, 0))
        y = from_mont(form, load_at(form, rows, row, words_of(form)))
        store_at(form, rows, row, 0, x)
        store_at(form, rows, row, words_of(form), y)
        for point in range(row, min(row + lanes, end)):
            for j in range(len(offsets)):
                _row_to_words(rows, point, j * base_words, base_words, words)
                _write_component(words, encoded, point, offsets[j])


def decode_points(
    device: Any, form: Any, encoded: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
) -> BadPoint | None:
    """rows[:n] := the n encoded points, each checked to be on the curve; the first bad one, or None.

    encoded  (n, 96 or 192) uint8
    rows     at least `padded(n)` rows of 2*words uint64, from `aligned_empty`
    Whether points lie in the subgroup is not checked here: see `subgroup`.
    """
    count, offsets = len(encoded), _component_order(form)
    assert encoded.shape[1] == encoded_bytes(form) and len(rows) >= padded(count), (encoded.shape, rows.shape)

    def task(begin: int) -> tuple[int, int]:
        index, code = _decode(form, encoded, offsets, rows, begin, min(begin + _TASK, count))
        return index, code

    bad = [(index, code) for index, code in device.map(task, range(0, count, _TASK)) if code != GOOD]
    return BadPoint(bad[0][0], REASONS[bad[0][1]]) if bad else None


def encode_block(form: Any, rows: np.ndarray[Any, Any], encoded: np.ndarray[Any, Any]) -> None:
    """encoded[:n] := the points of rows[:n], none of which is the identity. The rows lose their Montgomery form.

    rows     at least `padded(n)` rows, n = len(encoded)
    encoded  (n, 96 or 192) uint8
    """
    count = len(encoded)
    assert encoded.shape[1] == encoded_bytes(form) and len(rows) >= padded(count), (encoded.shape, rows.shape)
    _encode(form, rows, _component_order(form), encoded, 0, count)


def rows_of_points(form: Any, points: list[Any], rows: np.ndarray[Any, Any]) -> None:
    """rows[:n] := affine points given as plain integers (`curve.Point`); the identity becomes zeros. For few points."""
    base = form.base
    for row, point in zip(rows, points, strict=False):
        for i, component in enumerate(_components(point, form.degree)):
            value = component * base.radix % base.modulus.p
            row[i * base.words : (i + 1) * base.words] = base.modulus.limbs(value, base.words, base.word_bits)


def _components(point: Any, degree: int) -> list[int]:
    if point is None:
        return [0] * (2 * degree)
    return [c for coordinate in point for c in (coordinate if degree == 2 else (coordinate,))]
