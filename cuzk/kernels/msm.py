"""Multi-scalar multiplication: R = sum of k_i * P_i, by signed windows and buckets.

Symbols    n points; c bits a window, W = ceil(255 / c) windows, digits in [-B, B], B = 2^(c-1) buckets a window.
           A is a batched affine addition: 6 products and a share of an inversion (`batch_add`).
1 recode      k_i -> W digits. k > r/2 becomes k - r, so that 255 bits hold sign and number
2 sort        by digit, window by window: counting sort of 4-byte codes                     W*n entries
3 accumulate  S[v] = sum of +-P_i over the digits +-v of a window: `segment_sums`           W*n A
4 integrate   sum of v * S[v], v = v1 * 2^h + v0: sums by v0 and by v1, then sums of those
              by the bits of v0 and v1: T[j] = sum of S[v] over the v with bit j            W*2B A
5 fold        R = sum of 2^(c*w + j) * T[w][j], Horner in XYZZ                              W*c of them, 1 us each
Tasks      2-4 for one window and one part of the points are a task; threads take tasks from a queue. A part
           more costs W*2B A, so there are parts only where windows do not divide among the threads.
Memory     digits 2*W*n bytes; a thread: codes 4*n/parts, rows for B + 2*2^(c/2) sums and a chunk.
Reference  `msm_textbook`. Sources: [BDLO12] eprint 2012/549, section 4; signed digits by one addition: folklore.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.curve import Curve, Point
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FR
from cuzk.kernels.segment_sums import Workspace, Workspaces, add_segments, is_identity, workspace_rows
from cuzk.kernels.xyzz import EMPTY, ROWS_READ_PAST, Codes, Form, Rows, horner

SCALAR_BITS = FR.bits  # of k or k - r, whichever is nearer to 0, with its sign
MAX_WINDOW = 16  # digits are 16 bits wide; larger windows gain nothing below 2^23 points
WINDOW_OVERHEAD = 1000  # additions in the time of a window's inversions, two a tree level: bench/msm.py --windows
_RECODE_BLOCK = 1 << 15
_ROW_PAD = 64  # windows of a power of two of digits would fall into one set of the cache


def msm_textbook(curve: Curve[Any], points: Sequence[Point[Any]], scalars: Sequence[int]) -> Point[Any]:
    return curve.sum(curve.multiply(k, p) for k, p in zip(scalars, points, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """How n scalars are cut: `c` bits a window, the points into `parts` for the sake of `threads`."""

    n: int
    c: int
    threads: int

    @property
    def windows(self) -> int:
        return -(-SCALAR_BITS // self.c)

    @property
    def buckets(self) -> int:
        return 1 << (self.c - 1)

    @property
    def low_bits(self) -> int:
        """h: bucket v is v1 * 2^h + v0."""
        return self.c // 2

    @property
    def groups(self) -> int:
        """Sums by v0 in [0, 2^h), then by v1 in [0, 2^(c-1-h)]."""
        return (1 << self.low_bits) + (1 << (self.c - 1 - self.low_bits)) + 1

    @property
    def parts(self) -> int:
        return min(range(1, self.threads + 1), key=self._additions_in_turn)

    @property
    def cost(self) -> int:
        """Additions that one thread does in turn, and what else takes as long: the time of 2-4, in A."""
        return self._additions_in_turn(self.parts)

    def _additions_in_turn(self, parts: int) -> int:
        rounds = -(-self.windows * parts // self.threads)
        return rounds * (-(-self.n // parts) + 2 * self.buckets + WINDOW_OVERHEAD)

    @property
    def sums(self) -> int:
        """Rows of a thread's bucket and group sums; bucket 0 is never used."""
        return self.buckets + 1 + self.groups

    @property
    def result_rows(self) -> int:
        """Rows of all T[w][j]."""
        return self.parts * self.windows * self.c


def best_window(n: int, threads: int) -> int:
    """The c of least cost. Measured with bench/msm.py --windows."""
    return min(range(2, MAX_WINDOW + 1), key=lambda c: WindowPlan(n=n, c=c, threads=threads).cost)


def plan(device: CpuDevice, n: int, c: int | None) -> WindowPlan:
    return WindowPlan(n=n, c=c or best_window(n, device.threads), threads=device.threads)


def scratch_rows(device: CpuDevice, form: Form, n: int, *, c: int | None = None) -> int:
    """Spare rows that the point array of an MSM of up to n scalars must have at its end."""
    p = plan(device, n, c)
    return p.result_rows + ROWS_READ_PAST + device.threads * workspace_rows(form, n, p.sums)


