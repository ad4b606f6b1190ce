"""Many sums at once: each segment of a list of points is added up by a tree of batched affine additions.

Symbols    a code names a point: `row << 1 | negative`; segment s is codes[offsets[s]:offsets[s + 1]].
1 take     a chunk of the list: segments, the last one perhaps in part; each begins with its sum so far
2 level    the points of every segment in pairs, one batch for the chunk; an odd one moves up as it is
3 close    a segment that is down to one point: its sum. After the last level the next chunk begins
Cost       one addition a point but the first of a segment; 5 ns of lists; an inversion a level and chunk.
Chunk      half a MB of rows: both passes of a level, and the next levels, find them in the L2 cache.
Rows       Results go to rows behind the points in the same array, so a level names points and copies none.
           Threads work side by side, each in its `Workspace`; below them lie the points and what outlives it.
Special    A level with a pair of equal x is done again by the complete law. Once a level makes an identity,
           its chunk goes on with the complete law; 3 drops identities, so that sums are points or EMPTY.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.batch_add import batch_add, batch_add_complete
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.field import lanes_of
from cuzk.kernels.jit import jit
from cuzk.kernels.xyzz import EMPTY, Codes, Form, Rows

CHUNK_BYTES = 1 << 19
_SPARE = 128  # a chunk of at most 2^12 points has 13 levels, each padded to whole groups of 8 pairs
_SLOTS, _LEFT, _RIGHT, _IDS, _LENGTHS = range(5)  # rows of `work`


@dataclass(frozen=True, slots=True)
class Workspace:
    """What one thread needs: rows [scratch_row, end) of the point array, and lists.

    From `sums_row` on the rows hold sums that the thread keeps, before them the results of a chunk's levels.
    """

    scratch_row: int
    sums_row: int
    work: Codes
    products: Rows


def chunk_points(form: Form, n: int) -> int:
    """Points a chunk, for n points in all: a power of two."""
    cached = CHUNK_BYTES // (2 * form.words * 8)
    return 1 << min(cached.bit_length() - 1, max(n, 8).bit_length())


def workspace_rows(form: Form, n: int, sums: int) -> int:
    """Rows of a Workspace that keeps `sums` sums."""
    return chunk_points(form, n) + _SPARE + sums


class Workspaces:
    """One Workspace a thread, in the last rows of the point array, lent to whoever works."""

    def __init__(self, device: CpuDevice, form: Form, rows: Rows, *, n: int, sums: int) -> None:
        chunk = chunk_points(form, n)
        size = workspace_rows(form, n, sums)
        self.first_row = len(rows) - device.threads * size
        self._free: queue.SimpleQueue[Workspace] = queue.SimpleQueue()
        for first in range(self.first_row, len(rows), size):
            work = np.empty((5, chunk + _SPARE), np.uint32)
            products = aligned_empty(chunk // 2 + _SPARE, form.words)
            self._free.put(Workspace(first, first + chunk + _SPARE, work, products.reshape(-1)))

    @contextmanager
    def borrow(self) -> Iterator[Workspace]:
        workspace = self._free.get()
        try:
            yield workspace
        finally:
            self._free.put(workspace)


def add_segments(
    form: Form, rows: Rows, codes: Codes, offsets: Codes, sums: Codes, sums_row: int, workspace: Workspace
) -> None:
    """sums[s] += sum of the points of segment s, for every s.

    rows     (n, 2 * words): points, then scratch; no point is the identity
    codes    (k,) uint32; offsets (segments + 1,) uint32, ascending
    sums     (segments,) uint32 codes, EMPTY for nothing yet. The sum of a single point below the workspaces
             is that point's code; other sums are put into row sums_row + s
    """
    _add_segments(
        form, rows, codes, offsets, sums, sums_row, workspace.scratch_row, workspace.work, workspace.products
    )


def identities(rows: Rows, index: Codes) -> NDArray[np.intp]:
    """Positions in `index` of rows (0, 0). One word is read of nearly all others."""
    suspects = np.flatnonzero(rows[index, 0] == 0)
    return suspects[~rows[index[suspects]].any(axis=1)]


@jit
def _add_segments(form, rows, codes, offsets, sums, sums_row, scratch_row, work, products):  # type: ignore[no-untyped-def]
    left, right, lanes = work[_LEFT], work[_RIGHT], lanes_of(form)
    segment, position = np.int64(0), np.int64(offsets[0])
    while True:
        open_segments, segment, position = _take(codes, offsets, sums, segment, position, work)
        if open_segments == 0:
            return
        out_row, complete = scratch_row, False
        while True:
            open_segments, pairs = _pair_up(rows, open_segments, sums, sums_row, scratch_row, out_row, work)
            if pairs == 0:
                break
            count = (pairs + lanes - 1) // lanes * lanes
            for i in range(pairs, count):
                left[i], right[i] = left[0], right[0]
            if complete or not batch_add(form, rows, left, right, count, out_row, products):
                complete |= batch_add_complete(form, rows, left, right, count, out_row, products)
            out_row += count


@jit
def _take(codes, offsets, sums, segment, position, work):  # type: ignore[no-untyped-def]
    """Fill the slots with the next chunk: (segments in it, segment and position to go on with)."""
    chunk = work.shape[1] - _SPARE
    slots, ids, lengths = work[_SLOTS], work[_IDS], work[_LENGTHS]
    filled = taken = 0
    while filled < chunk and segment < len(sums):
        stop = min(np.int64(offsets[segment + 1]), position + chunk - filled)
        if position < stop:
            before = filled
            if sums[segment] != EMPTY:
                slots[filled] = sums[segment]
                filled += 1
            while position < stop:
                slots[filled] = codes[position]
                filled, position = filled + 1, position + 1
            ids[taken], lengths[taken] = segment, filled - before
            taken += 1
        if position == offsets[segment + 1]:
            segment += 1
    return taken, segment, position


@jit
def _pair_up(rows, segments, sums, sums_row, scratch_row, out_row, work):  # type: ignore[no-untyped-def]
    """Close finished segments, list the pairs of the others: (segments left, pairs)."""
    slots, left, right, ids, lengths = work[_SLOTS], work[_LEFT], work[_RIGHT], work[_IDS], work[_LENGTHS]
    read = write = pairs = kept = 0
    for k in range(segments):
        length = np.int64(lengths[k])
        if length == 1:
            _close(rows, slots[read], ids[k], sums, sums_row, scratch_row)
            read += 1
            continue
        ids[kept], lengths[kept] = ids[k], (length + 1) >> 1
        kept += 1
        for _ in range(length >> 1):
            left[pairs], right[pairs] = slots[read], slots[read + 1]
            slots[write] = (out_row + pairs) << 1
            read, write, pairs = read + 2, write + 1, pairs + 1
        if length & 1:
            slots[write] = slots[read]
            read, write = read + 1, write + 1
    return kept, pairs


@jit
def _close(rows, code, segment, sums, sums_row, scratch_row):  # type: ignore[no-untyped-def]
    """Keep the sum of a segment, in a row of its own if it lies where the next chunk's results will."""
    row = np.int64(code) >> 1
    if row < scratch_row:
        sums[segment] = code
        return
    any_bit = np.uint64(0)
    for i in range(rows.shape[1]):
        any_bit |= rows[row, i]
        rows[sums_row + segment, i] = rows[row, i]
    sums[segment] = (sums_row + segment) << 1 if any_bit else EMPTY
