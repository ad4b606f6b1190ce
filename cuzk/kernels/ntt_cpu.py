"""One pass of a transform on the CPU: many short transforms side by side, in cache.

A pass transforms *columns* of N *lines* each; a value holds as many adjacent columns as the form has lanes.
They are read into scratch (eight lanes, N = 2^11: 655 KB, in the second-level cache), transformed there and
written out. Input and output are natural; scratch ends in bit-reversed order.

Butterflies  a +- zeta*b [CT65]: X^2k - zeta^2 = (X^k - zeta)(X^k + zeta), one zeta for a whole block. Blocks
             are nodes of a tree, numbered as a heap: the children of node h are 2h and 2h+1. Two levels at a
             time (radix 4: four products for four values). The root's zeta is 1, its product is left out.
Ranges       eight lanes: an input < p leaves the root < 4p, and a further radix-4 level adds 4p, because only
             the right-hand operand is a product. N <= 2^16 means at most seven of these: below 32p, where a
             product takes operands up to 35p. So nothing is reduced before the factor that every output gets.
Locality     levels run over all of scratch until a block fits the first-level cache, then block by block.
             Rows far apart are asked for early, which saves an eighth of the time at 2^22.
Source       [CT65] Cooley, Tukey. [Ber01] Bernstein, Multidigit multiplication, section 2: as divisions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.field import canonical, lanes_of, load, store
from cuzk.kernels.field_buffer import lifted, load_same, spill_loose, unspill_loose
from cuzk.kernels.field_memory import load_apart, prefetch_rows
from cuzk.kernels.jit import jit

MAX_LINES_LOG2 = 16
_BOUND = 33  # of values in scratch, see Ranges; a product below 2p is added to them, then 35p is the limit
_LINES_IN_L1 = 64  # eight lanes: 20 KB
_READ_AHEAD = 16  # lines of each part that are read before their butterflies, and asked for before that
_WRITE_AHEAD = 16  # output lines that are asked for before their turn
_EVEN_POWERS = 0x5555555555555555  # bits 0, 2, 4, ...

Words = NDArray[np.uint64]


class PassTables(NamedTuple):
    """Constants of a pass.

    zetas         (N, limbs): limb table by heap number; row 0 is not used
    start, ratio  (columns, 4), Montgomery form: output line k of a column is multiplied by start * ratio^k
    geometric     whether any ratio differs from 1
    order         (N,) int64: where in scratch output line k lies
    """

    zetas: Words
    start: Words
    ratio: Words
    geometric: bool
    order: NDArray[np.int64]


class PassVectors(NamedTuple):
    """What a pass reads and writes: (n, 4) canonical rows.

    source  line j of column c is row j*line_step + c*column_step
    times   the same row is multiplied into it; or no rows
    minus   subtracted from the output, row by row; or no rows
    target  output line k of column c is row k*columns + c
    """

    source: Words
    times: Words
    minus: Words
    target: Words
    line_step: int
    column_step: int


@jit
def transform_columns(form, vectors, tables, scratch, first, last):  # type: ignore[no-untyped-def]
    """Columns `first` to `last` of a pass, whole values. scratch: limbs * lanes * N words, on a cache line.

    Arrays leave their tuples here: inside the loops every access would count references.
    """
    source, times, minus, target, line_step, column_step = vectors
    zetas, start, ratio, geometric, order = tables
    for column in range(first, last, lanes_of(form)):
        _read(form, source, times, column * column_step, line_step, column_step, zetas, scratch)
        _levels_below_root(form, zetas, scratch)
        _write(form, scratch, order, start, ratio, geometric, minus, target, column)


@jit
def _root_radix(lines):  # type: ignore[no-untyped-def]
    """4, or 2 where log2 N is odd: so all further levels come in pairs."""
    return 4 if lines & _EVEN_POWERS else 2


@jit
def _read(  # type: ignore[no-untyped-def]
    form, source, times, first_row, line_step, column_step, zetas, scratch
):
    """Input lines through the root's butterflies into scratch, a few at a time."""
    lines = len(zetas)
    radix = _root_radix(lines)
    part = lines // radix
    zeta = load_same(form, zetas, radix - 1)  # radix 4: node 3's; radix 2 needs none
    for begin in range(0, part, _READ_AHEAD):
        end = min(part, begin + _READ_AHEAD)
        for first in range(begin, lines, part):
            last = first + end - begin
            _read_lines(form, source, times, first_row, line_step, column_step, scratch, first, last)
        if radix == 4:
            _root_radix4(form, zeta, scratch, part, begin, end)
        else:
            _root_radix2(form, scratch, part, begin, end)


