"""From the variables of a circuit to the scalars of a section of points, on a GPU: bits and full scalars."""

from __future__ import annotations

import numpy as np
from numba.core import types

from cuzk.kernels.field import FR_GPU, load, store, zero
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.points import row_of

THREADS = 128
MARKS_A_WORD = 32
_FIRST_IN_BYTE = 7  # the bit of the first of eight marks
_U8, _U32 = pointer(types.uint8), pointer(types.uint32)


@cuda_jit(_U8, _U32, _U32, types.int64, _U8, launch_bounds=(THREADS,))
def take_marked(source, marks, starts, words, out):  # type: ignore[no-untyped-def]
    """The bytes of `source` that have a mark, one after another in `out`.

    marks   (words,) four bytes of marks each, of which the highest bit comes first
    starts  (words,) the place of the first marked byte of each word
    """
    w = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if w < words:
        mark, place = marks[w], np.int64(starts[w])
        for k in range(MARKS_A_WORD):
            if (mark >> np.uint32(k ^ _FIRST_IN_BYTE)) & np.uint32(1):
                out[place] = source[MARKS_A_WORD * w + k]
                place += 1


@cuda_jit(_U32, _U32, types.int64, _U32, launch_bounds=(THREADS,))
def take_numbers(values, index, count, out):  # type: ignore[no-untyped-def]
    """out[i] = values[index[i]], i < count."""
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if i < count:
        store(FR_GPU, out, i, load(FR_GPU, values, index[i]))


@cuda_jit(_U32, types.int64, types.int64, types.int64, types.int64, types.int64, types.int64, _U32,
          launch_bounds=(THREADS,))  # fmt: skip
def take_reversed(values, first, count, room, low, middle, high, out):  # type: ignore[no-untyped-def]
    """out[i] = values[row_of(first + i)], i < count; 0 for count <= i < room."""
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if i < count:
        store(FR_GPU, out, i, load(FR_GPU, values, row_of(first + i, low, middle, high)))
    elif i < room:
        store(FR_GPU, out, i, zero(FR_GPU))
