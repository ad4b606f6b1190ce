"""Multiples of one point by many scalars: k_i * G, for parameter generation.

Symbols    c-bit windows, W = ceil(255 / c) of them; unsigned digits: k = sum of d_w * 2^(c*w)
Table      row (w, d) = d * 2^(c*w) * G + O_w, with offsets O_w of sum zero: no row is the identity, digit 0
           needs no case, and the sums of a batch never meet the same x unless a scalar is 0.
Batch      `BATCH` scalars at once, window by window: acc += row (w, d_w), one shared inversion a window.
Cost       (W - 1) batched additions a scalar; the table takes W * 2^c of them once.
Window     `best_window` minimises additions; memory W * 2^c rows of 128 bytes in G1 (134 MB at c = 16).
Twin       `curve.multiply`.
"""

from __future__ import annotations

import queue
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.batch_add import batch_add
from cuzk.kernels.curve import Curve, Point
from cuzk.kernels.device.cpu import aligned_empty
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FR
from cuzk.kernels.points import encode_block, encoded_bytes, padded, rows_of_points
from cuzk.kernels.xyzz import curve_of

BATCH = 2048  # scalars a batch: 1024 to 4096 measured within 10 %
_MAX_WINDOW = 16  # the table of a larger one leaves the translation buffers behind
_OFFSET_TERMS = 40  # powers of two in the discrete logarithm of an offset


def best_window(count: int) -> int:
    """The window that makes the fewest additions for `count` scalars, table included."""
    return min(range(4, _MAX_WINDOW + 1), key=lambda c: windows_of(c) * ((1 << c) + count))


