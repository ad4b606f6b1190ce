"""Multiples of one point by many scalars on the GPU: those of `kernels.fixed_base`, in few launches.

Symbols    as there: c bits a window, W windows, offsets O_w of sum zero
Table      row d*W + w = d * 2^(c*w) * G + O_w; behind its W * 2^c rows the doublings 2^(c*w + j) * G, W*c
           in all. Rows of digits 2^j to 2^(j+1) - 1 are those of smaller digits plus doubling j of their
           window: one launch a level, c of them.
Batch      up to `most` scalars at once: one kernel makes the pairs of all rounds, W - 1 rounds of
           `pair_add` add them up in place, one kernel encodes the sums as the file wants them, or puts
           them where a prover on the card will find them.
Cost       16 windows: 15 additions a scalar, 5 ns in G1; the copy to the host takes 2 ns.
Twin       `kernels.fixed_base` on the CPU, `curve.multiply`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import register_jitable
from numpy.typing import NDArray

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_launch import Launch
from cuzk.kernels.device.cuda_memory import DeviceArray, PinnedArray
from cuzk.kernels.field import any_lane, from_mont, is_zero, load, store
from cuzk.kernels.field_memory import store_encoded
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.fixed_base import best_window, doublings_of, offsets_of, windows_of
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import CudaKernel, cuda_jit
from cuzk.kernels.gpu.pair_add import pair_add_kernel
from cuzk.kernels.gpu.points import GpuPoints, row_of
from cuzk.kernels.gpu.sum_schedule import DEFAULT_SHAPES, Form, prefix_rows
from cuzk.kernels.gpu.workspace import Layout
from cuzk.kernels.points import encoded_bytes, rows_of_points
from cuzk.kernels.xyzz import curve_of

THREADS = 128
_U8, _U32, _U64 = pointer(types.uint8), pointer(types.uint32), pointer(types.uint64)


@register_jitable
def _pair(first, second):  # type: ignore[no-untyped-def]
    return np.uint64(first) | np.uint64(second) << np.uint64(32)


@cuda_jit(types.int64, types.int64, types.int64, types.int64, _U64, launch_bounds=(THREADS,))
def table_pairs(windows, bits, level, first_doubling, pairs):  # type: ignore[no-untyped-def]
    """Pair q < W * 2^level: table row q with the doubling of its window at this level."""
    q = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if q < windows << level:
        pairs[q] = _pair(q, first_doubling + (q % windows) * bits + level)


@cuda_jit(
    _U64, types.int64, types.int64, types.int64, types.int64, types.int64, _U64, launch_bounds=(THREADS,)
)
def digit_pairs(scalars, count, windows, bits, first_sum, most, pairs):  # type: ignore[no-untyped-def]
    """Pairs of round r from r*most on: the sum so far, slot first_sum + i, with the row of digit r + 1.

    In round 0 the sum so far is the row of digit 0.
    """
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if i < count:
        sum_so_far = _digit(scalars, i, np.int64(0), bits) * windows
        for window in range(1, windows):
            row = _digit(scalars, i, window, bits) * windows + window
            pairs[(window - 1) * most + i] = _pair(sum_so_far, row)
            sum_so_far = first_sum + i


@register_jitable
def _digit(scalars, i, window, bits):  # type: ignore[no-untyped-def]
    """Digit `window` of scalar i: bits window*bits to window*bits + bits - 1."""
    place = window * bits
    word, shift = place >> 6, place & 63
    value = scalars[4 * i + word] >> np.uint64(shift)
    if shift + bits > 64 and word < 3:
        value |= scalars[4 * i + word + 1] << np.uint64(64 - shift)
    return np.int64(value & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1)))


@cache
def encode_kernel(form: Form) -> CudaKernel:
    """encoded[i] := point i as a parameter file has it, i < count; identities[0] := 1 if one is (0, 0)."""
    half = encoded_bytes(form) // 2

    @cuda_jit(_U32, _U32, types.int64, _U8, _U32, launch_bounds=(THREADS,))
    def encode_points(x, y, count, encoded, identities):  # type: ignore[no-untyped-def]
        i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if i < count:
            y_mont = load(form, y, i)
            if any_lane(is_zero(y_mont)):  # no point of odd order has y = 0
                identities[0] = np.uint32(1)
            store_encoded(form, encoded, i, i, 0, from_mont(form, load(form, x, i)))
            store_encoded(form, encoded, i, i, half, from_mont(form, y_mont))

    return encode_points


@cache
def place_kernel(form: Form) -> CudaKernel:
    """Point i < count to row `row_of(first + i)` of the points; identities[0] := 1 if one is (0, 0)."""

    @cuda_jit(
        _U32, _U32, types.int64, types.int64, types.int64, types.int64, types.int64, _U32, _U32, _U32,
        launch_bounds=(THREADS,),
    )  # fmt: skip
    def place_points(x, y, first, count, low, middle, high, points_x, points_y, identities):  # type: ignore[no-untyped-def]
        i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if i < count:
            row = row_of(first + i, low, middle, high)
            y_mont = load(form, y, i)
            if any_lane(is_zero(y_mont)):
                identities[0] = np.uint32(1)
            store(form, points_x, row, load(form, x, i))
            store(form, points_y, row, y_mont)

    return place_points


def kernels_of_multiples() -> list[CudaKernel]:
    """All that `GpuFixedBase` launches, longest to compile first."""
    forms = (FQ2_GPU, FQ_GPU)
    additions = [pair_add_kernel(form, DEFAULT_SHAPES[form.degree][0]) for form in forms]
    ends = [kernel(form) for kernel in (encode_kernel, place_kernel) for form in forms]
    return [*additions, *ends, table_pairs, digit_pairs]


def fixed_base_layout(form: Form, count: int, most: int, multiprocessors: int) -> Layout:
    """All of the card's memory that a `GpuFixedBase` takes, on a card of so many multiprocessors."""
    bits = best_window(count)
    windows = windows_of(bits)
    last_level, shape = windows << (bits - 1), DEFAULT_SHAPES[form.degree][0]
    parts = Layout()
    for axis in "xy":
        parts.add(f"table_{axis}", ((windows << bits) + windows * bits, form.words))
        parts.add(f"sums_{axis}", (most, form.words))
    parts.add("scalars", (most, 4), np.uint64)
    parts.add("pairs", max((windows - 1) * most, last_level), np.uint64)
    parts.add("sizes", bits + 1)  # of each level of the table; the last is that of a batch
    parts.add("bases", bits + 1)
    parts.add("prefixes", (prefix_rows(shape, multiprocessors, max(most, last_level)), form.words))
    parts.add("encoded", (most, encoded_bytes(form)), np.uint8)
    parts.add("identities", 1)
    return parts


