"""One pass of a transform on the CPU: many small transforms side by side, eight columns at a time in cache.

A pass transforms *columns* of N *lines* each. A tile is eight adjacent columns; with eight lanes they are the lanes
of one value, with one lane eight values. A tile is read into scratch (N = 2^11: 655 KB, in the second-level cache),
transformed there and written out. Input and output are natural; within scratch the order ends bit-reversed.

Butterflies  a +- zeta*b [CT65], all blocks of one level with their own zeta: X^2k - c = (X^k - zeta)(X^k + zeta).
             Nodes of this tree are numbered as a heap; node h has one zeta, its children are 2h and 2h+1. Two levels
             at a time (radix 4: 4 products for 4 values); the root, whose zeta is 1, is done while reading.
Ranges       eight lanes: an input < p leaves the root < 4p, a further radix-4 level adds 4p because only the
             right-hand operand is a product. N <= 2^16 means at most 7 further levels: below 32p, and a product
             takes operands up to 35p, so nothing is reduced before the output factor, which every output needs.
Order        levels run over all of scratch until a block fits the first-level cache, then block by block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.field import canonical, carried, lanes_of, load, store
from cuzk.kernels.field_buffer import lifted, load_same, spill_loose, unspill_loose
from cuzk.kernels.field_memory import load_apart
from cuzk.kernels.jit import jit

TILE = 8  # columns
MAX_LINES_LOG2 = 16
_BOUND = 33  # of values in scratch, see Ranges; with a product below 2p added, an operand is below 35p
_LINES_IN_L1 = 64  # of 8 lanes: 20 KB

Words = NDArray[np.uint64]


class PassTables(NamedTuple):
    """Constants of a pass. Rows of `zetas` and `line_factors` are limb tables, the others canonical Montgomery rows.

    zetas         (N, limbs) by heap number; row 0 is not used
    line_factors  (N, limbs): line j of the input is multiplied by row j first; or no rows: by nothing
    start, ratio  (columns, 4): output line k of a column is multiplied by start * ratio^k
    geometric     whether any ratio differs from 1
    order         (N,) int64: where in scratch output line k lies
    """

    zetas: Words
    line_factors: Words
    start: Words
    ratio: Words
    geometric: bool
    order: NDArray[np.int64]


class PassVectors(NamedTuple):
    """What a pass reads and writes: vectors of canonical rows, (n, 4).

    source        line j of column c is row j*line_step + c*column_step
    times         the same rows are multiplied into the source as they are read; or no rows
    minus         rows subtracted from the output; or no rows
    target        output line k of column c goes to row k*columns + c
    """

    source: Words
    times: Words
    minus: Words
    target: Words
    line_step: int
    column_step: int


@jit
def transform_tiles(form, vectors, tables, scratch, first, last):  # type: ignore[no-untyped-def]
    """Tiles `first` to `last` of a pass. scratch: limbs * TILE * N words."""
    lines, groups = len(tables.zetas), TILE // lanes_of(form)
    for tile in range(first, last):
        for group in range(groups):
            column = tile * TILE + group * lanes_of(form)
            _read_columns(form, vectors, tables, scratch, lines, column)
            _transform_columns(form, tables.zetas, scratch, lines)
            _write_columns(form, vectors, tables, scratch, lines, column)


@jit
def _input(form, vectors, tables, column, line):  # type: ignore[no-untyped-def]
    row = line * vectors.line_step + column * vectors.column_step
    x = load_apart(form, vectors.source, row, vectors.column_step)
    if len(vectors.times):
        x = canonical(x * load_apart(form, vectors.times, row, vectors.column_step))
    if len(tables.line_factors):
        x = canonical(x * load_same(form, tables.line_factors, line))
    return x


@jit
def _read_columns(form, vectors, tables, scratch, lines, column):  # type: ignore[no-untyped-def]
    """Input to scratch through the root's butterflies, radix 4 if log2 N is even, else 2; zeta_1 = zeta_2 = 1."""
    if np.log2(lines) % 2:
        half = lines // 2
        for j in range(half):
            a = _input(form, vectors, tables, column, j)
            b = _input(form, vectors, tables, column, j + half)
            spill_loose(form, scratch, j, a + b)
            spill_loose(form, scratch, j + half, lifted(a - b))
        return
    quarter = lines // 4
    zeta = load_same(form, tables.zetas, 3)
    for j in range(quarter):
        a = _input(form, vectors, tables, column, j)
        b = _input(form, vectors, tables, column, j + quarter)
        c = _input(form, vectors, tables, column, j + 2 * quarter)
        d = _input(form, vectors, tables, column, j + 3 * quarter)
        t = (b - d) * zeta
        spill_loose(form, scratch, j, a + c + b + d)
        spill_loose(form, scratch, j + quarter, lifted(a + c - b - d))
        spill_loose(form, scratch, j + 2 * quarter, lifted(a - c + t))
        spill_loose(form, scratch, j + 3 * quarter, lifted(a - c - t))


@jit
def _transform_columns(form, zetas, scratch, lines):  # type: ignore[no-untyped-def]
    """All levels below the root."""
    blocks = 2 if np.log2(lines) % 2 else 4
    size = lines // blocks
    while size > _LINES_IN_L1:
        _radix4_level(form, zetas, scratch, blocks, blocks, 0, size)
        blocks, size = 4 * blocks, size // 4
    for block in range(blocks):
        node, count, block_size = blocks + block, 1, size
        while block_size > 1:
            _radix4_level(form, zetas, scratch, node, count, block * size, block_size)
            node, count, block_size = 4 * node, 4 * count, block_size // 4


@jit
def _radix4_level(form, zetas, scratch, node, count, first, size):  # type: ignore[no-untyped-def]
    """Two levels of `count` adjacent blocks of `size` lines from line `first` on; the first block is node `node`."""
    quarter = size // 4
    for block in range(count):
        zeta = load_same(form, zetas, node + block)
        zeta_left = load_same(form, zetas, 2 * (node + block))
        zeta_right = load_same(form, zetas, 2 * (node + block) + 1)
        for i in range(first + block * size, first + block * size + quarter):
            a = unspill_loose(form, scratch, i, _BOUND)
            b = unspill_loose(form, scratch, i + quarter, _BOUND)
            c = unspill_loose(form, scratch, i + 2 * quarter, _BOUND) * zeta
            d = unspill_loose(form, scratch, i + 3 * quarter, _BOUND) * zeta
            s = (b + d) * zeta_left
            t = (b - d) * zeta_right
            spill_loose(form, scratch, i, a + c + s)
            spill_loose(form, scratch, i + quarter, lifted(a + c - s))
            spill_loose(form, scratch, i + 2 * quarter, lifted(a - c + t))
            spill_loose(form, scratch, i + 3 * quarter, lifted(a - c - t))


@jit
def _write_columns(form, vectors, tables, scratch, lines, column):  # type: ignore[no-untyped-def]
    """Scratch to output, times start * ratio^k, less `minus`."""
    columns = len(tables.start)
    factor, ratio = load(form, tables.start, column), load(form, tables.ratio, column)
    for k in range(lines):
        x = unspill_loose(form, scratch, tables.order[k], _BOUND) * factor
        row = k * columns + column
        if len(vectors.minus):
            store(form, vectors.target, row, canonical(x - load(form, vectors.minus, row)))
        else:
            store(form, vectors.target, row, canonical(x))
        if tables.geometric:
            factor = canonical(factor * ratio)
