"""Digits sorted into buckets on the GPU: the pairs of the first round, with ranks by atomic additions.

1 count    each digit adds 1 to its bucket's count; what was there before is its rank in the bucket
2 scatter  by rank to the bucket's pairs, or, the last of an odd number, to the bucket's `extras`
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import register_jitable

from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.digits import THREADS, buckets_below, code_of
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.ops import atomic_add

_I32, _U32 = pointer(types.int32), pointer(types.uint32)


@register_jitable
def bucket_of(digit, w, c, wide):  # type: ignore[no-untyped-def]
    """Of a digit that is not 0."""
    return buckets_below(w, c, wide) + np.int64(abs(digit)) - 1


@register_jitable
def place_code(code, rank, bucket, counts, offsets, codes, segs, extras):  # type: ignore[no-untyped-def]
    """To the pairs of its bucket, from offsets[bucket] on: codes, two words a pair; each pair's bucket."""
    count = counts[bucket]
    if count & 1 and rank == count - 1:
        extras[bucket] = code
    else:
        place = np.int64(offsets[bucket]) + (np.int64(rank) >> 1)
        codes[2 * place + (np.int64(rank) & 1)] = code
        if rank & 1 == 0:
            segs[place] = np.uint32(bucket)


@cuda_jit(_I32, types.uint32, types.int32, types.int32, _U32, _U32, launch_bounds=(THREADS,))
def count_digits(digits, n, c, wide, counts, ranks):  # type: ignore[no-untyped-def]
    """counts[bucket] += 1 for each digit of window w = blockIdx.y; ranks[w, i]."""
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    w = np.int64(cuda.blockIdx.y)
    if i < n:
        digit = digits[w * n + i]
        if digit != 0:
            ranks[w * n + i] = atomic_add(counts, bucket_of(digit, w, c, wide), 1)


@cuda_jit(
    _I32, types.uint32, types.int32, types.int32, _U32, _U32, _U32, _U32, _U32, _U32, launch_bounds=(THREADS,)
)
def scatter_digits(digits, n, c, wide, counts, ranks, offsets, codes, segs, extras):  # type: ignore[no-untyped-def]
    """Row i of window w = blockIdx.y to the pairs of its digit's bucket."""
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    w = np.int64(cuda.blockIdx.y)
    if i < n:
        digit = digits[w * n + i]
        if digit != 0:
            bucket, rank = bucket_of(digit, w, c, wide), ranks[w * n + i]
            place_code(code_of(i, digit), rank, bucket, counts, offsets, codes, segs, extras)