class GpuFixedBase:
    """The window table of a group's generator on a card, with what a batch needs. `close` frees it.

    form   coordinates of the group: FQ_GPU or FQ2_GPU
    count  how many scalars will come: decides the window
    most   that come at a time

    bits   of a window
    stream of its own: the device's may be busy with sums, or recording them, while the next points are made
    """

    def __init__(self, device: CudaDevice, form: Form, count: int, most: int) -> None:
        self.device, self.form = device, form
        self.most = most
        self.bits = best_window(count)
        self._windows = windows_of(self.bits)
        self._first_doubling = self._windows << self.bits
        self._points = self._first_doubling + self._windows * self.bits
        self._shape = DEFAULT_SHAPES[form.degree][0]
        layout = fixed_base_layout(form, count, most, device.card.multiprocessors)
        self._memory = device.allocate(layout.nbytes, np.uint8)
        self._at = layout.carve(self._memory)
        self.stream = device.new_stream()
        self._pinned: list[PinnedArray] = []
        #: Called with the name of each stage of a batch as it has been submitted; for measurements.
        self.mark: Callable[[str], None] = lambda stage: None
        try:
            for _ in range(2):
                self._pinned.append(device.pinned((most, encoded_bytes(form)), np.uint8))
            self._rounds = [self._round(window) for window in range(self._windows - 1)]
            self._fill_table()
        except BaseException:
            self.close()
            raise

    def _adder(self, pool: str, n_points: int, pairs: DeviceArray, number: int) -> Launch:
        """A launch of additions whose pool is `table` or `sums`; see `pair_add_kernel`."""
        at, shape = self._at, self._shape
        return self.device.load(pair_add_kernel(self.form, shape)).prepare(
            shape.blocks * self.device.card.multiprocessors, shape.threads,
            at["table_x"], at["table_y"], at[f"{pool}_x"], at[f"{pool}_y"], n_points,
            pairs, at["sizes"], at["bases"], number, at["prefixes"],
        )  # fmt: skip

    def _round(self, number: int) -> Launch:
        """Sum i += a row of the table, in place: a pair reads no other sum, and writes its own last."""
        pairs = self._at["pairs"].rows(number * self.most, (number + 1) * self.most)
        return self._adder("sums", self._points, pairs, self.bits)

    def _fill_table(self) -> None:
        curve, at, device = curve_of(self.form), self._at, self.device
        doublings = doublings_of(curve, curve.generator, self._windows * self.bits)
        self._upload_points(doublings, self._first_doubling)
        self._upload_points(offsets_of(curve, doublings, self._windows), 0)
        level_rows = [self._windows << level for level in range(self.bits)]
        for name in ("sizes", "bases"):
            device.upload(np.array([*level_rows, 0], np.uint32), into=at[name], stream=self.stream)
        for level, rows in enumerate(level_rows):
            device.launch(
                table_pairs, -(-rows // THREADS), THREADS,
                self._windows, self.bits, level, self._first_doubling, at["pairs"],
                stream=self.stream,
            )  # fmt: skip
            self._adder("table", 0, at["pairs"], level).run(self.stream)
        self.stream.synchronise()

    def _upload_points(self, points: list[Any], first: int) -> None:
        rows = np.empty((len(points), 2 * self.form.words), np.uint32)
        rows_of_points(self.form, points, rows)
        for name, axis in zip(("table_x", "table_y"), np.hsplit(rows, 2), strict=True):
            into = self._at[name].rows(first, first + len(points))
            self.device.upload(np.ascontiguousarray(axis), into=into, stream=self.stream)

    def encoded(self, scalars: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Uncompressed encodings of scalars[i] * G, in pinned memory; they hold until the next call but one.

        scalars  (n, 4) uint64, canonical, none of them 0, n at most `most`
        """
        count, at, device = len(scalars), self._at, self.device
        self._add_up(scalars)
        device.launch(
            encode_kernel(self.form), -(-count // THREADS), THREADS,
            at["sums_x"], at["sums_y"], count, at["encoded"], at["identities"],
            stream=self.stream,
        )  # fmt: skip
        self.mark("encode")
        self._pinned.reverse()
        device.download(at["encoded"], into=self._pinned[0], stream=self.stream)
        self.mark("download")
        self._require_no_identity(count)  # complete on return, and with it the copy before
        return self._pinned[0].array[:count]

    def put(
        self, scalars: NDArray[np.uint64], points: GpuPoints, first: int, order: tuple[int, int, int]
    ) -> None:
        """Points first, first + 1, ... := scalars[i] * G, in the rows that `points.row_of` gives them.

        scalars  as for `encoded`
        order    log2 of the digits in which the rows are reversed
        """
        count, at = len(scalars), self._at
        self._add_up(scalars)
        self.device.launch(
            place_kernel(self.form), -(-count // THREADS), THREADS,
            at["sums_x"], at["sums_y"], first, count, *order, points.x, points.y, at["identities"],
            stream=self.stream,
        )  # fmt: skip
        self._require_no_identity(count)

    def _add_up(self, scalars: NDArray[np.uint64]) -> None:
        """Submit the sums of all rows of the table that the scalars name."""
        count, at, device = len(scalars), self._at, self.device
        assert count <= self.most, (count, self.most)
        sizes = at["sizes"].rows(self.bits, self.bits + 1)
        device.upload(np.ascontiguousarray(scalars), into=at["scalars"].rows(0, count), stream=self.stream)
        device.upload(np.array([count], np.uint32), into=sizes, stream=self.stream)
        device.clear(at["identities"], stream=self.stream)
        self.mark("upload")
        device.launch(
            digit_pairs, -(-count // THREADS), THREADS,
            at["scalars"], count, self._windows, self.bits, self._points, self.most, at["pairs"],
            stream=self.stream,
        )  # fmt: skip
        self.mark("digits")
        for additions in self._rounds:
            additions.run(self.stream)
        self.mark("additions")

    def _require_no_identity(self, count: int) -> None:
        identities = self.device.download(self._at["identities"], stream=self.stream)
        assert not identities[0], f"one of {count} scalars is 0"

    def close(self) -> None:
        """Give back the memory; encodings that were handed out end with it."""
        self._memory.close()
        for pinned in self._pinned:
            pinned.close()
        self.stream.close()
