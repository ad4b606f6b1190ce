"""Digits sorted into buckets on the GPU through shared memory: for many digits, where `bucket_sort` would
wait for scattered stores.

Symbols    j = |digit| - 1 names a bucket of its window; its low b bits name a bin: so small digits fill all
           bins, too. An entry is a code and its j, in 64 bits.
1 bins     a histogram in shared memory, and its scan: where each bin begins
2 spread   entries to bins in two steps, 2^7 ways and then 2^(b-7): a tile is put in order in shared memory
           and written in runs
3 count    a block a bin: counts of its buckets
4 scatter  a block a bin: its codes in order in shared memory, then the pairs of each bucket by a few threads;
           a bin that is too large for that, of skewed digits, goes straight to memory
Cost       50 bytes of memory traffic a digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import register_jitable

from cuzk.kernels.gpu.bucket_sort import place_code
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.digits import bits_of_window, buckets_below, code_of
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.ops import atomic_add
from cuzk.kernels.gpu.rounds import scan_before
from cuzk.kernels.gpu.sum_schedule import FIRST_BITS, MAX_BIN_BUCKETS, SCAN_THREADS

THREADS = SCAN_THREADS
TILE = 4096
PER_THREAD = TILE // THREADS
CAPACITY = 9216  # codes that a block puts in order in shared memory
HISTOGRAM_THREADS = 1024
DIGITS_A_BIN = 8  # of a histogram, so that adding it up costs little beside making it
SPREAD_ROWS = 8  # blocks that share a region of the second step
AT_ONCE = 4  # entries of a bin that a thread asks for at once
LANES = 8  # threads that write the pairs of a bucket
SPREAD_BLOCKS = 4  # that a multiprocessor holds, of 45 KB each
NOTHING = (1 << 64) - 1  # the entry of a digit that is 0
_FIRST_WAYS = 1 << FIRST_BITS
_I32, _U32, _U64 = pointer(types.int32), pointer(types.uint32), pointer(types.uint64)


def histogram_tile(b: int) -> int:
    """Digits of which a block makes a histogram."""
    return max(1 << 16, DIGITS_A_BIN << b)


def histogram_bytes(b: int) -> int:
    """Dynamic shared memory of `count_bins`."""
    return 4 << b


@cuda_jit(_I32, types.uint32, types.int32, types.int32, _U32, launch_bounds=(HISTOGRAM_THREADS,))
def count_bins(digits, n, b, tile, bins):  # type: ignore[no-untyped-def]
    """bins[w << b | bin] += 2 for each digit of window w = blockIdx.y: twice the count is what the scan of
    pairs takes.
    """
    shared = cuda.shared.array(0, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    ways = np.int32(1 << b)
    for k in range(t, ways, HISTOGRAM_THREADS):
        shared[k] = 0
    cuda.syncthreads()
    row = np.int64(cuda.blockIdx.y) * n
    first = np.int64(cuda.blockIdx.x) * tile
    last = min(first + tile, np.int64(n))
    for i in range(first + t, last, HISTOGRAM_THREADS):
        digit = digits[row + i]
        if digit != 0:
            j = np.int32(abs(digit) - 1)
            low = (j & np.int32(_FIRST_WAYS - 1)) << (b - FIRST_BITS) | (j >> FIRST_BITS) & (
                (1 << (b - FIRST_BITS)) - 1
            )
            cuda.atomic.add(shared, low, np.uint32(2))
    cuda.syncthreads()
    for k in range(t, ways, HISTOGRAM_THREADS):
        if shared[k]:
            atomic_add(bins, (np.int64(cuda.blockIdx.y) << np.int64(b)) + k, shared[k])


@register_jitable
def _entry_of_digit(digits, row, i):  # type: ignore[no-untyped-def]
    digit = digits[row + i]
    if digit == 0:
        return np.uint64(NOTHING)
    return np.uint64(code_of(i, digit)) | np.uint64(abs(digit) - 1) << np.uint64(32)


@register_jitable
def _entry_again(entries, row, i):  # type: ignore[no-untyped-def]
    return entries[row + i]


def _spreading(entry_at: Callable[..., Any]) -> Any:
    """How a block brings a tile of entries to their ways: in order in shared memory, then in runs."""

    @register_jitable
    def spread_tile(source, row, first, end, shift, mask, starts, start, spacing, cursors, cursor, target):  # type: ignore[no-untyped-def]
        """Entries first to end of a row; way = entry >> shift & mask. Way k begins at
        starts[start + k * spacing], and cursors[cursor + k] counts what was placed there.
        """
        counts = cuda.shared.array(THREADS, types.uint32)
        scanned = cuda.shared.array(THREADS, types.uint32)
        moved = cuda.shared.array(THREADS, types.uint32)
        begins = cuda.shared.array(THREADS, types.uint32)
        staged = cuda.shared.array(TILE, types.uint64)
        ranks = cuda.shared.array(TILE, types.uint16)
        held = cuda.local.array(PER_THREAD, types.uint64)
        t = np.int32(cuda.threadIdx.x)
        counts[t] = 0
        for k in range(PER_THREAD):
            i = first + k * THREADS + t
            entry = entry_at(source, row, min(i, end - 1))
            held[k] = entry if i < end else np.uint64(NOTHING)
        cuda.syncthreads()
        for k in range(PER_THREAD):
            entry = held[k]
            if entry != np.uint64(NOTHING):
                way = np.int32(np.int64(entry >> np.uint64(shift))) & mask
                ranks[k * THREADS + t] = cuda.atomic.add(counts, way, np.uint32(1))
        cuda.syncthreads()
        own = counts[t]
        before, total = scan_before(scanned, t, own)
        begins[t] = before
        if own:
            base = np.uint32(starts[start + t * spacing] + atomic_add(cursors, cursor + t, own))
            moved[t] = np.uint32(base - before)  # modulo 2^32: added to an index in the tile
        cuda.syncthreads()
        for k in range(PER_THREAD):
            entry = held[k]
            if entry != np.uint64(NOTHING):
                way = np.int32(np.int64(entry >> np.uint64(shift))) & mask
                staged[np.int32(begins[way]) + np.int32(ranks[k * THREADS + t])] = entry
        cuda.syncthreads()
        for k in range(t, np.int32(total), THREADS):
            entry = staged[k]
            way = np.int32(np.int64(entry >> np.uint64(shift))) & mask
            target[np.uint32(moved[way] + np.uint32(k))] = entry
        cuda.syncthreads()

    return spread_tile


_spread_digits, _spread_entries = _spreading(_entry_of_digit), _spreading(_entry_again)


@cuda_jit(_I32, types.uint32, types.int32, _U32, _U32, _U64, launch_bounds=(THREADS, SPREAD_BLOCKS))
def spread_digits(digits, n, b, starts, cursors, entries):  # type: ignore[no-untyped-def]
    """First step: a tile of window w = blockIdx.y to 2^7 regions; cursors[w << 7 | region]."""
    w = np.int64(cuda.blockIdx.y)
    first = np.int64(cuda.blockIdx.x) * TILE
    last = min(first + TILE, np.int64(n))
    start, spacing = w << np.int64(b), np.int64(1) << np.int64(b - FIRST_BITS)
    cursor, mask = w << np.int64(FIRST_BITS), np.int32(_FIRST_WAYS - 1)
    _spread_digits(digits, w * n, first, last, 32, mask, starts, start, spacing, cursors, cursor, entries)


@cuda_jit(_U64, types.int32, _U32, _U32, _U64, launch_bounds=(THREADS, SPREAD_BLOCKS))
def spread_entries(entries, b, starts, cursors, spread):  # type: ignore[no-untyped-def]
    """Second step: region blockIdx.x to its bins; cursors[bin]."""
    ways = np.int64(1) << np.int64(b - FIRST_BITS)
    first_bin = np.int64(cuda.blockIdx.x) * ways
    region_end = np.int64(starts[first_bin + ways])
    first = np.int64(starts[first_bin]) + np.int64(cuda.blockIdx.y) * TILE
    shift, mask, spacing = 32 + FIRST_BITS, np.int32(ways - 1), np.int64(1)
    while first < region_end:
        last = min(first + TILE, region_end)
        _spread_entries(
            entries,
            np.int64(0),
            first,
            last,
            shift,
            mask,
            starts,
            first_bin,
            spacing,
            cursors,
            first_bin,
            spread,
        )
        first += np.int64(cuda.gridDim.y) * TILE


@register_jitable
def _bin_of_block(b, c, wide):  # type: ignore[no-untyped-def]
    """The block's bin, the lowest of its buckets, and how many they are, at distance 2^b: blocks that run
    together work on buckets that lie together.
    """
    block = np.int64(cuda.blockIdx.x)
    w = block >> np.int64(b)
    low = block - (w << np.int64(b))
    way = low & np.int64(_FIRST_WAYS - 1)
    which = (w << np.int64(b)) + (way << np.int64(b - FIRST_BITS)) + (low >> np.int64(FIRST_BITS))
    return which, buckets_below(w, c, wide) + low, np.int32(1) << np.int32(bits_of_window(w, c, wide) - 1 - b)


@register_jitable
def _load_some(entries, first, end, held):  # type: ignore[no-untyped-def]
    """The thread's next ones, asked for at once."""
    for k in range(AT_ONCE):
        held[k] = entries[min(first + k * THREADS, end - 1)]


