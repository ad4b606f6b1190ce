"""Sums of points on the GPU before there is a card: windows, passes, shapes, working memory. Plain Python.

`msm` and `selected_sum` launch what stands here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk.kernels.field_type import FieldForm, Fq2Form
from cuzk.kernels.gpu.workspace import Layout
from cuzk.kernels.modulus import FR

Form = FieldForm | Fq2Form

SCALAR_BITS = FR.bits
LEAST_WINDOWS, MOST_WINDOWS = 11, 85  # of 24 bits at most, and of 3
MOST_ROWS = 1 << 31  # given points and sums together
MSM_ROUNDS = 128  # in one pass at most, with room: 31 for the buckets, 12 for the groups
SELECTED_ROUNDS = 40
SCAN_THREADS = 256
SCAN_TILE = 8 * SCAN_THREADS
CONSTANT_WORDS = 12  # of `digits.digit_constants`
STATE_WORDS = 3  # of a sum over bits
#: Of the staged sort: bits of its first step, limits of a bin.
FIRST_BITS = 7
MAX_BIN_BITS = 14
MAX_BIN_BUCKETS = 1024
DECODED_AT_ONCE, DECODING_THREADS = 1 << 16, 6  # 6 MB of G1, of each thread of the host
LEAST_DIGITS = 1 << 19  # a window; below, the simple sort takes no longer: bench/gpu_msm.py


def points_bytes(form: Form, count: int) -> int:
    """Memory of the card that so many points take."""
    return 2 * count * form.words * 4


def decoder_bytes(form: Form, largest: int) -> int:
    """Memory of the card beside the points while encodings come in, of at most `largest` points at a time."""
    chunks = min(DECODED_AT_ONCE, largest) * decoding_lanes(largest)
    return points_bytes(form, chunks) + 4  # and where the first bad one stands


def decoding_lanes(largest: int) -> int:
    """How many threads of the host send encodings."""
    return max(1, min(DECODING_THREADS, -(-largest // DECODED_AT_ONCE)))


@dataclass(frozen=True, slots=True)
class PairShape:
    """How the kernel is cut: `threads` a block, `blocks` a multiprocessor, up to `steps` pairs a thread at
    once.

    early  the next x coordinates are asked for in the middle of a sum, not at its end: more registers, less
           waiting. Where warps are many, registers count more: without it an MSM takes 2 to 3 % less
    """

    threads: int
    blocks: int
    steps: int
    early: bool = False


def prefix_rows(shape: PairShape, multiprocessors: int, pairs: int) -> int:
    """Elements of scratch that the kernel needs for up to that many pairs, on such a card."""
    threads = shape.threads * shape.blocks * multiprocessors
    return min(threads * shape.steps, pairs + threads)


DEFAULT_SHAPES = {
    1: (PairShape(256, 2, 248), PairShape(64, 4, 16, early=True)),
    2: (PairShape(128, 2, 124), PairShape(64, 4, 16, early=True)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlan:
    """How an MSM is cut: its windows, `windows_a_pass` at a time; shapes of kernels.

    Windows hold the bits of a scalar exactly: the lowest `wide` have c bits, the others c - 1.

    shape, small_shape   of the pair additions: of a long round, and of one of less than `small_below` pairs
    tail_threads         of a block that sums a list of groups
    bin_bits             of the staged sort; None for the simple one
    """

    n: int
    windows: int
    windows_a_pass: int
    shape: PairShape
    small_shape: PairShape
    small_below: int
    tail_threads: int
    bin_bits: int | None

    def __post_init__(self) -> None:
        assert LEAST_WINDOWS <= self.windows <= MOST_WINDOWS, self.windows
        assert self.bin_bits is None or FIRST_BITS < self.bin_bits <= min(self.c - 2, MAX_BIN_BITS), self

    @property
    def c(self) -> int:
        return bits_of(self.windows)

    @property
    def wide(self) -> int:
        return SCALAR_BITS - self.windows * (self.c - 1)

    def start(self, window: int) -> int:
        """Its lowest bit."""
        return self.c * window - max(window - self.wide, 0)

    def wide_of(self, first: int, end: int) -> int:
        """How many of the windows first..end have c bits; they are the first ones."""
        return min(max(self.wide - first, 0), end - first)

    def buckets(self, first: int, end: int) -> int:
        """Of the windows first..end."""
        return (end - first + self.wide_of(first, end)) << (self.c - 2)

    @property
    def group_bits(self) -> tuple[int, int]:
        """(h, row_bits): log2 of the columns of all windows, and of the rows of a window of c bits."""
        least = self.c if self.wide == self.windows else self.c - 1
        h = (least - 1) // 2
        return h, self.c - 1 - h

    @property
    def kept_bytes(self) -> int:
        """Of the card, beside a working memory that others may share."""
        return 8 * CONSTANT_WORDS

    @property
    def passes(self) -> list[tuple[int, int]]:
        """First and end window of each."""
        step = self.windows_a_pass
        return [(first, min(first + step, self.windows)) for first in range(0, self.windows, step)]


def bits_of(windows: int) -> int:
    """Of the widest of so many windows."""
    return -(-SCALAR_BITS // windows)


def additions(n: int, windows: int) -> int:
    """Of n points: each digit goes to a bucket, and each bucket once to a row and once to a column."""
    c = bits_of(windows)
    return windows * n + ((SCALAR_BITS - windows * (c - 2)) << (c - 2))


def bin_bits(n: int, windows: int) -> int | None:
    """b for n digits a window: bins of some 4,000 to 8,000; None where this sort has no use."""
    c = bits_of(windows)
    least = max(FIRST_BITS + 1, c - 1 - (MAX_BIN_BUCKETS.bit_length() - 1))
    most = min(MAX_BIN_BITS, c - 2)
    return min(max(n.bit_length() - 13, least), most) if n >= LEAST_DIGITS and least <= most else None


def pool_rows(plan: GpuPlan) -> int:
    """Of the identity and of all sums of a pass."""
    buckets = max(plan.buckets(*windows) for windows in plan.passes)
    return 1 + plan.windows_a_pass * plan.n + 2 * buckets


def has_codes(plan: GpuPlan) -> bool:
    """Whether 31 bits name each given point and each sum."""
    return plan.n + pool_rows(plan) <= MOST_ROWS


def msm_layout(form: Form, plan: GpuPlan, multiprocessors: int) -> Layout:
    """The working memory of an MSM."""
    windows, n, b = plan.windows_a_pass, plan.n, plan.bin_bits
    buckets = max(plan.buckets(*windows_of_pass) for windows_of_pass in plan.passes)
    _, row_bits = plan.group_bits
    digits = windows * n
    pairs = max(digits // 2, buckets) + 1
    later_pairs = max(digits // 3, buckets) + 1
    rows = pool_rows(plan)
    assert has_codes(plan), plan
    parts = Layout()
    parts.add("counts", buckets)
    parts.add("extras", buckets)
    parts.add("offsets_0", buckets)
    parts.add("offsets_1", buckets)
    parts.add("partials", -(-max(buckets, windows << (b or 0)) // SCAN_TILE) + 1)
    parts.add("sizes", MSM_ROUNDS)
    parts.add("bases", MSM_ROUNDS)
    parts.add("largest", len(plan.passes))
    parts.add("bins", 1 if b is None else (2 * windows << b) + 1 + (windows << FIRST_BITS))
    parts.add("starts", 1 if b is None else (windows << b) + 1)
    parts.add("sort_scratch", 8)
    parts.add("pairs_0", pairs, np.uint64)
    parts.add("segs_0", pairs)
    parts.add("pairs_1", later_pairs, np.uint64)
    parts.add("segs_1", later_pairs)
    parts.add("bit_codes", (windows * plan.c) << row_bits)
    parts.add("bit_lengths", windows * plan.c)
    for axis in "xy":
        parts.add(f"out_{axis}", (plan.windows * plan.c, form.words))
        parts.add(f"pool_{axis}", (rows, form.words))
    scratch = max(prefix_rows(shape, multiprocessors, pairs) for shape in (plan.shape, plan.small_shape))
    parts.add("prefixes", (scratch, form.words))
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedPlan:
    """Rounds of pairs down to `lists * room` items, then lists of `room` items, one block of `tail_threads`
    each.
    """

    n: int
    shape: PairShape
    small_shape: PairShape
    small_below: int
    lists: int
    room: int
    tail_threads: int

    @property
    def kept_bytes(self) -> int:
        """As of `GpuPlan`."""
        return 4 * (self.lists + 1)

    @property
    def limit(self) -> int:
        return self.lists * self.room

    @property
    def rounds(self) -> int:
        """Enough for all bits set."""
        return max(0, (-(-self.n // self.limit) - 1).bit_length())


def selected_plan(form: Form, n: int) -> SelectedPlan:
    shape, small_shape = DEFAULT_SHAPES[form.degree]
    return SelectedPlan(
        n=n, shape=shape, small_shape=small_shape, small_below=1 << 17, lists=128, room=128, tail_threads=64
    )


def selected_layout(form: Form, plan: SelectedPlan, multiprocessors: int) -> Layout:
    """The working memory of a sum over bits."""
    parts = Layout()
    pairs = plan.n // 2 + 1
    parts.add("state", STATE_WORDS)
    parts.add("sizes", SELECTED_ROUNDS)
    parts.add("bases", SELECTED_ROUNDS)
    parts.add("pairs_0", pairs, np.uint64)
    parts.add("pairs_1", pairs // 2 + 1, np.uint64)
    parts.add("tail_codes", plan.limit)
    parts.add("tail_lengths", plan.lists)
    for axis in "xy":
        parts.add(f"list_{axis}", (plan.lists, form.words))
        parts.add(f"out_{axis}", (1, form.words))
        parts.add(f"pool_{axis}", (1 + plan.n + SELECTED_ROUNDS, form.words))
    scratch = max(prefix_rows(shape, multiprocessors, pairs) for shape in (plan.shape, plan.small_shape))
    parts.add("prefixes", (scratch, form.words))
    return parts
