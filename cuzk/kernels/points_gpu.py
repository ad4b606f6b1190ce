"""Encodings of points in parameter files to coordinates on the GPU, millions at a time, checked.

Points on the device are two arrays, x and y: (n, words) uint32 each, Montgomery form, the identity (0, 0).
The bytes of the file go to the card as they are, a chunk at a time; one thread decodes one point. A chunk is
decoded while the next one is on its way, so that decoding takes as long as the copy.
Twin       `points`: the same encoding, checks and errors on the CPU.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import register_jitable

import cuzk.kernels.gpu_types  # noqa: F401
from cuzk.kernels.cuda_compile import cuda, pointer
from cuzk.kernels.cuda_jit import CudaKernel, cuda_jit
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.field import is_below_p, is_zero, load, mask_bits, sqr, store, to_mont
from cuzk.kernels.field_memory import load_encoded
from cuzk.kernels.gpu_ops import atomic_max
from cuzk.kernels.points import BadPoint, curve_b, encoded_bytes, reason_of
from cuzk.kernels.sum_schedule import Form

THREADS = 128
CHUNK = 1 << 18
"""Points that lie encoded on the card at once: 25 MB of G1."""
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


def decode_to_gpu(
    device: CudaDevice,
    form: Form,
    encoded: np.ndarray[Any, Any],
    *,
    order: tuple[int, int, int] = NATURAL_ORDER,
) -> GpuPoints | BadPoint:
    """The encoded points on the card, each checked to be on the curve; or the first bad one.

    encoded  (n, 96 or 192) uint8, on the host
    order    log2 of the digits in which the rows are reversed
    """
    count = len(encoded)
    assert encoded.shape[1] == encoded_bytes(form), encoded.shape
    kernel = device.load(decode_kernel(form))
    points = GpuPoints(device, form, count)
    try:
        with (
            device.allocate((min(CHUNK, count), encoded_bytes(form)), np.uint8) as chunk,
            device.allocate(1, np.uint32) as bad,
        ):
            device.clear(bad)
            for first in range(0, count, CHUNK):
                part = encoded[first : first + CHUNK]
                device.upload(part, into=chunk.rows(0, len(part)))
                blocks = -(-len(part) // THREADS)
                kernel.prepare(
                    blocks, THREADS, chunk, first, len(part), count, *order, points.x, points.y, bad
                ).run(device.stream)
            from_end = int(device.download(bad)[0])
    except BaseException:
        points.close()
        raise
    if from_end:
        points.close()
        return BadPoint(count - from_end, reason_of(encoded[count - from_end]))
    return points


def gathered(device: CudaDevice, points: GpuPoints, index: np.ndarray[Any, Any]) -> GpuPoints:
    """The points of these numbers, one after another; index (k,) uint32."""
    chosen = GpuPoints(device, points.form, len(index))
    with device.upload(index) as numbers:
        device.launch(
            gather_kernel(points.form), -(-len(index) // THREADS), THREADS,
            points.x, points.y, numbers, len(index), chosen.x, chosen.y,
        )  # fmt: skip
        device.stream.synchronise()
    return chosen