def msm(
    device: CpuDevice,
    form: Form,
    rows: Rows,
    scalars: NDArray[np.uint64],
    *,
    index: Codes | None = None,
    c: int | None = None,
) -> Point[Any]:
    """Sum of scalars[i] * rows[i], or of scalars[i] * rows[index[i]]: affine, plain integers, None for the identity.

    form     device.g1 or device.g2
    rows     (points + spare, 2 * words) uint64, Montgomery form, identity (0, 0); the last `scratch_rows` of it
             are overwritten
    scalars  (n, 4) uint64, canonical. Time does not depend on their values, but for structure: not constant time
    c        bits a window, at most MAX_WINDOW; `best_window` by default
    """
    n = len(scalars)
    if n == 0:
        return None
    p = plan(device, n, c)
    assert p.c <= MAX_WINDOW, p
    assert len(rows) >= scratch_rows(device, form, n, c=c), "no room behind the points"
    if index is None:
        index = np.arange(n, dtype=np.uint32)
    digits = recode(device, rows, scalars, index, p)                      # 1
    windows = _Windows(device, form, rows, index, digits, p)
    device.map(windows.run, windows.tasks)                                # 2, 3, 4
    return horner(form, rows, windows.results)                            # 5


def recode(
    device: CpuDevice, rows: Rows, scalars: NDArray[np.uint64], index: Codes, p: WindowPlan
) -> NDArray[np.int16]:
    """(W, n) digits: sum of 2^(c*w) * digits[w, i] is scalars[i] or scalars[i] - r; 0 where the point is (0, 0).

    Digits without carries: half a window is added to each window but the top one, in one addition of 256-bit
    numbers; then a digit is its window's bits minus that half, and the top digit is what is left, signed.
    """
    half_windows = sum(1 << (p.c * w + p.c - 1) for w in range(p.windows - 1))
    words = [
        FR.limbs(number % (1 << 256), 4, 64) for number in (half_windows, half_windows - FR.p, FR.p // 2)
    ]
    constants = np.array(words, np.uint64)
    digits = np.empty((p.windows, p.n + _ROW_PAD), np.int16)

    def block(first: int) -> None:
        _recode(rows, scalars, index, first, min(first + _RECODE_BLOCK, p.n), p.c, constants, digits)

    device.map(block, range(0, p.n, _RECODE_BLOCK))
    return digits


@jit
def _recode(rows, scalars, index, first, last, c, constants, digits):  # type: ignore[no-untyped-def]
    mask, half = np.uint64((1 << c) - 1), 1 << (c - 1)
    top = len(digits) - 1
    number = np.empty(5, np.uint64)
    for i in range(first, last):
        if is_identity(rows, index[i]):
            for w in range(top + 1):
                digits[w, i] = 0
            continue
        _shift(scalars[i], constants, number)
        for w in range(top):
            digits[w, i] = np.int64(_bits_from(number, c * w) & mask) - half
        digits[top, i] = np.int64(_bits_from(number, c * top))


@jit
def _shift(scalar, constants, number):  # type: ignore[no-untyped-def]
    """number := scalar + half_windows, less r if the scalar is above r/2; 256 bits, sign-extended to 320."""
    larger = False
    for j in range(4):  # the most significant difference decides
        if scalar[j] != constants[2, j]:
            larger = scalar[j] > constants[2, j]
    addend = constants[1 if larger else 0]
    carry = np.uint64(0)
    for j in range(4):
        partial = scalar[j] + carry
        number[j] = partial + addend[j]
        carry = np.uint64(partial < carry) | np.uint64(number[j] < partial)
    number[4] = np.uint64(np.int64(number[3]) >> 63)


@jit
def _bits_from(number, position):  # type: ignore[no-untyped-def]
    """The 64 bits of a sign-extended number that begin at `position`."""
    word, shift = position >> 6, np.uint64(position & 63)
    low = number[word] >> shift
    return low | (number[word + 1] << np.uint64(1) << (np.uint64(63) - shift))


class _Windows:
    """Steps 2 to 4: task (part, window) leaves T[window][j] of its part in `results` (parts, W*c), as codes."""

    def __init__(
        self, device: CpuDevice, form: Form, rows: Rows, index: Codes, digits: NDArray[np.int16], p: WindowPlan
    ) -> None:
        self.form, self.rows, self.index, self.digits, self.plan = form, rows, index, digits, p
        self.tasks = [(part, window) for part in range(p.parts) for window in range(p.windows)]
        self.results = np.full((p.parts, p.windows * p.c), EMPTY, np.uint32)
        self._workspaces = Workspaces(device, form, rows, n=p.n, sums=p.sums)
        self._result_row = self._workspaces.first_row - ROWS_READ_PAST - p.result_rows

    def run(self, task: tuple[int, int]) -> None:
        part, window = task
        p, (first, last) = self.plan, self._part(part)
        codes, offsets = _sort(self.digits[window, first:last], self.index[first:last], p.buckets)
        if len(codes) == 0:
            return
        place = slice(window * p.c, (window + 1) * p.c)
        row = self._result_row + part * p.windows * p.c + place.start
        with self._workspaces.borrow() as workspace:
            self._integrate(self._accumulate(codes, offsets, workspace), self.results[part, place], row, workspace)

    def _part(self, part: int) -> tuple[int, int]:
        n, parts = self.plan.n, self.plan.parts
        return n * part // parts, n * (part + 1) // parts

    def _accumulate(self, codes: Codes, offsets: Codes, workspace: Workspace) -> Codes:
        buckets = np.full(self.plan.buckets + 1, EMPTY, np.uint32)
        add_segments(self.form, self.rows, codes, offsets, buckets, workspace.sums_row, workspace)
        return buckets

    def _integrate(self, buckets: Codes, results: Codes, result_row: int, workspace: Workspace) -> None:
        p = self.plan
        groups = np.full(p.groups, EMPTY, np.uint32)
        codes, offsets = _group(buckets, p.low_bits, p.groups)
        add_segments(self.form, self.rows, codes, offsets, groups, workspace.sums_row + len(buckets), workspace)
        codes, offsets = _split_by_bits(groups, p.low_bits, p.c)
        add_segments(self.form, self.rows, codes, offsets, results, result_row, workspace)


@jit
def _sort(digits, index, buckets):  # type: ignore[no-untyped-def]
    """Codes of the points by |digit|, and offsets (B + 2,): those of digit +-v begin at offsets[v]. No digit 0."""
    offsets = np.zeros(buckets + 3, np.uint32)
    for i in range(len(digits)):
        offsets[abs(np.int64(digits[i])) + 2] += 1
    offsets[2] = 0
    for v in range(3, buckets + 3):
        offsets[v] += offsets[v - 1]
    codes = np.empty(offsets[buckets + 2], np.uint32)
    for i in range(len(digits)):
        digit = np.int64(digits[i])
        if digit != 0:
            place = abs(digit) + 1  # here stands the next free place of this digit; at the end, where it ends
            codes[offsets[place]] = (index[i] << 1) | (digit < 0)
            offsets[place] += 1
    return codes, offsets[: buckets + 2]


@jit
def _group(buckets, low_bits, groups):  # type: ignore[no-untyped-def]
    """Segments of the bucket sums: v0 = 0, 1, ... and then v1 = 0, 1, ... (0 weighs nothing and stays empty)."""
    low_count = 1 << low_bits
    codes, offsets = np.empty(2 * len(buckets), np.uint32), np.empty(groups + 1, np.uint32)
    count = 0
    for group in range(groups):
        offsets[group] = count
        if group == 0 or group == low_count:
            continue
        is_low = group < low_count
        start = group if is_low else (group - low_count) << low_bits
        stop = len(buckets) if is_low else min(start + low_count, len(buckets))
        for v in range(start, stop, low_count if is_low else 1):
            if buckets[v] != EMPTY:
                codes[count] = buckets[v]
                count += 1
    offsets[groups] = count
    return codes, offsets


@jit
def _split_by_bits(groups, low_bits, c):  # type: ignore[no-untyped-def]
    """Segments of the group sums: for bit j of v, the groups whose v0 (or v1) has it."""
    low_count = 1 << low_bits
    codes, offsets = np.empty(c * len(groups), np.uint32), np.empty(c + 1, np.uint32)
    count = 0
    for j in range(c):
        offsets[j] = count
        start, stop, bit = (0, low_count, j) if j < low_bits else (low_count, len(groups), j - low_bits)
        for group in range(start, stop):
            if (group - start) >> bit & 1 and groups[group] != EMPTY:
                codes[count] = groups[group]
                count += 1
    offsets[c] = count
    return codes, offsets
