"""Encodings of points in parameter files to coordinates on the GPU, millions at a time, checked.

Points on the device are two arrays, x and y: (n, words) uint32 each, Montgomery form, the identity (0, 0).
The bytes of the file go to the card as they are, a chunk at a time, from the file into pinned memory and on;
one thread of the card decodes one point. Chunks are decoded while others are on their way, so that decoding
takes as long as the copy.
Twin       `kernels.points`: the same encoding, checks and errors on the CPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import register_jitable

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray, HostArray, PinnedArray
from cuzk.kernels.device.cuda_stream import Stream
from cuzk.kernels.device.keeper import Keeper
from cuzk.kernels.field import is_below_p, is_zero, load, mask_bits, sqr, store, to_mont
from cuzk.kernels.field_memory import load_encoded
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import CudaKernel, cuda_jit
from cuzk.kernels.gpu.ops import atomic_max
from cuzk.kernels.gpu.sum_schedule import DECODED_AT_ONCE, Form, decoding_lanes
from cuzk.kernels.points import BadPoint, curve_b, encoded_bytes, reason_of

THREADS = 128
NATURAL_ORDER = (32, 0, 0)

_U8, _U32 = pointer(types.uint8), pointer(types.uint32)


class GpuPoints:
    """Decoded points on the card."""

    def __init__(self, device: CudaDevice, form: Form, count: int) -> None:
        self.form, self.count = form, count
        self.x = device.allocate((count, form.words), np.uint32)
        self.y = device.allocate((count, form.words), np.uint32)

    def close(self) -> None:
        self.x.close()
        self.y.close()


@register_jitable
def row_of(i, low, middle, high):  # type: ignore[no-untyped-def]
    """i with its three digits of so many bits in reverse: where a transform leaves coefficient i."""
    row = (i & ((np.int64(1) << low) - 1)) << (middle + high)
    row |= (i >> low & ((np.int64(1) << middle) - 1)) << high
    return row | i >> (low + middle)


@cache
def decode_kernel(form: Form) -> CudaKernel:
    """Points first..first+count of a section of `total`, decoded into their rows.

    encoded           their bytes, from the first of them on
    low, middle, high the order of the rows, see `row_of`
    bad               one word: how many points there are from the first bad one on, 0 if all are good
    """
    half = encoded_bytes(form) // 2

    @cuda_jit(
        _U8, types.int64, types.int64, types.int64, types.int64, types.int64, types.int64, _U32, _U32, _U32,
        launch_bounds=(THREADS,),
    )  # fmt: skip
    def decode_points(encoded, first, count, total, low, middle, high, x, y, bad):  # type: ignore[no-untyped-def]
        i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if i < count:
            plain_x = load_encoded(form, encoded, i, i, 0)
            plain_y = load_encoded(form, encoded, i, i, half)
            x_mont, y_mont = to_mont(form, plain_x), to_mont(form, plain_y)
            on_curve = is_zero(sqr(y_mont) - x_mont * sqr(x_mont) - curve_b(form))
            if mask_bits(~(on_curve & is_below_p(plain_x) & is_below_p(plain_y))):
                atomic_max(bad, 0, np.uint32(total - first - i))
            row = row_of(first + i, low, middle, high)
            store(form, x, row, x_mont)
            store(form, y, row, y_mont)

    return decode_points


@cache
def gather_kernel(form: Form) -> CudaKernel:
    """Row j of out = row index[j] of points, j < count."""

    @cuda_jit(_U32, _U32, _U32, types.int64, _U32, _U32, launch_bounds=(THREADS,))
    def gather_points(points_x, points_y, index, count, out_x, out_y):  # type: ignore[no-untyped-def]
        j = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if j < count:
            store(form, out_x, j, load(form, points_x, index[j]))
            store(form, out_y, j, load(form, points_y, index[j]))

    return gather_points


#: read(first, out): out := the encodings of the points from number `first` on, (k, 96 or 192) uint8.
ReadEncoded = Callable[[int, HostArray], None]
#: advance(count): so many more points are done.
Advance = Callable[[int], None]
_Lane = tuple[PinnedArray, DeviceArray, Stream]


class PointDecoder(Keeper):
    """Sends encoded points to a card and decodes them there, chunk by chunk, on a few threads of the host.

    One thread reads some 4 GB/s out of the page cache, the bus takes ten times that.

    largest  points of a section at most: small ones need no whole chunks
    """

    def __init__(self, device: CudaDevice, form: Form, largest: int) -> None:
        super().__init__()
        self._device, self._form = device, form
        self._kernel = device.load(decode_kernel(form))
        shape = (max(1, min(DECODED_AT_ONCE, largest)), encoded_bytes(form))
        try:
            self._bad = self.keep(device.allocate(1, np.uint32))
            self._lanes: list[_Lane] = []
            for _ in range(decoding_lanes(largest)):
                pinned = self.keep(device.pinned(shape, np.uint8))
                encoded = self.keep(device.allocate(shape, np.uint8))
                self._lanes.append((pinned, encoded, self.keep(device.new_stream())))
        except BaseException:
            self.close()
            raise

    def decode(
        self,
        count: int,
        read: ReadEncoded,
        points: GpuPoints,
        order: tuple[int, int, int] = NATURAL_ORDER,
        advance: Advance = lambda count: None,
    ) -> BadPoint | None:
        """Rows of `points` := so many points, each checked to be on the curve; the first bad one.

        count    at most `largest`; complete on return
        read     is called by several threads
        order    log2 of the digits in which the rows are reversed
        advance  is told as chunks are done, one after another, in the calling thread
        What `read` or `advance` raises ends it: nothing is under way any more when it is raised again.
        """
        device, stream = self._device, self._lanes[0][2]  # the device's own may be busy with sums
        device.clear(self._bad, stream=stream)
        stream.synchronise()
        firsts = deque(range(0, count, DECODED_AT_ONCE))  # of the chunks that nobody has begun
        decoded: SimpleQueue[int] = SimpleQueue()  # points of chunks that are done

        def told() -> None:
            while not decoded.empty():
                advance(decoded.get())

        def work(lane: _Lane, after_each: Callable[[], None]) -> None:
            try:
                while (first := _next_of(firsts)) is not None:
                    decoded.put(self._decode_chunk(lane, first, count, read, points, order))
                    after_each()
            except BaseException:
                firsts.clear()
                raise

        mine, *others = self._lanes
        with ThreadPoolExecutor(len(self._lanes)) as pool:
            working = [pool.submit(work, lane, lambda: None) for lane in others]
            work(mine, told)
            for lane in working:
                lane.result()
        told()
        from_end = int(device.download(self._bad, stream=stream)[0])
        if not from_end:
            return None
        encoded = np.empty((1, encoded_bytes(self._form)), np.uint8)
        read(count - from_end, encoded)
        return BadPoint(count - from_end, reason_of(encoded[0]))

    def _decode_chunk(
        self,
        lane: _Lane,
        first: int,
        count: int,
        read: ReadEncoded,
        points: GpuPoints,
        order: tuple[int, int, int],
    ) -> int:
        """Some points from number `first` of `count` on; how many."""
        pinned, encoded, stream = lane
        at_once = min(DECODED_AT_ONCE, count - first)
        read(first, pinned.array[:at_once])
        self._device.upload(pinned, into=encoded, stream=stream)
        self._kernel.prepare(
            -(-at_once // THREADS), THREADS,
            encoded, first, at_once, count, *order, points.x, points.y, self._bad,
        ).run(stream)  # fmt: skip
        stream.synchronise()
        return at_once


def _next_of(firsts: deque[int]) -> int | None:
    """Taken out, by one of several threads; None when all are."""
    try:
        return firsts.popleft()
    except IndexError:
        return None


def _copy_rows(source: HostArray, first: int, out: HostArray) -> None:
    np.copyto(out, source[first : first + len(out)])


def decode_to_gpu(
    device: CudaDevice,
    form: Form,
    encoded: np.ndarray[Any, Any],
    *,
    order: tuple[int, int, int] = NATURAL_ORDER,
) -> GpuPoints | BadPoint:
    """The encoded points on the card, or the first bad one: see `PointDecoder`."""
    points, count = GpuPoints(device, form, len(encoded)), len(encoded)
    try:
        with PointDecoder(device, form, count) as decoder:
            bad = decoder.decode(count, partial(_copy_rows, encoded), points, order)
    except BaseException:
        points.close()
        raise
    if bad is not None:
        points.close()
        return bad
    return points


def gathered(
    device: CudaDevice, points: GpuPoints, index: np.ndarray[Any, Any], scratch: DeviceArray
) -> GpuPoints:
    """The points of these numbers, one after another; index (k,) uint32, scratch as in `gather_into`."""
    chosen = GpuPoints(device, points.form, len(index))
    try:
        gather_into(device, points, index, chosen, 0, scratch)
    except BaseException:
        chosen.close()
        raise
    return chosen


def gather_into(
    device: CudaDevice,
    points: GpuPoints,
    index: np.ndarray[Any, Any],
    chosen: GpuPoints,
    first: int,
    scratch: DeviceArray,
) -> None:
    """Rows first, first + 1, ... of `chosen` := the points of these numbers.

    scratch  at least 4 bytes a number, which what was submitted before may still use
    """
    count = len(index)
    if not count:
        return
    x, y = (axis.rows(first, first + count) for axis in (chosen.x, chosen.y))
    numbers = device.upload(index, into=scratch.carve(count, np.uint32))
    device.launch(
        gather_kernel(points.form), -(-count // THREADS), THREADS,
        points.x, points.y, numbers, count, x, y,
    )  # fmt: skip
    device.stream.synchronise()
