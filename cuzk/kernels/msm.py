"""Multi-scalar multiplication: R = sum of k_i * P_i, by signed windows and buckets.

Symbols    n points; c bits a window, W = ceil(255/c) windows; digits in [-B, B], B = 2^(c-1) buckets each.
           A is a batched affine addition: 6 products and a share of an inversion (`batch_add`).
1 recode      k_i -> W digits. k > r/2 becomes k - r, so that 255 bits hold number and sign
2 sort        codes of the points by digit, a window at a time: counting sort              W*n entries
3 accumulate  S[v] = sum of +-P_i over the digits +-v of a window: `segment_sums`          W*n A
4 integrate   v = v1 * 2^h + v0: sums of S by v0 and by v1, and sums of those by the
              bits of v0 and v1. T[j] is the sum of S[v] over the v with bit j             W*2B A
5 fold        R = sum of 2^(c*w + j) * T[w][j], Horner in XYZZ                             1 us each in G1
Tasks      2-4 of one window and one part of the points; threads take tasks from a queue. A part costs W*2B A
           more, so there are parts only where windows do not divide among the threads, and in the last round.
Memory     digits: 4*W*n bytes. Each thread: codes, 4*n bytes, and rows for B sums and a chunk.
Skew       is slow only by doublings: one repeated point takes 1.6 times as long as random ones.
Reference  `msm_textbook`. Source: [BDLO12] eprint 2012/549, section 4.
"""

from __future__ import annotations

import math
import queue
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.curve import Curve, Point
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FR
from cuzk.kernels.segment_sums import Workspace, Workspaces, add_segments, identities, workspace_rows
from cuzk.kernels.xyzz import EMPTY, ROWS_READ_PAST, Codes, Form, Rows, horner

