"""Digits of scalars, sorted into buckets on the GPU through shared memory: for many digits, where
`bucket_sort_gpu` would wait for scattered stores.

Symbols    j = |digit| - 1 names a bucket of its window; its low b bits name a bin: so a narrow top window
           fills all bins. An entry is a code and its j, in 64 bits.
1 digits   of all windows of the pass, 4 bytes each
2 bins     a histogram in shared memory, and its scan: where each bin begins
3 spread   entries to bins in two steps, 2^7 ways and then 2^(b-7): a tile is put in order in shared memory
           and written in runs
4 count    a block a bin: counts of its buckets
5 scatter  a block a bin: its codes in order in shared memory, then the pairs of each bucket by a warp; a bin
           that is too large for that, of skewed digits, goes straight to memory
Cost       50 bytes of memory traffic a digit.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import register_jitable

from cuzk.kernels.bucket_sort_gpu import digit_of, raised_scalar
from cuzk.kernels.cuda_compile import cuda, pointer
from cuzk.kernels.cuda_jit import cuda_jit
from cuzk.kernels.gpu_ops import atomic_add
from cuzk.kernels.pair_add_gpu import SIGN, WARP
from cuzk.kernels.rounds_gpu import scan_before
from cuzk.kernels.sum_schedule import FIRST_BITS, MAX_BIN_BITS, MAX_BIN_BUCKETS, SCAN_THREADS

THREADS = SCAN_THREADS
TILE = 4096
PER_THREAD = TILE // THREADS
CAPACITY = 9216  # codes that a block puts in order in shared memory
HISTOGRAM_TILE = 1 << 16
SPREAD_ROWS = 8  # blocks that share a region of the second step
_FIRST_WAYS = 1 << FIRST_BITS
_MAX_BINS = 1 << MAX_BIN_BITS
_I32, _U32, _U64 = pointer(types.int32), pointer(types.uint32), pointer(types.uint64)


@cuda_jit(
    _U64,
    types.uint32,
    _U64,
    types.int32,
    types.int32,
    types.int32,
    types.int32,
    _I32,
    launch_bounds=(THREADS,),
)
def make_digits(scalars, n, constants, c, windows, first_window, end_window, digits):  # type: ignore[no-untyped-def]
    """digits[w - first_window, i]."""
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if i >= n:
        return
    number = cuda.local.array(5, types.uint64)
    raised_scalar(scalars, i, constants, number)
    for w in range(first_window, end_window):
        digits[np.int64(w - first_window) * n + i] = digit_of(number, w, c, windows)


@cuda_jit(_I32, types.uint32, types.int32, _U32, launch_bounds=(THREADS,))
def count_bins(digits, n, b, bins):  # type: ignore[no-untyped-def]
    """bins[w << b | bin] += 2 for each digit of window w = blockIdx.y: twice the count is what the scan of
    pairs takes.
    """
    shared = cuda.shared.array(_MAX_BINS, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    ways = np.int32(1 << b)
    for k in range(t, ways, THREADS):
        shared[k] = 0
    cuda.syncthreads()
    row = np.int64(cuda.blockIdx.y) * n
    first = np.int64(cuda.blockIdx.x) * HISTOGRAM_TILE
    last = min(first + HISTOGRAM_TILE, np.int64(n))
    for i in range(first + t, last, THREADS):
        digit = digits[row + i]
        if digit != 0:
            j = np.int32(abs(digit) - 1)
            low = (j & np.int32(_FIRST_WAYS - 1)) << (b - FIRST_BITS) | (j >> FIRST_BITS) & (
                (1 << (b - FIRST_BITS)) - 1
            )
            cuda.atomic.add(shared, low, np.uint32(2))
    cuda.syncthreads()
    for k in range(t, ways, THREADS):
        if shared[k]:
            atomic_add(bins, (np.int64(cuda.blockIdx.y) << np.int64(b)) + k, shared[k])


@cuda_jit(_I32, types.uint32, types.int32, _U32, _U32, _U64, launch_bounds=(THREADS,))
def spread_digits(digits, n, b, starts, cursors, entries):  # type: ignore[no-untyped-def]
    """First step: a tile of window blockIdx.y to 2^7 regions. cursors[w << 7 | region] counts what was
    placed there.
    """
    counts = cuda.shared.array(THREADS, types.uint32)
    scanned = cuda.shared.array(THREADS, types.uint32)
    moved = cuda.shared.array(THREADS, types.uint32)
    begins = cuda.shared.array(THREADS, types.uint32)
    staged = cuda.shared.array(TILE, types.uint64)
    ranks = cuda.shared.array(TILE, types.uint16)
    t = np.int32(cuda.threadIdx.x)
    w = np.int64(cuda.blockIdx.y)
    first = np.int64(cuda.blockIdx.x) * TILE
    counts[t] = 0
    cuda.syncthreads()
    for k in range(PER_THREAD):
        i = first + k * THREADS + t
        digit = np.int32(0)
        if i < n:
            digit = digits[w * n + i]
        if digit != 0:
            way = np.int32(abs(digit) - 1) & np.int32(_FIRST_WAYS - 1)
            ranks[k * THREADS + t] = cuda.atomic.add(counts, way, np.uint32(1))
    cuda.syncthreads()
    own = counts[t]
    before, total = scan_before(scanned, t, own)
    begins[t] = before
    if own:
        base = starts[(w << np.int64(b)) + (np.int64(t) << np.int64(b - FIRST_BITS))]
        base = np.uint32(base + atomic_add(cursors, (w << np.int64(FIRST_BITS)) + t, own))
        moved[t] = np.uint32(base - before)  # modulo 2^32: added to an index in the tile
    cuda.syncthreads()
    for k in range(PER_THREAD):
        i = first + k * THREADS + t
        digit = np.int32(0)
        if i < n:
            digit = digits[w * n + i]
        if digit != 0:
            j = np.int32(abs(digit) - 1)
            place = np.int32(begins[j & np.int32(_FIRST_WAYS - 1)]) + np.int32(ranks[k * THREADS + t])
            code = np.uint32(i)
            if digit < 0:
                code = np.uint32(code | np.uint32(SIGN))
            staged[place] = np.uint64(code) | np.uint64(j) << np.uint64(32)
    cuda.syncthreads()
    for k in range(t, np.int32(total), THREADS):
        entry = staged[k]
        way = np.int32(np.int64(entry >> np.uint64(32)) & (_FIRST_WAYS - 1))
        entries[np.uint32(moved[way] + np.uint32(k))] = entry


@cuda_jit(_U64, types.int32, _U32, _U32, _U64, launch_bounds=(THREADS,))
def spread_entries(entries, b, starts, cursors, spread):  # type: ignore[no-untyped-def]
    """Second step: region blockIdx.x to its bins. cursors[bin] counts what was placed there."""
    counts = cuda.shared.array(THREADS, types.uint32)
    scanned = cuda.shared.array(THREADS, types.uint32)
    moved = cuda.shared.array(THREADS, types.uint32)
    begins = cuda.shared.array(THREADS, types.uint32)
    staged = cuda.shared.array(TILE, types.uint64)
    ranks = cuda.shared.array(TILE, types.uint16)
    t = np.int32(cuda.threadIdx.x)
    more = np.int32(b - FIRST_BITS)
    mask = np.int32((1 << more) - 1)
    first_bin = np.int64(cuda.blockIdx.x) << np.int64(more)
    region_end = np.int64(starts[first_bin + (np.int64(1) << np.int64(more))])
    first = np.int64(starts[first_bin]) + np.int64(cuda.blockIdx.y) * TILE
    while first < region_end:
        counts[t] = 0
        cuda.syncthreads()
        for k in range(PER_THREAD):
            i = first + k * THREADS + t
            if i < region_end:
                way = np.int32(np.int64(entries[i] >> np.uint64(32 + FIRST_BITS))) & mask
                ranks[k * THREADS + t] = cuda.atomic.add(counts, way, np.uint32(1))
        cuda.syncthreads()
        own = counts[t]
        before, total = scan_before(scanned, t, own)
        begins[t] = before
        if own:
            base = np.uint32(starts[first_bin + t] + atomic_add(cursors, first_bin + t, own))
            moved[t] = np.uint32(base - before)
        cuda.syncthreads()
        for k in range(PER_THREAD):
            i = first + k * THREADS + t
            if i < region_end:
                entry = entries[i]
                way = np.int32(np.int64(entry >> np.uint64(32 + FIRST_BITS))) & mask
                staged[np.int32(begins[way]) + np.int32(ranks[k * THREADS + t])] = entry
        cuda.syncthreads()
        for k in range(t, np.int32(total), THREADS):
            entry = staged[k]
            way = np.int32(np.int64(entry >> np.uint64(32 + FIRST_BITS))) & mask
            spread[np.uint32(moved[way] + np.uint32(k))] = entry
        cuda.syncthreads()
        first += np.int64(cuda.gridDim.y) * TILE


@cuda_jit(_U64, types.int32, types.int32, _U32, _U32, launch_bounds=(THREADS,))
def count_buckets(entries, b, c, starts, counts):  # type: ignore[no-untyped-def]
    """counts of the buckets of bin blockIdx.x; every bucket belongs to one bin."""
    shared = cuda.shared.array(MAX_BIN_BUCKETS, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    which = np.int64(cuda.blockIdx.x)
    buckets = np.int32(1 << (c - 1 - b))
    for k in range(t, buckets, THREADS):
        shared[k] = 0
    cuda.syncthreads()
    for i in range(np.int64(starts[which]) + t, np.int64(starts[which + 1]), THREADS):
        cuda.atomic.add(shared, np.int32(np.int64(entries[i] >> np.uint64(32)) >> np.int64(b)), np.uint32(1))
    cuda.syncthreads()
    first = _first_bucket(which, b, c)
    for k in range(t, buckets, THREADS):
        counts[first + (np.int64(k) << np.int64(b))] = shared[k]


@register_jitable
def _first_bucket(which, b, c):  # type: ignore[no-untyped-def]
    """The lowest bucket of a bin; the others follow at distance 2^b."""
    w = which >> np.int64(b)
    within = which - (w << np.int64(b))
    more = np.int64(b - FIRST_BITS)
    way = within >> more
    return (w << np.int64(c - 1)) + way + ((within - (way << more)) << np.int64(FIRST_BITS))


@cuda_jit(_U64, types.int32, types.int32, _U32, _U32, _U32, _U64, _U32, _U32, _U32, launch_bounds=(THREADS,))
def scatter_bins(entries, b, c, starts, counts, offsets, pairs, segs, extras, codes):  # type: ignore[no-untyped-def]
    """The pairs of each bucket of bin blockIdx.x, from offsets[bucket] on; `codes` are the pairs, a word
    each.
    """
    cursors = cuda.shared.array(MAX_BIN_BUCKETS, types.uint32)
    scanned = cuda.shared.array(THREADS, types.uint32)
    staged = cuda.shared.array(CAPACITY, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    which = np.int64(cuda.blockIdx.x)
    buckets = np.int32(1 << (c - 1 - b))
    first = _first_bucket(which, b, c)
    start, end = np.int64(starts[which]), np.int64(starts[which + 1])
    fits = end - start <= CAPACITY
    each = np.int32((buckets + THREADS - 1) // THREADS)
    total = np.uint32(0)
    for k in range(t * each, min(t * each + each, buckets)):
        total = np.uint32(total + counts[first + (np.int64(k) << np.int64(b))])
    before, _ = scan_before(scanned, t, total)
    for k in range(t * each, min(t * each + each, buckets)):
        cursors[k] = before if fits else np.uint32(0)
        before = np.uint32(before + counts[first + (np.int64(k) << np.int64(b))])
    cuda.syncthreads()
    for i in range(start + t, end, THREADS):
        entry = entries[i]
        high = np.int32(np.int64(entry >> np.uint64(32)) >> np.int64(b))
        rank = cuda.atomic.add(cursors, high, np.uint32(1))
        if fits:
            staged[rank] = np.uint32(entry)
        else:
            bucket = first + (np.int64(high) << np.int64(b))
            count = counts[bucket]
            if count & 1 and rank == count - 1:
                extras[bucket] = np.uint32(entry)
            else:
                place = np.int64(offsets[bucket]) + (np.int64(rank) >> 1)
                codes[2 * place + (np.int64(rank) & 1)] = np.uint32(entry)
                if rank & 1 == 0:
                    segs[place] = np.uint32(bucket)
    if not fits:
        return
    cuda.syncthreads()
    lane = np.int32(t % WARP)
    for k in range(t // WARP, buckets, THREADS // WARP):
        bucket = first + (np.int64(k) << np.int64(b))
        count = np.int32(counts[bucket])
        begin = np.int32(np.int32(cursors[k]) - count)  # the cursor has come to the bucket's end
        place = np.int64(offsets[bucket])
        for q in range(lane, count >> 1, WARP):
            pairs[place + q] = np.uint64(staged[begin + 2 * q]) | np.uint64(
                staged[begin + 2 * q + 1]
            ) << np.uint64(32)
            segs[place + q] = np.uint32(bucket)
        if count & 1 and lane == 0:
            extras[bucket] = staged[begin + count - 1]
