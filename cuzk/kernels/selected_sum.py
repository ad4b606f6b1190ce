"""Sums of points under scalars that are mostly bits: sum of P_i over set bits, plus an MSM over the others.

Symbols    n bits, in blocks of up to 2^18, one task each; A is a batched affine addition.
1 select   the codes of a block's set bits                                                1 ns a bit
2 sum      three rounds of `segment_sums`, 64 points a segment: 64^3 = 2^18               A a selected point
3 fold     the blocks' sums in XYZZ                                                       1 us a block
Neighbours are added to neighbours, so memory is read in order. Segments of 64 keep the batches long: a single
segment would end each chunk in levels of 4, 2, 1 pairs that cost an inversion each.
Reference  `selected_sum_textbook`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels import msm as full_msm
from cuzk.kernels.curve import Curve, Point
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.segment_sums import Workspaces, add_segments, identities, workspace_rows
from cuzk.kernels.xyzz import EMPTY, ROWS_READ_PAST, Codes, Form, Rows, curve_of, horner

SEGMENT = 64
BLOCK = SEGMENT**3
_KEPT_SUMS = BLOCK // SEGMENT + BLOCK // SEGMENT**2  # of rounds 1 and 2; round 3's is the block's result
_BLOCKS_A_THREAD = 4
_SMALL_BLOCK = 1 << 12


def selected_sum_textbook(curve: Curve[Any], points: Sequence[Point[Any]], bits: Sequence[int]) -> Point[Any]:
    return curve.sum(point for point, bit in zip(points, bits, strict=True) if bit)


def scratch_rows(device: CpuDevice, form: Form, n: int, full: int = 0) -> int:
    """Spare rows at the end of the point array, for n bits, and `full` scalars of a `mostly_bits_sum`."""
    blocks = len(_blocks(device, n))
    selected = blocks + ROWS_READ_PAST + device.threads * workspace_rows(form, n, _KEPT_SUMS)
    return max(selected, full_msm.scratch_rows(device, form, full) if full else 0)


def selected_sum(device: CpuDevice, form: Form, rows: Rows, bits: NDArray[np.uint8]) -> Point[Any]:
    """Sum of rows[i] over the i with bits[i] != 0: affine, plain integers, None for the identity.

    form  device.g1 or device.g2
    rows  (points + spare, 2 * words), as for `msm`; the last `scratch_rows` are overwritten
    bits  (n,) uint8
    """
    blocks = _blocks(device, len(bits))
    workspaces = Workspaces(device, form, rows, n=len(bits), sums=_KEPT_SUMS)
    first_result = workspaces.first_row - ROWS_READ_PAST - len(blocks)
    assert first_result >= len(bits), "no room behind the points"
    results = np.full((len(blocks), 1), EMPTY, np.uint32)

    def sum_block(k: int) -> None:
        codes = _select(rows, bits, blocks[k])  # 1
        with workspaces.borrow() as workspace:  # 2
            row = workspace.sums_row
            while len(codes) > SEGMENT:
                segments = -(-len(codes) // SEGMENT)
                sums = np.full(segments, EMPTY, np.uint32)
                offsets = np.minimum(np.arange(segments + 1) * SEGMENT, len(codes)).astype(np.uint32)
                add_segments(form, rows, codes, offsets, sums, row, workspace)
                codes, row = sums[sums != EMPTY], row + segments
            offsets = np.array([0, len(codes)], np.uint32)
            add_segments(form, rows, codes, offsets, results[k], first_result + k, workspace)

    device.map(sum_block, range(len(blocks)))
    return horner(form, rows, results)  # 3


def mostly_bits_sum(
    device: CpuDevice,
    form: Form,
    rows: Rows,
    bits: NDArray[np.uint8],
    full_index: Codes,
    full_scalars: NDArray[np.uint64],
) -> Point[Any]:
    """Sum of bits[i] * rows[i] plus sum of full_scalars[j] * rows[full_index[j]].

    bits          (n,) uint8, 0 where the scalar is no bit
    full_index    (k,) uint32; full_scalars (k, 4) uint64, canonical
    rows          with `scratch_rows(device, form, n, k)` spare ones
    """
    of_bits = selected_sum(device, form, rows, bits)
    of_others = full_msm.msm(device, form, rows, full_scalars, index=full_index)
    return curve_of(form).add(of_bits, of_others)


def _blocks(device: CpuDevice, n: int) -> list[range]:
    """Ranges of bits: some for each thread, so that uneven ones balance, unless that makes them tiny."""
    size = min(BLOCK, max(-(-n // (_BLOCKS_A_THREAD * device.threads)), _SMALL_BLOCK))
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


def _select(rows: Rows, bits: NDArray[np.uint8], block: range) -> Codes:
    """Codes of the block's rows whose bit is set, without identities."""
    index: Codes = (np.flatnonzero(bits[block.start : block.stop] != 0) + block.start).astype(np.uint32)
    dead = identities(rows, index)
    kept = np.delete(index, dead) if len(dead) else index
    codes: Codes = kept << np.uint32(1)
    return codes