def windows_of(c: int) -> int:
    """Windows of c bits that a scalar has."""
    return -(-FR.bits // c)


@jit
def _table_codes(scalars, begin, count, window, bits, codes):
    """codes[k] := the table row of digit `window` of scalar begin + k; past the end, of the last scalar."""
    shift, mask = window * bits, (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    word, offset = shift // 64, np.uint64(shift % 64)
    for k in range(len(codes)):
        scalar = scalars[begin + min(k, count - 1)]
        digit = scalar[word] >> offset
        if shift % 64 + bits > 64 and word + 1 < 4:
            digit |= scalar[word + 1] << (np.uint64(64) - offset)
        codes[k] = (np.uint32(window << bits) | np.uint32(digit & mask)) << np.uint32(1)


@jit
def _multiply_batch(form, rows, scalars, begin, count, bits, windows, first_row, left, right, products):
    """rows[first_row + k] := scalars[begin + k] * G for k < len(left); False if a sum met equal x."""
    _table_codes(scalars, begin, count, 0, bits, left)
    for window in range(1, windows):
        _table_codes(scalars, begin, count, window, bits, right)
        if not batch_add(form, rows, left, right, len(left), first_row, products):
            return False
        if window == 1:
            for k in range(len(left)):
                left[k] = (first_row + k) << 1
    return True


class FixedBase:
    """The window table of a group's generator on one device, with a working set for each of its threads.

    form   coordinates of the group: `device.g1` or `device.g2`
    count  how many scalars will come: decides the window
    """

    def __init__(self, device: Any, form: Any, count: int) -> None:
        self.device, self.form = device, form
        self._bits = best_window(count)
        self._windows = windows_of(self._bits)
        table_rows, doublings = self._windows << self._bits, self._windows * self._bits
        self._work_row = padded(table_rows + doublings)
        self._rows = aligned_empty(self._work_row + device.threads * BATCH, 2 * form.words)
        self._free: queue.SimpleQueue[_WorkingSet] = queue.SimpleQueue()
        for i in range(device.threads):
            self._free.put(_WorkingSet(form, self._work_row + i * BATCH))
        self._fill_table(table_rows)

    def _fill_table(self, doubling_row: int) -> None:
        """Rows (w, 2^j + i) = (w, i) + 2^(c*w + j) G for i < 2^j, j = 0, 1, ...: windows in parallel."""
        curve = curve_of(self.form)
        doubled = doublings_of(curve, curve.generator, self._windows * self._bits)
        rows_of_points(self.form, doubled, self._rows[doubling_row:])
        for window, offset in enumerate(offsets_of(curve, doubled, self._windows)):
            rows_of_points(self.form, [offset], self._rows[window << self._bits :])
        self.device.map(lambda window: self._fill_window(window, doubling_row), range(self._windows))

    def _fill_window(self, window: int, doubling_row: int) -> None:
        work = self._free.get()
        try:
            first = window << self._bits
            for j in range(self._bits):
                work.right[:] = (doubling_row + window * self._bits + j) << 1
                for i in range(0, 1 << j, BATCH):
                    count = padded(min(BATCH, (1 << j) - i))
                    work.left[:count] = (first + np.minimum(np.arange(i, i + count), (1 << j) - 1)) << 1
                    out = first + (1 << j) + i
                    added = batch_add(self.form, self._rows, work.left, work.right, count, out, work.products)
                    assert added, (window, j, i)
        finally:
            self._free.put(work)

    def encoded(self, scalars: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """As `encode`, into a new array."""
        encoded = np.empty((len(scalars), encoded_bytes(self.form)), np.uint8)
        self.encode(scalars, encoded)
        return encoded

    def encode(self, scalars: np.ndarray[Any, Any], encoded: np.ndarray[Any, Any]) -> None:
        """encoded[i] := the uncompressed encoding of scalars[i] * G, in parallel.

        scalars  (n, 4) uint64, canonical, none of them 0
        encoded  (n, 96 or 192) uint8
        """
        assert len(scalars) == len(encoded), (len(scalars), len(encoded))
        self.device.map(
            lambda begin: self._encode_batch(scalars, encoded, begin), range(0, len(scalars), BATCH)
        )

    def _encode_batch(self, scalars: np.ndarray[Any, Any], encoded: np.ndarray[Any, Any], begin: int) -> None:
        count = min(BATCH, len(scalars) - begin)
        work = self._free.get()
        try:
            done = _multiply_batch(
                self.form, self._rows, scalars, begin, count, self._bits, self._windows,
                work.first_row, work.left, work.right, work.products,
            )  # fmt: skip
            assert done, f"a scalar among {begin}..{begin + count} is 0"
            points = self._rows[work.first_row : work.first_row + BATCH]
            encode_block(self.form, points, encoded[begin : begin + count])
        finally:
            self._free.put(work)

    def close(self) -> None:
        """Let the table go."""
        self._rows = aligned_empty(0, 2 * self.form.words)


class _WorkingSet:
    """What one thread needs for a batch: its rows in the table's array, codes, products."""

    def __init__(self, form: Any, first_row: int) -> None:
        self.first_row = first_row
        self.left, self.right = np.empty(BATCH, np.uint32), np.empty(BATCH, np.uint32)
        self.products = aligned_empty(BATCH, form.words).reshape(-1)


def doublings_of(curve: Curve[Any], point: Point[Any], count: int) -> list[Point[Any]]:
    """P, 2P, 4P, ...: `count` points."""
    doubled = [point]
    while len(doubled) < count:
        doubled.append(curve.add(doubled[-1], doubled[-1]))
    return doubled


def offsets_of(curve: Curve[Any], doubled: list[Point[Any]], count: int) -> list[Point[Any]]:
    """`count` points of sum zero: O, 2 O, 4 O, ..., and what is left, for a random O.

    O is the sum of `_OFFSET_TERMS` of the doublings of G. A sum up to one window and plus or minus the row of
    the next differ by a multiple of O: with negligible probability there are digits that make up for it.
    """
    terms = random.SystemRandom().sample(doubled, min(_OFFSET_TERMS, len(doubled)))
    offsets = doublings_of(curve, curve.sum(terms), count - 1)
    return [*offsets, curve.negate(curve.sum(offsets))]
