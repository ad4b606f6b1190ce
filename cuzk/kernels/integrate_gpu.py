"""Lists for the integration of buckets on the GPU: from bucket sums S[j] to few weighted points a window.

Symbols    bucket j of a window counts j + 1 times: sum of (j + 1) S[j] = sum of j S[j] + sum of S[j].
           j = row * 2^h + column, with h = (c - 1) // 2; there are as many rows as columns, or twice as many.
1 groups   sums over the columns, in pieces of 2^h rows, and over the rows: 2 * 2^row_bits groups a window of
           2^h buckets each, so that each round adds neighbours and leaves half
           2B additions a window
2 bits     T[t] = sum of the groups whose column or row has bit t of j, 0 <= t < c - 1; T[c - 1] = sum of all
           rows The window's sum is T[c - 1] + sum of 2^t T[t].
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from cuzk.kernels.cuda_compile import cuda, pointer
from cuzk.kernels.cuda_jit import cuda_jit

THREADS = 256
_U32, _U64 = pointer(types.uint32), pointer(types.uint64)


@cuda_jit(
    _U32, types.int32, types.int32, types.int32, types.uint32, _U32, _U32, _U64, launch_bounds=(THREADS,)
)
def group_pairs(sums, windows, h, row_bits, number, sizes, bases, pairs):  # type: ignore[no-untyped-def]
    """The pairs of the first round over all groups, group after group; sizes and bases of it and the h - 1
    after it.

    sums  codes of the bucket sums, windows * 2^(c-1)
    """
    q = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    bits = np.int64(h + row_bits)
    size = np.int64(windows) << bits
    if q == 0:
        for level in range(h):
            sizes[number + level] = np.uint32(size >> np.int64(level))
            bases[number + level + 1] = np.uint32(bases[number + level] + sizes[number + level])
    if q >= size:
        return
    window = q >> bits
    within = q - (window << bits)
    group = within >> np.int64(h - 1)
    k = within - (group << np.int64(h - 1))
    row = group - (np.int64(1) << np.int64(row_bits))
    if row >= 0:
        first, step = (row << np.int64(h)) + 2 * k, np.int64(1)
    else:
        column = group >> np.int64(row_bits - h)
        piece = group - (column << np.int64(row_bits - h))
        step = np.int64(1) << np.int64(h)
        first = (piece * step + 2 * k) * step + column
    place = (window << bits) + first
    pairs[q] = np.uint64(sums[place]) | np.uint64(sums[place + step]) << np.uint64(32)


@cuda_jit(
    _U32,
    types.uint32,
    types.uint32,
    types.int32,
    types.int32,
    types.int32,
    _U32,
    _U32,
    launch_bounds=(THREADS,),
)
def bit_lists(bases, number, n_points, windows, h, row_bits, codes, lengths):  # type: ignore[no-untyped-def]
    """List w * c + t, of 2^row_bits words of which lengths[w * c + t] are used: the groups that make T[t].

    number  of the last round of groups, whose results are the groups' sums
    """
    q = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    c = np.int64(h + row_bits + 1)
    which = q >> np.int64(row_bits)
    if which >= windows * c:
        return
    i = q - (which << np.int64(row_bits))
    window = which // c
    t = which - window * c
    rows = np.int64(1) << np.int64(row_bits)
    length, group = rows >> 1, np.int64(0)
    if t == c - 1:
        length, group = rows, rows + i
    else:
        if t >= h:
            group, t = rows, t - np.int64(h)
        else:
            t = t + np.int64(row_bits - h)
        group += (i >> t << (t + 1)) + (np.int64(1) << t) + (i & ((np.int64(1) << t) - 1))
    if i < length:
        codes[q] = np.uint32(np.int64(n_points) + np.int64(bases[number]) + 2 * rows * window + group)
    if i == 0:
        lengths[which] = np.uint32(length)
