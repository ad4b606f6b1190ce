"""Short sums of points on the GPU without inversions: a block sums one list in XYZZ coordinates, and makes
it affine.

Rounds of pairs cost an inversion each, some 50 us whatever their size. A list that a block can sum takes,
with T threads, length / T additions of 14 products in turn, log2 T more for the tree, and one inversion at
the end.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba.core import types

from cuzk.kernels.field import load, one, store, zero
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.inverse import inverse_gpu
from cuzk.kernels.gpu.jit import CudaKernel, cuda_jit
from cuzk.kernels.gpu.pair_add import load_point, with_sign
from cuzk.kernels.gpu.sum_schedule import Form
from cuzk.kernels.xyzz import add, identity, vanishes

_U32 = pointer(types.uint32)


@cache
def sum_lists_kernel(form: Form, threads: int) -> CudaKernel:
    """out[first_out + b] = sum of list b, by block b: affine, (0, 0) for the identity.

    codes    `room` words a list; lengths[b] of them are used
    """
    words = form.words
    levels = threads.bit_length() - 1
    half = threads // 2
    rows = 4 * half

    @cuda_jit(
        _U32, _U32, _U32, _U32, types.uint32, _U32, types.uint32, _U32, _U32, _U32, types.uint32,
        launch_bounds=(threads,),
    )  # fmt: skip
    def sum_lists(
        points_x, points_y, pool_x, pool_y, n_points, codes, room, lengths, out_x, out_y, first_out
    ):  # type: ignore[no-untyped-def]
        shared = cuda.shared.array((rows, words), types.uint32, alignment=16)
        t = np.int32(cuda.threadIdx.x)
        length = np.int32(lengths[cuda.blockIdx.x])
        first = np.int64(cuda.blockIdx.x) * room
        terms = np.int32((length + threads - 1) // threads)
        x, y, zz, zzz = identity(form)
        for step in range(terms + levels):
            x2, y2, zz2, zzz2 = x, y, zero(form), zero(form)
            if step < terms:
                i = np.int32(t + threads * step)
                if i < length:
                    code = codes[first + i]
                    x2 = load_point(form, points_x, pool_x, n_points, code)
                    y2 = with_sign(form, code, load_point(form, points_y, pool_y, n_points, code))
                    if not (vanishes(x2) and vanishes(y2)):
                        zz2, zzz2 = one(form), one(form)
            else:
                width = np.int32(half >> (step - terms))
                cuda.syncthreads()
                if t >= width and t < 2 * width:
                    row = np.int32(4 * (t - width))
                    store(form, shared, row, x)
                    store(form, shared, row + 1, y)
                    store(form, shared, row + 2, zz)
                    store(form, shared, row + 3, zzz)
                cuda.syncthreads()
                if t < width:
                    row = np.int32(4 * t)
                    x2, y2 = load(form, shared, row), load(form, shared, row + 1)
                    zz2, zzz2 = load(form, shared, row + 2), load(form, shared, row + 3)
            x, y, zz, zzz = add((x, y, zz, zzz), (x2, y2, zz2, zzz2))
        if t == 0:
            row = np.int64(first_out) + cuda.blockIdx.x
            inverse = inverse_gpu(form, zz * zzz)
            store(form, out_x, row, x * zzz * inverse)
            store(form, out_y, row, y * zz * inverse)

    return sum_lists
