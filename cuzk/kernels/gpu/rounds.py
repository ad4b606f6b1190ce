"""Sums of many segments of points at once on the GPU: rounds of pair additions, all segments together.

Symbols    segment s has counts[s] points; after r rounds it has ceil(counts[s] / 2^r). Two and two make the
           pairs of a round, one list for all segments, segment after segment; a point left over waits in
           extras[s], never copied.
Round r    offsets (a scan of the pairs over the segments), the list, the additions (`pair_add`), whose
           sums are appended to the pool: a code, once given, stays valid. In the end extras[s] is the sum's
           code.
List       where does result q go? rank = q - offset[s]; even ranks pair with the next, or with the one left
           over.
Sizes      live on the device; launches have a fixed grid. The host only needs to know how many rounds there
           are.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import register_jitable

from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.ops import atomic_max, load_four, store_four
from cuzk.kernels.gpu.sum_schedule import SCAN_THREADS, SCAN_TILE

PER_THREAD = SCAN_TILE // SCAN_THREADS
LIST_THREADS = 256
AT_ONCE = 4  # results that a thread asks about at once: three loads wait for one another
_U32, _U64 = pointer(types.uint32), pointer(types.uint64)


@register_jitable
def items_left(count, level):  # type: ignore[no-untyped-def]
    """Points of a segment after `level` rounds."""
    return (np.int64(count) + (np.int64(1) << np.int64(level)) - 1) >> np.int64(level)


@register_jitable
def pairs_of(count, level):  # type: ignore[no-untyped-def]
    return np.uint32(items_left(count, level) >> 1)


@register_jitable
def scan_before(shared, t, value):  # type: ignore[no-untyped-def]
    """The sum of the values of the block's threads before t, and of all; shared has SCAN_THREADS + 1
    words.
    """
    shared[t] = value
    cuda.syncthreads()
    reach = np.int32(1)
    total = value
    while reach < SCAN_THREADS:
        before = shared[t - reach] if t >= reach else np.uint32(0)
        cuda.syncthreads()
        total = np.uint32(total + before)
        shared[t] = total
        cuda.syncthreads()
        reach = np.int32(2 * reach)
    everything = shared[SCAN_THREADS - 1]
    cuda.syncthreads()
    return np.uint32(total - value), everything


@cuda_jit(_U32, types.uint32, types.uint32, _U32, _U32, launch_bounds=(SCAN_THREADS,))
def count_pairs(counts, segments, level, partials, largest):  # type: ignore[no-untyped-def]
    """partials[b] = pairs of the segments of tile b. At level 0 also the largest count."""
    shared = cuda.shared.array(SCAN_THREADS, types.uint32)
    most_of_tile = cuda.shared.array(1, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    if t == 0:
        most_of_tile[0] = 0
    cuda.syncthreads()
    first = np.int64(cuda.blockIdx.x) * SCAN_TILE
    total, most = np.uint32(0), np.uint32(0)
    for k in range(PER_THREAD):
        s = first + k * SCAN_THREADS + t
        if s < segments:
            total = np.uint32(total + pairs_of(counts[s], level))
            most = max(most, counts[s])
    if level == 0 and most > most_of_tile[0]:
        cuda.atomic.max(most_of_tile, 0, most)
    _, everything = scan_before(shared, t, total)
    if t == 0:
        partials[cuda.blockIdx.x] = everything
        if level == 0 and most_of_tile[0] > largest[0]:
            atomic_max(largest, 0, most_of_tile[0])


@cuda_jit(_U32, types.uint32, types.uint32, _U32, _U32, launch_bounds=(SCAN_THREADS,))
def scan_partials(partials, tiles, number, sizes, bases):  # type: ignore[no-untyped-def]
    """partials := sums of those before, by one block; the round's size, and where the next one's sums
    begin.
    """
    shared = cuda.shared.array(SCAN_THREADS, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    carried = np.uint32(0)
    for first in range(0, tiles, SCAN_TILE):
        start = first + t * PER_THREAD
        total = np.uint32(0)
        for k in range(PER_THREAD):
            if start + k < tiles:
                total = np.uint32(total + partials[start + k])
        before, everything = scan_before(shared, t, total)
        before = np.uint32(before + carried)
        for k in range(PER_THREAD):
            if start + k < tiles:
                own = partials[start + k]
                partials[start + k] = before
                before = np.uint32(before + own)
        carried = np.uint32(carried + everything)
    if t == 0:
        sizes[number] = carried
        bases[number + 1] = np.uint32(bases[number] + carried)


@register_jitable
def _placed(before, four, level):  # type: ignore[no-untyped-def]
    """Where the pairs of four segments begin, the first at `before`, and where the next ones do."""
    first = np.uint32(before + pairs_of(four[0], level))
    second = np.uint32(first + pairs_of(four[1], level))
    third = np.uint32(second + pairs_of(four[2], level))
    return (before, first, second, third), np.uint32(third + pairs_of(four[3], level))


@cuda_jit(_U32, types.uint32, types.uint32, _U32, _U32, launch_bounds=(SCAN_THREADS,))
def place_pairs(counts, segments, level, partials, offsets):  # type: ignore[no-untyped-def]
    """offsets[s] = pairs of all segments before s."""
    shared = cuda.shared.array(SCAN_THREADS, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    first = np.int64(cuda.blockIdx.x) * SCAN_TILE + t * PER_THREAD
    zero = np.uint32(0)
    low = high = (zero, zero, zero, zero)
    whole = first + PER_THREAD <= segments
    total = zero
    if whole:
        low, high = load_four(counts, first), load_four(counts, first + 4)
        _, total = _placed(total, low, level)
        _, total = _placed(total, high, level)
    else:
        for s in range(first, segments):
            total = np.uint32(total + pairs_of(counts[s], level))
    before, _ = scan_before(shared, t, total)
    before = np.uint32(before + partials[cuda.blockIdx.x])
    if whole:
        places, before = _placed(before, low, level)
        store_four(offsets, first, places)
        places, before = _placed(before, high, level)
        store_four(offsets, first + 4, places)
    else:
        for s in range(first, segments):
            offsets[s] = before
            before = np.uint32(before + pairs_of(counts[s], level))


@cuda_jit(
    _U32, types.uint32, types.uint32, _U32, _U32, _U32, _U32, _U32, _U32, _U64, _U32,
    launch_bounds=(LIST_THREADS,),
)  # fmt: skip
def next_list(
    counts, level, n_points, sizes, bases, extras, segs, offsets, next_offsets, next_pairs, next_segs
):  # type: ignore[no-untyped-def]
    """The pairs of level + 1 from the results of `level`.

    segs       the segment of each pair of this level
    offsets    of the pairs of each segment, at this level and the next
    """
    size, base = np.int64(sizes[level]), np.int64(bases[level]) + n_points
    segments = cuda.local.array(AT_ONCE, types.uint32)
    ranks = cuda.local.array(AT_ONCE, types.int64)
    items = cuda.local.array(AT_ONCE, types.int64)
    places = cuda.local.array(AT_ONCE, types.int64)
    first = np.int64(cuda.blockIdx.x) * (AT_ONCE * LIST_THREADS) + cuda.threadIdx.x
    while first < size:
        for k in range(AT_ONCE):
            segments[k] = segs[min(first + k * LIST_THREADS, size - 1)]
        for k in range(AT_ONCE):
            s = segments[k]
            ranks[k] = first + k * LIST_THREADS - offsets[s]
            items[k] = items_left(counts[s], level)
            places[k] = np.int64(next_offsets[s])
        for k in range(AT_ONCE):
            q, s, rank = first + k * LIST_THREADS, segments[k], ranks[k]
            if q < size and rank & 1 == 0:
                place = places[k] + (rank >> 1)
                code = np.uint64(base + q)
                if rank + 1 < items[k] >> 1:
                    next_pairs[place] = code | np.uint64(base + q + 1) << np.uint64(32)
                    next_segs[place] = s
                elif items[k] & 1:
                    next_pairs[place] = code | np.uint64(extras[s]) << np.uint64(32)
                    next_segs[place] = s
                else:
                    extras[s] = np.uint32(code)
        first += np.int64(cuda.gridDim.x) * (AT_ONCE * LIST_THREADS)


@cuda_jit(_U32, _U32, types.uint32, types.uint32, _U64, launch_bounds=(LIST_THREADS,))
def neighbours(sizes, bases, number, n_points, pairs):  # type: ignore[no-untyped-def]
    """The pairs of round `number`: results of the one before, two and two."""
    q = np.int64(cuda.blockIdx.x) * LIST_THREADS + cuda.threadIdx.x
    step = np.int64(cuda.gridDim.x) * LIST_THREADS
    size, items = np.int64(sizes[number]), np.int64(sizes[number - 1])
    first = np.int64(n_points) + np.int64(bases[number - 1])
    while q < size:
        other = first + 2 * q + 1
        if 2 * q + 1 == items:
            other = np.int64(n_points)
        pairs[q] = np.uint64(first + 2 * q) | np.uint64(other) << np.uint64(32)
        q += step