@register_jitable
def _place_in_bin(entry, b):  # type: ignore[no-untyped-def]
    """Which of the bin's buckets."""
    return np.int32(np.int64(entry >> np.uint64(32)) >> np.int64(b))


@cuda_jit(_U64, types.int32, types.int32, types.int32, _U32, _U32, launch_bounds=(THREADS,))
def count_buckets(entries, b, c, wide, starts, counts):  # type: ignore[no-untyped-def]
    """counts of the buckets of the block's bin; every bucket belongs to one bin."""
    shared = cuda.shared.array(MAX_BIN_BUCKETS, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    which, first, buckets = _bin_of_block(b, c, wide)
    for k in range(t, buckets, THREADS):
        shared[k] = 0
    cuda.syncthreads()
    held = cuda.local.array(AT_ONCE, types.uint64)
    first_entry, end = np.int64(starts[which]) + t, np.int64(starts[which + 1])
    while first_entry < end:
        _load_some(entries, first_entry, end, held)
        for k in range(AT_ONCE):
            if first_entry + k * THREADS < end:
                cuda.atomic.add(shared, _place_in_bin(held[k], b), np.uint32(1))
        first_entry += AT_ONCE * THREADS
    cuda.syncthreads()
    for k in range(t, buckets, THREADS):
        counts[first + (np.int64(k) << np.int64(b))] = shared[k]


@cuda_jit(
    _U64,
    types.int32,
    types.int32,
    types.int32,
    _U32,
    _U32,
    _U32,
    _U64,
    _U32,
    _U32,
    _U32,
    launch_bounds=(THREADS,),
)
def scatter_bins(entries, b, c, wide, starts, counts, offsets, pairs, segs, extras, codes):  # type: ignore[no-untyped-def]
    """The pairs of each bucket of the block's bin, from offsets[bucket] on; `codes` are the pairs, a word
    each.
    """
    cursors = cuda.shared.array(MAX_BIN_BUCKETS, types.uint32)
    scanned = cuda.shared.array(THREADS, types.uint32)
    staged = cuda.shared.array(CAPACITY, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    which, first, buckets = _bin_of_block(b, c, wide)
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
    held = cuda.local.array(AT_ONCE, types.uint64)
    start += t
    while start < end:
        _load_some(entries, start, end, held)
        for k in range(AT_ONCE):
            if start + k * THREADS < end:
                high = _place_in_bin(held[k], b)
                rank = cuda.atomic.add(cursors, high, np.uint32(1))
                if fits:
                    staged[rank] = np.uint32(held[k])
                else:
                    bucket = first + (np.int64(high) << np.int64(b))
                    place_code(np.uint32(held[k]), rank, bucket, counts, offsets, codes, segs, extras)
        start += AT_ONCE * THREADS
    if not fits:
        return
    cuda.syncthreads()
    lane = np.int32(t % LANES)
    for k in range(t // LANES, buckets, THREADS // LANES):
        bucket = first + (np.int64(k) << np.int64(b))
        count = np.int32(counts[bucket])
        begin = np.int32(np.int32(cursors[k]) - count)  # the cursor has come to the bucket's end
        place = np.int64(offsets[bucket])
        for q in range(lane, count >> 1, LANES):
            pairs[place + q] = np.uint64(staged[begin + 2 * q]) | np.uint64(
                staged[begin + 2 * q + 1]
            ) << np.uint64(32)
            segs[place + q] = np.uint32(bucket)
        if count & 1 and lane == 0:
            extras[bucket] = staged[begin + count - 1]
