"""Lists for the integration of buckets on the GPU: from bucket sums S[j] to few weighted points a window.

Symbols    bucket j of a window counts j + 1 times: sum of (j + 1) S[j] = sum of j S[j] + sum of S[j].
           j = row * 2^h + column, with one h for all windows: 2^row_bits rows where there are c bits, half as
           many where there are c - 1, never fewer than 2^h.
1 groups   sums over the columns, in pieces of 2^h rows, and over the rows: two groups for each row, of 2^h
           buckets each, so that each round adds neighbours and leaves half
           2B additions a window
2 bits     T[t] = sum of the groups whose column or row has bit t of j; T[c - 1] = sum of all rows.
           The window's sum is T[c - 1] + sum of 2^t T[t].
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.digits import bits_of_window, buckets_below, window_of
from cuzk.kernels.gpu.jit import cuda_jit

THREADS = 256
_U32, _U64 = pointer(types.uint32), pointer(types.uint64)


@cuda_jit(
    _U32, types.int32, types.int32, types.int32, types.int32, types.uint32, _U32, _U32, _U64,
    launch_bounds=(THREADS,),
)  # fmt: skip
def group_pairs(sums, windows, c, wide, h, number, sizes, bases, pairs):  # type: ignore[no-untyped-def]
    """The pairs of the first round over all groups, group after group; sizes and bases of it and the h - 1
    after it.

    sums  codes of the bucket sums, as many as pairs
    """
    q = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    size = buckets_below(windows, c, wide)
    if q == 0:
        for level in range(h):
            sizes[number + level] = np.uint32(size >> np.int64(level))
            bases[number + level + 1] = np.uint32(bases[number + level] + sizes[number + level])
    if q >= size:
        return
    window = window_of(q, c, wide)
    start = buckets_below(window, c, wide)
    row_bits = np.int64(bits_of_window(window, c, wide) - 1 - h)
    within = q - start
    group = within >> np.int64(h - 1)
    k = within - (group << np.int64(h - 1))
    row = group - (np.int64(1) << row_bits)
    if row >= 0:
        first, step = (row << np.int64(h)) + 2 * k, np.int64(1)
    else:
        column = group >> (row_bits - h)
        piece = group - (column << (row_bits - h))
        step = np.int64(1) << np.int64(h)
        first = (piece * step + 2 * k) * step + column
    place = start + first
    pairs[q] = np.uint64(sums[place]) | np.uint64(sums[place + step]) << np.uint64(32)


@cuda_jit(
    _U32, types.uint32, types.uint32, types.int32, types.int32, types.int32, types.int32, types.int32, _U32,
    _U32, launch_bounds=(THREADS,),
)  # fmt: skip
def bit_lists(bases, number, n_points, windows, c, wide, h, room_bits, codes, lengths):  # type: ignore[no-untyped-def]
    """List w * c + t, of 2^room_bits words of which lengths[w * c + t] are used: the groups that make T[t].
    A window of c - 1 bits has no T[c - 2].

    number  of the last round of groups, whose results are the groups' sums
    """
    q = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    which = q >> np.int64(room_bits)
    if which >= windows * np.int64(c):
        return
    i = q - (which << np.int64(room_bits))
    window = which // np.int64(c)
    t = which - window * c
    bits = np.int64(bits_of_window(window, c, wide))
    row_bits = bits - 1 - h
    rows = np.int64(1) << row_bits
    length, group = rows >> 1, np.int64(0)
    if t == c - 1:
        length, group = rows, rows + i
    elif t == bits - 1:
        length = np.int64(0)
    else:
        if t >= h:
            group, t = rows, t - np.int64(h)
        else:
            t = t + row_bits - h
        group += (i >> t << (t + 1)) + (np.int64(1) << t) + (i & ((np.int64(1) << t) - 1))
    if i < length:
        before = buckets_below(window, c, wide) >> np.int64(h - 1)  # groups of the windows before
        codes[q] = np.uint32(np.int64(n_points) + np.int64(bases[number]) + before + group)
    if i == 0:
        lengths[which] = np.uint32(length)