SCALAR_BITS = FR.bits  # of k or k - r, whichever is nearer to 0, with its sign
MAX_WINDOW = 17  # larger ones gain nothing below 2^24 points: buckets leave the caches
WINDOW_OVERHEAD = 1000  # additions in the time of a window's inversions and calls: bench/msm.py --windows
LAST_PARTS = 4  # parts of a window of the last round: the wait at the end is a quarter of a window's time
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
    def table(self) -> tuple[int, int]:
        """Bucket v stands at (v1, v0) of this many rows and columns: v0 < 2^h, v1 <= 2^(c-1-h)."""
        h = self.c // 2
        return (self.buckets >> h) + 1, 1 << h

    @property
    def parts(self) -> int:
        return min(range(1, self.threads + 1), key=self._additions_in_turn)

    @property
    def cost(self) -> float:
        """Additions that one thread does in turn, and what else takes as long: the time of 2-4, in A."""
        return self._additions_in_turn(self.parts)

    def _additions_in_turn(self, parts: int) -> float:
        rounds = self.windows * parts / self.threads
        if not self._can_be_cut(parts):
            rounds = math.ceil(rounds)
        return rounds * (self.n / parts + 2 * self.buckets + WINDOW_OVERHEAD)

    def _can_be_cut(self, parts: int) -> bool:
        """Whether windows of the last round may be cut finer at little cost."""
        return parts == 1 and self.n >= LAST_PARTS * 16 * self.buckets

    @property
    def tasks(self) -> list[tuple[int, int, int]]:
        """(window, part, parts): all windows; where each is one task, those of the last round are cut finer.

        Cores differ in speed from second to second: with whole windows at the end, one would wait for
        the other.
        """
        whole = self.windows - self.threads if self._can_be_cut(self.parts) else self.windows
        cut = [(w, LAST_PARTS) for w in range(max(whole, 0), self.windows)]
        counts = [(w, self.parts) for w in range(self.windows - len(cut))] + cut
        return [(window, part, parts) for window, parts in counts for part in range(parts)]

    @property
    def sums(self) -> int:
        """Rows of a thread's bucket and group sums; bucket 0 and those past B stay empty."""
        high, low = self.table
        return high * low + high + low

    @property
    def most_parts(self) -> int:
        return max(parts for _, _, parts in self.tasks)

    @property
    def result_rows(self) -> int:
        """Rows of all T[w][j], as if every window had as many parts as the one that has most."""
        return self.most_parts * self.windows * self.c

    @property
    def digits_shape(self) -> tuple[int, int]:
        return self.windows, self.n + _ROW_PAD

    def list_rows(self, form: Form) -> int:
        """Rows that hold the digits and each thread's list of codes, 32 bits each."""
        entries = math.prod(self.digits_shape) + self.threads * self.n
        return -(-entries * 4 // (2 * form.words * 8))

    def rows_behind(self, form: Form) -> int:
        """Spare rows behind the points: lists, results, then the threads' workspaces."""
        workspaces = self.threads * workspace_rows(form, self.n, self.sums)
        return self.list_rows(form) + self.result_rows + ROWS_READ_PAST + workspaces


def best_window(n: int, threads: int) -> int:
    """The c of least cost. Measured with bench/msm.py --windows."""
    return min(range(2, MAX_WINDOW + 1), key=lambda c: WindowPlan(n=n, c=c, threads=threads).cost)


def plan(device: CpuDevice, n: int, c: int | None) -> WindowPlan:
    return WindowPlan(n=n, c=c or best_window(n, device.threads), threads=device.threads)


def scratch_rows(device: CpuDevice, form: Form, n: int, *, c: int | None = None) -> int:
    """Spare rows that the point array of an MSM of n scalars must have at its end."""
    p = plan(device, n, c)
    return p.rows_behind(form)


def msm(
    device: CpuDevice,
    form: Form,
    rows: Rows,
    scalars: NDArray[np.uint64],
    *,
    index: Codes | None = None,
    c: int | None = None,
) -> Point[Any]:
    """Sum of scalars[i] * rows[i] (of rows[index[i]]): affine, plain integers, None for the identity.

    form     device.g1 or device.g2
    rows     (points + spare, 2 * words) uint64, Montgomery form, identity (0, 0);
             the last `scratch_rows` are overwritten
    scalars  (n, 4) uint64, canonical. Not constant time
    c        bits a window, 2 to MAX_WINDOW; `best_window` by default
    """
    n = len(scalars)
    if n == 0:
        return None
    p = plan(device, n, c)
    assert p.c <= MAX_WINDOW, p
    assert len(rows) >= scratch_rows(device, form, n, c=c), "no room behind the points"
    if index is None:
        index = np.arange(n, dtype=np.uint32)
    windows = Windows(device, form, rows, index, p)
    recode(device, rows, scalars, index, p, windows.digits)  # 1
    device.map(windows.run, windows.tasks)  # 2, 3, 4
    return horner(form, rows, windows.results)  # 5


def recode(
    device: CpuDevice,
    rows: Rows,
    scalars: NDArray[np.uint64],
    index: Codes,
    p: WindowPlan,
    digits: NDArray[np.int32],
) -> None:
    """digits (W, n + padding) := such that sum of 2^(c*w) * digits[w, i] = scalars[i] mod r; 0 where the
    point is (0, 0).

    Digits without carries: half a window is added to each window but the top one, in one addition of 256-bit
    numbers; then a digit is its window's bits minus that half, and the top digit is what is left, signed.
    """
    halves = sum(1 << (p.c * w + p.c - 1) for w in range(p.windows - 1))
    words = [FR.limbs(number % (1 << 256), 4, 64) for number in (halves, halves - FR.p, FR.p // 2)]
    constants = np.array(words, np.uint64)

    def recode_block(first: int) -> None:
        last = min(first + _RECODE_BLOCK, p.n)
        _recode(scalars, first, last, p.c, constants, digits)
        digits[:, first + identities(rows, index[first:last])] = 0

    device.map(recode_block, range(0, p.n, _RECODE_BLOCK))


@jit
def _recode(scalars, first, last, c, constants, digits):  # type: ignore[no-untyped-def]
    """Digits of scalars[first:last]; constants are the addend, the addend less r, and r/2 rounded down."""
    mask, half, top = np.uint64((1 << c) - 1), 1 << (c - 1), len(digits) - 1
    number = np.empty(4, np.uint64)
    for i in range(first, last):
        larger = 0
        for j in range(4):  # the most significant difference decides
            if scalars[i, j] != constants[2, j]:
                larger = 1 if scalars[i, j] > constants[2, j] else 0
        carry = np.uint64(0)
        for j in range(4):
            partial = scalars[i, j] + carry
            number[j] = partial + constants[larger, j]
            carry = np.uint64(partial < carry) | np.uint64(number[j] < partial)
        for w in range(top):
            word, shift = (c * w) >> 6, np.uint64((c * w) & 63)
            bits = number[word] >> shift
            if word < 3:
                bits |= number[word + 1] << np.uint64(1) << (np.uint64(63) - shift)
            digits[w, i] = np.int64(bits & mask) - half
        digits[top, i] = np.int64(number[3]) >> (c * top - 192)  # the top window lies in the last word


class Windows:
    """Steps 2 to 4. A task leaves its T[j] in row `part` of `results` (parts, W*c), as codes of rows.

    `digits` (W, n + padding) is to be filled before. It and the threads' lists lie in rows behind the points:
    memory that is used again costs less than fresh memory.
    """

    def __init__(self, device: CpuDevice, form: Form, rows: Rows, index: Codes, p: WindowPlan) -> None:
        self.form, self.rows, self.index, self.plan = form, rows, index, p
        self.tasks = p.tasks
        self.results = np.full((p.most_parts, p.windows * p.c), EMPTY, np.uint32)
        first_list = len(rows) - p.rows_behind(form)
        lists = rows[first_list : first_list + p.list_rows(form)].reshape(-1).view(np.uint32)
        size = math.prod(p.digits_shape)
        self.digits = lists[:size].view(np.int32).reshape(p.digits_shape)
        self._lists: queue.SimpleQueue[Codes] = queue.SimpleQueue()
        for start in range(size, size + device.threads * p.n, p.n):
            self._lists.put(lists[start : start + p.n])
        self._workspaces = Workspaces(device, form, rows, n=p.n, sums=p.sums)
        self._result_row = first_list + p.list_rows(form)

    def run(self, task: tuple[int, int, int]) -> None:
        window, part, parts = task
        p = self.plan
        points = slice(p.n * part // parts, p.n * (part + 1) // parts)
        high, low = p.table
        place = slice(window * p.c, (window + 1) * p.c)
        row = self._result_row + part * p.windows * p.c + place.start
        codes = self._lists.get()
        offsets = _sort(self.digits[window, points], self.index[points], high * low, codes)
        with self._workspaces.borrow() as workspace:
            buckets = self._accumulate(codes[: offsets[-1]], offsets, workspace)
            self._integrate(buckets, self.results[part, place], row, workspace)
        self._lists.put(codes)

    def _accumulate(self, codes: Codes, offsets: Codes, workspace: Workspace) -> Codes:
        """S as a table of codes: S[v1 * 2^h + v0] at (v1, v0)."""
        buckets = np.full(self.plan.table, EMPTY, np.uint32)
        add_segments(self.form, self.rows, codes, offsets, buckets.reshape(-1), workspace.sums_row, workspace)
        return buckets

    def _integrate(self, buckets: Codes, results: Codes, result_row: int, workspace: Workspace) -> None:
        high, low = self.plan.table
        groups = np.full(low + high, EMPTY, np.uint32)
        codes, offsets = _segments([buckets.T, buckets])
        row = workspace.sums_row + buckets.size
        add_segments(self.form, self.rows, codes, offsets, groups, row, workspace)
        codes, offsets = _segments([_by_bits(groups[:low]), _by_bits(groups[low:])])
        add_segments(self.form, self.rows, codes, offsets, results, result_row, workspace)


def _segments(tables: list[Codes]) -> tuple[Codes, Codes]:
    """Each row of each table as a segment, without what is EMPTY: (codes, offsets)."""
    lengths = np.concatenate([np.count_nonzero(table != EMPTY, axis=1) for table in tables])
    codes = np.concatenate([table[table != EMPTY] for table in tables])
    return codes, np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)


def _by_bits(groups: Codes) -> Codes:
    """Row j holds the groups whose number has bit j."""
    number = np.arange(len(groups))
    bits = np.arange((len(groups) - 1).bit_length())
    return np.where(number >> bits[:, None] & 1, groups, np.uint32(EMPTY))


@jit
def _sort(digits, index, values, codes):  # type: ignore[no-untyped-def]
    """codes := by |digit|, all below `values`; those of +-v begin at offsets[v], returned. 0 is left out."""
    offsets = np.zeros(values + 2, np.uint32)
    for i in range(len(digits)):
        offsets[abs(np.int64(digits[i])) + 2] += 1
    offsets[2] = 0
    for v in range(3, values + 2):
        offsets[v] += offsets[v - 1]
    for i in range(len(digits)):
        digit = np.int64(digits[i])
        if digit != 0:
            place = abs(digit) + 1  # here stands the next free place of this digit; at the end, where it ends
            codes[offsets[place]] = (index[i] << 1) | (digit < 0)
            offsets[place] += 1
    return offsets[: values + 1]