@jit
def _read_lines(  # type: ignore[no-untyped-def]
    form, source, times, first_row, line_step, column_step, scratch, first, last
):
    for line in range(first, last):
        row = first_row + line * line_step
        prefetch_rows(form, source, row + _READ_AHEAD * line_step)
        x = load_apart(form, source, row, column_step)
        if len(times):
            prefetch_rows(form, times, row + _READ_AHEAD * line_step)
            x = canonical(x * load_apart(form, times, row, column_step))
        spill_loose(form, scratch, line, x)


@jit
def _root_radix2(form, scratch, half, begin, end):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        a = unspill_loose(form, scratch, i, 1)
        b = unspill_loose(form, scratch, i + half, 1)
        spill_loose(form, scratch, i, a + b)
        spill_loose(form, scratch, i + half, lifted(a - b))


@jit
def _root_radix4(form, zeta, scratch, quarter, begin, end):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        a = unspill_loose(form, scratch, i, 1)
        b = unspill_loose(form, scratch, i + quarter, 1)
        c = unspill_loose(form, scratch, i + 2 * quarter, 1)
        d = unspill_loose(form, scratch, i + 3 * quarter, 1)
        t = (b - d) * zeta
        spill_loose(form, scratch, i, a + c + b + d)
        spill_loose(form, scratch, i + quarter, lifted(a + c - b - d))
        spill_loose(form, scratch, i + 2 * quarter, lifted(a - c + t))
        spill_loose(form, scratch, i + 3 * quarter, lifted(a - c - t))


@jit
def _levels_below_root(form, zetas, scratch):  # type: ignore[no-untyped-def]
    blocks = _root_radix(len(zetas))
    size = len(zetas) // blocks
    while size > _LINES_IN_L1:
        _radix4_level(form, zetas, scratch, size, blocks, 2 * blocks)
        blocks, size = 4 * blocks, size // 4
    for block in range(blocks):
        node, end, block_size = blocks + block, blocks + block + 1, size
        while block_size > 1:
            _radix4_level(form, zetas, scratch, block_size, node, end)
            node, end, block_size = 4 * node, 4 * end, block_size // 4


@jit
def _radix4_level(form, zetas, scratch, size, node, end):  # type: ignore[no-untyped-def]
    """Two levels of the blocks of `size` lines that are the nodes from `node` to `end`."""
    quarter = size // 4
    for block in range(node, end):
        zeta = load_same(form, zetas, block)
        zeta_left = load_same(form, zetas, 2 * block)
        zeta_right = load_same(form, zetas, 2 * block + 1)
        first = block * size - len(zetas)  # the first block of this level is node N / size
        for i in range(first, first + quarter):
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
def _write(  # type: ignore[no-untyped-def]
    form, scratch, order, start, ratio, geometric, minus, target, column
):
    """Scratch to output, line k times start * ratio^k, less `minus`."""
    columns = len(start)
    factor, step = load(form, start, column), load(form, ratio, column)
    for k in range(len(order)):
        row = k * columns + column
        prefetch_rows(form, target, row + _WRITE_AHEAD * columns)
        x = unspill_loose(form, scratch, order[k], _BOUND) * factor
        if len(minus):
            prefetch_rows(form, minus, row + _WRITE_AHEAD * columns)
            store(form, target, row, canonical(x - load(form, minus, row)))
        else:
            store(form, target, row, canonical(x))
        if geometric:
            factor = canonical(factor * step)
