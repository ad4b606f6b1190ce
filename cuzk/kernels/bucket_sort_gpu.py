"""Digits of scalars, sorted into buckets on the GPU: the pairs of the first round, with ranks by atomic
additions.

Symbols    window w of c bits, digits in [-B, B] with B = 2^(c-1); bucket w * B + |digit| - 1, w counted from
           the first window of this pass. Digits without carries, as in `msm.recode`; they are made again
           where needed, not kept.
1 count    each digit adds 1 to its bucket's count; what was there before is its rank in the bucket
2 scatter  by rank to the bucket's pairs, or, the last of an odd number, to the bucket's `extras`
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import register_jitable
from numpy.typing import NDArray

from cuzk.kernels.cuda_compile import cuda, pointer
from cuzk.kernels.cuda_jit import cuda_jit
from cuzk.kernels.gpu_ops import atomic_add
from cuzk.kernels.modulus import FR
from cuzk.kernels.pair_add_gpu import SIGN

SORT_THREADS = 256
_U32, _U64 = pointer(types.uint32), pointer(types.uint64)


def digit_constants(c: int, windows: int) -> NDArray[np.uint64]:
    """(12,): half a window for each window but the top one; that less r; r/2 rounded down."""
    halves = sum(1 << (c * w + c - 1) for w in range(windows - 1))
    words = [FR.limbs(number % (1 << 256), 4, 64) for number in (halves, halves - FR.p, FR.p // 2)]
    return np.array(words, np.uint64).reshape(-1)


@register_jitable
def raised_scalar(scalars, i, constants, number):  # type: ignore[no-untyped-def]
    """number := scalar i, less r if that is nearer to 0, plus half a window for each window but the top
    one.
    """
    first = 0
    for j in range(4):  # the most significant difference decides
        if scalars[4 * i + j] != constants[8 + j]:
            first = 4 if scalars[4 * i + j] > constants[8 + j] else 0
    carry = np.uint64(0)
    for j in range(4):
        partial = scalars[4 * i + j] + carry
        total = partial + constants[first + j]
        carry = np.uint64(partial < carry) | np.uint64(total < partial)
        number[j] = total
    number[4] = np.uint64(0)


@register_jitable
def digit_of(number, w, c, windows):  # type: ignore[no-untyped-def]
    """Digit w of a raised scalar."""
    place = np.int32(c * w)
    if w == windows - 1:
        return np.int32(
            np.int64(number[3]) >> np.int64(place - 192)
        )  # it lies in the last word, with its sign
    word, shift = place >> 6, np.uint64(place & 63)
    bits = number[word] >> shift | number[word + 1] << np.uint64(1) << (np.uint64(63) - shift)
    mask = (np.uint64(1) << np.uint64(c)) - np.uint64(1)
    return np.int32(np.int64(bits & mask) - (np.int64(1) << np.int64(c - 1)))


@cuda_jit(
    _U64, types.uint32, _U64, types.int32, types.int32, types.int32, types.int32, _U32, _U32,
    launch_bounds=(SORT_THREADS,),
)  # fmt: skip
def count_digits(scalars, n, constants, c, windows, first_window, end_window, counts, ranks):  # type: ignore[no-untyped-def]
    """counts[bucket] += 1 for each digit of windows first_window to end_window; ranks[w - first_window,
    i].
    """
    i = np.int64(cuda.blockIdx.x) * SORT_THREADS + cuda.threadIdx.x
    if i >= n:
        return
    number = cuda.local.array(5, types.uint64)
    raised_scalar(scalars, i, constants, number)
    for w in range(first_window, end_window):
        digit = digit_of(number, w, c, windows)
        if digit != 0:
            row = np.int64(w - first_window)
            bucket = (row << np.int64(c - 1)) + np.int64(abs(digit)) - 1
            ranks[row * n + i] = atomic_add(counts, bucket, 1)


@cuda_jit(
    _U64, types.uint32, _U64, types.int32, types.int32, types.int32, types.int32,
    _U32, _U32, _U32, _U32, _U32, _U32,
    launch_bounds=(SORT_THREADS,),
)  # fmt: skip
def scatter_digits(
    scalars, n, constants, c, windows, first_window, end_window, counts, ranks, offsets, codes, segs, extras
):  # type: ignore[no-untyped-def]
    """The pairs of each bucket from offsets[bucket] on: codes (two words a pair), and the bucket of each
    pair.
    """
    i = np.int64(cuda.blockIdx.x) * SORT_THREADS + cuda.threadIdx.x
    if i >= n:
        return
    number = cuda.local.array(5, types.uint64)
    raised_scalar(scalars, i, constants, number)
    for w in range(first_window, end_window):
        digit = digit_of(number, w, c, windows)
        if digit != 0:
            row = np.int64(w - first_window)
            bucket = (row << np.int64(c - 1)) + np.int64(abs(digit)) - 1
            rank, count = ranks[row * n + i], counts[bucket]
            code = np.uint32(i)
            if digit < 0:
                code = np.uint32(code | np.uint32(SIGN))
            if count & 1 and rank == count - 1:
                extras[bucket] = code
            else:
                place = np.int64(offsets[bucket]) + (np.int64(rank) >> 1)
                codes[2 * place + (np.int64(rank) & 1)] = code
                if rank & 1 == 0:
                    segs[place] = np.uint32(bucket)
