"""Lists for the integration of buckets on the GPU: from bucket sums S[j] to few weighted points a window.

Symbols    bucket j of a window counts j + 1 times: sum of (j + 1) S[j] = sum of j S[j] + sum of S[j].
           j = row * 2^h + column, with h = (c - 1) // 2. Groups of a window: its columns, then its rows.
1 groups   sums over columns and over rows, as segments of equal length for `rounds_gpu`       2B additions a window
2 bits     T[t] = sum of the groups whose number has bit t, 0 <= t < c - 1; T[c - 1] = sum of all rows
           The window's sum is T[c - 1] + sum of 2^t T[t].
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from cuzk.kernels.cuda_compile import cuda, pointer
from cuzk.kernels.cuda_jit import cuda_jit

THREADS = 256
_U32, _U64 = pointer(types.uint32), pointer(types.uint64)


def group_bits(c: int) -> tuple[int, int]:
    """(log2 of the columns, log2 of the rows) of a window; both at least 1."""
    assert c >= 3, c
    h = (c - 1) // 2
    return h, c - 1 - h


def groups(c: int) -> int:
    """Columns and rows of a window."""
    column_bits, row_bits = group_bits(c)
    return (1 << column_bits) + (1 << row_bits)


@cuda_jit(
    _U32, types.int32, types.int32, types.int32, types.uint32, _U32, _U32, _U32, _U32, _U64, _U32,
    launch_bounds=(THREADS,),
)  # fmt: skip
def group_pairs(sums, windows, h, row_bits, number, sizes, bases, counts, offsets, pairs, segs):  # type: ignore[no-untyped-def]
    """The pairs of the first round over all groups, one a bucket: counts, offsets and segments with them.

    sums  codes of the bucket sums, windows * 2^(c-1)
    """
    q = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    bits = np.int64(h + row_bits)
    size = np.int64(windows) << bits
    if q == 0:
        sizes[number] = np.uint32(size)
        bases[number + 1] = np.uint32(bases[number] + size)
    if q >= size:
        return
    columns, rows = np.int64(1) << np.int64(h), np.int64(1) << np.int64(row_bits)
    window = q >> bits
    within = q - (window << bits)
    half = np.int64(1) << (bits - 1)
    if within < half:
        group = within >> np.int64(row_bits - 1)
        k = within - (group << np.int64(row_bits - 1))
        first, step, length = (2 * k << np.int64(h)) + group, columns, rows
    else:
        within -= half
        group = within >> np.int64(h - 1)
        k = within - (group << np.int64(h - 1))
        first, step, length = (group << np.int64(h)) + 2 * k, np.int64(1), columns
        group += columns
    segment = window * (columns + rows) + group
    place = (window << bits) + first
    pairs[q] = np.uint64(sums[place]) | np.uint64(sums[place + step]) << np.uint64(32)
    segs[q] = np.uint32(segment)
    if k == 0:
        counts[segment] = np.uint32(length)
        offsets[segment] = np.uint32(q)


@cuda_jit(_U32, types.int32, types.int32, types.int32, _U32, _U32, launch_bounds=(THREADS,))
def bit_lists(group_sums, windows, h, row_bits, codes, lengths):  # type: ignore[no-untyped-def]
    """List w * c + t, of 2^row_bits words of which lengths[w * c + t] are used: the groups that make T[t]."""
    q = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    c = np.int64(h + row_bits + 1)
    which = q >> np.int64(row_bits)
    if which >= windows * c:
        return
    i = q - (which << np.int64(row_bits))
    window = which // c
    t = which - window * c
    columns, rows = np.int64(1) << np.int64(h), np.int64(1) << np.int64(row_bits)
    if t == c - 1:
        first, length, group = columns, rows, i
    else:
        first, length = np.int64(0), columns >> 1
        if t >= h:
            first, length, t = columns, rows >> 1, t - np.int64(h)
        group = (i >> t << (t + 1)) + (np.int64(1) << t) + (i & ((np.int64(1) << t) - 1))
    if i < length:
        codes[q] = group_sums[window * (columns + rows) + first + group]
    if i == 0:
        lengths[which] = np.uint32(length)
