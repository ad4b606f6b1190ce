"""Kernels of the transforms on the GPU: passes of `ntt_schedule`, factor tables, small sizes, natural order.

A pass transforms 2^bits values along one axis of a vector seen as [outer][2^bits rows][2^columns_log2
columns], natural order in and out. A block takes a tile of 2^tile values: some columns, or without columns
some outer indices. A thread takes eight, whose rows differ in three bits; between steps values go through
shared memory, in place.

Products   of every output (inverse) or input (forward) with entry [row][column] of `near`; if there are two
           tables, [row][low bits of column] of `near` and [high bits of column][row] of `far`. Without
           columns, the inverse multiplies by [digit of the last step][0] of `near` only: the other digits
           have theirs in `steps`.
"""

from __future__ import annotations

from functools import cache

from numba.core import types
from numba.extending import register_jitable

from cuzk.kernels.field import FR_GPU, from_mont, load, one, store, zero
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.eight_values import (
    load_eight,
    multiply_eight,
    put_eight,
    store_eight,
    store_factor,
    subtract_eight,
    take_eight,
    transform_eight,
    twist_eight,
)
from cuzk.kernels.gpu.jit import CudaKernel, cuda_jit
from cuzk.kernels.gpu.ntt_schedule import EIGHT, MIN_BITS, PassShape, first_radix_log2, step_tables_log2

WORDS = pointer(types.uint32)
TABLE_THREADS = 128
_WARPS_A_MULTIPROCESSOR = 16  # 128 registers a thread; measured best: 12 or 20 warps are slower
_WARP = 32


@cache
def pass_kernel(shape: PassShape) -> CudaKernel:
    """The kernel of a pass.

    source, target  the vector before and after; they may be the same
    times, minus    further vectors of that size, read only if the shape says so
    steps           the tables of all steps but the last, one after another
    near, far       factor tables, see above
    near_log2       columns of `near`: all bits of the column, or its low bits with two tables
    """
    bits, tile, inverse, tables = shape.bits, shape.tile, int(shape.inverse), shape.tables
    strided, with_times, with_minus = shape.strided, shape.times, shape.minus
    columns = tile - bits if strided else 0
    column_mask = (1 << columns) - 1
    row_mask = (1 << bits) - 1
    radix = first_radix_log2(bits)
    top = bits - 3  # the lowest of the top three bits
    first_begin = EIGHT >> radix
    step_count = len(step_tables_log2(bits)) + 1
    rows_apart = 1 << top
    top_shift, fourth_shift, third_shift = top + columns, 6 + columns, 3 + columns
    fourth_table = 1 << bits
    third_table = fourth_table + ((1 << 9) if step_count == 4 else 0)
    before, after = (0, tables) if inverse else (tables, 0)
    by_digit = after == 1 and not strided
    last_begin = EIGHT if after == 0 else 1 if by_digit and not shape.scaled else 0

    @register_jitable
    def spread(thread, shift):  # type: ignore[no-untyped-def]
        """The thread's first place in the tile: its bits with three zeros inserted at `shift`."""
        low = (1 << shift) - 1
        return (thread & low) | (thread & ~low) << 3

    @register_jitable
    def output_row(reversed_digits):  # type: ignore[no-untyped-def]
        """The row of a thread's first output, from the bits of its row above those of the last step."""
        row = reversed_digits >> (top - radix)
        place, left = radix, top - radix
        while left > 0:
            left -= 3
            row |= (reversed_digits >> left & 7) << place
            place += 3
        return row

    def kernel(  # type: ignore[no-untyped-def]
        source, target, times, minus, steps, near, far, columns_log2, near_log2
    ):
        thread = types.int64(cuda.threadIdx.x)
        block = types.int64(cuda.blockIdx.x)
        place = spread(thread, top_shift)
        if strided:
            tiles_log2 = columns_log2 - columns
            column = (block & ((1 << tiles_log2) - 1)) << columns | (place & column_mask)
            origin = (block >> tiles_log2 << (columns_log2 + bits)) + column
        else:
            column = types.int64(0)
            origin = block << tile | (place >> bits << bits)
        row = place >> columns & row_mask
        step = rows_apart << columns_log2
        near_column = column & ((1 << near_log2) - 1)
        far_row = column >> near_log2 << bits

        x = load_eight(source, origin + (row << columns_log2), step)
        if with_times:
            x = multiply_eight(x, load_eight(times, origin + (row << columns_log2), step))
        if before == 2:
            x = twist_eight(
                twist_eight(x, 0, 0, far, far_row | row, rows_apart),
                0, 1, near, row << near_log2 | near_column, rows_apart << near_log2,
            )  # fmt: skip
        if before == 1:
            x = twist_eight(x, 0, 1, near, row << near_log2 | near_column, rows_apart << near_log2)

        x = transform_eight(x, radix, inverse, first_begin)
        x = twist_eight(x, first_begin, 1, steps, row, rows_apart)
        put_eight(tile, top_shift, place, x)
        cuda.syncthreads()
        if step_count == 4:
            place = spread(thread, fourth_shift)
            x = transform_eight(take_eight(tile, fourth_shift, place), 3, inverse, 1)
            x = twist_eight(x, 1, 1, steps, fourth_table + (place >> columns & 511), 64)
            put_eight(tile, fourth_shift, place, x)
            cuda.syncthreads()
        if step_count >= 3:
            place = spread(thread, third_shift)
            x = transform_eight(take_eight(tile, third_shift, place), 3, inverse, 1)
            x = twist_eight(x, 1, 1, steps, third_table + (place >> columns & 63), 8)
            put_eight(tile, third_shift, place, x)
            cuda.syncthreads()
        place = spread(thread, columns)
        y = transform_eight(take_eight(tile, columns, place), 3, inverse, last_begin)

        row = output_row((place >> columns & row_mask) >> 3)
        if after == 2:
            z = twist_eight(
                twist_eight(y, 0, 0, far, far_row | row, rows_apart),
                0, 1, near, row << near_log2 | near_column, rows_apart << near_log2,
            )  # fmt: skip
        else:
            if by_digit:
                z = twist_eight(y, last_begin, 1, near, 0, EIGHT)
            else:
                if after == 1:
                    z = twist_eight(y, 0, 1, near, row << near_log2 | near_column, rows_apart << near_log2)
                else:
                    z = y
        if with_minus:
            z = subtract_eight(z, load_eight(minus, origin + (row << columns_log2), step))
        store_eight(target, origin + (row << columns_log2), step, z)

    kernel.__name__ = shape.name
    blocks = _WARPS_A_MULTIPROCESSOR * _WARP // max(shape.threads, _WARP)
    arguments = [WORDS] * 7 + [types.int64] * 2
    return cuda_jit(*arguments, launch_bounds=(shape.threads, blocks))(kernel)


@register_jitable
def _power(base, exponent):  # type: ignore[no-untyped-def]
    """base^exponent, in Montgomery form."""
    result = one(FR_GPU)
    while exponent > 0:
        if exponent & 1:
            result = result * base
        base = base * base
        exponent >>= 1
    return result


@cuda_jit(WORDS, WORDS, types.int64, types.int64, launch_bounds=(TABLE_THREADS,))
def ntt_fill_table(table, constants, columns_log2, count):  # type: ignore[no-untyped-def]
    """Entry [row][column] = first * ratio^row * root^(row*column); constants: those, in Montgomery form."""
    i = types.int64(cuda.grid(1))
    if i < count:
        row, column = i >> columns_log2, i & ((1 << columns_log2) - 1)
        factor = load(FR_GPU, constants, 0) * _power(load(FR_GPU, constants, 1), row)
        factor = factor * _power(load(FR_GPU, constants, 2), row * column)
        store_factor(table, i, from_mont(FR_GPU, factor), factor)


@cuda_jit(WORDS, WORDS, WORDS, WORDS, WORDS, types.int64, types.int64, launch_bounds=(1 << (MIN_BITS - 1),))
def ntt_small(source, target, times, minus, constants, with_times, with_minus):  # type: ignore[no-untyped-def]
    """Transforms of as many values as a block has threads, a block each: output k is

    first * lead^k * sum_j x_j (ratio * root^k)^j         constants: first, lead, ratio, root, Montgomery
    """
    k = types.int64(cuda.threadIdx.x)
    n = types.int64(cuda.blockDim.x)
    origin = types.int64(cuda.blockIdx.x) * n
    point = load(FR_GPU, constants, 2) * _power(load(FR_GPU, constants, 3), k)
    value = zero(FR_GPU)
    j = n
    while j > 0:
        j -= 1
        x = load(FR_GPU, source, origin + j)
        if with_times:
            x = x * load(FR_GPU, times, origin + j)
        value = value * point + x
    value = value * (load(FR_GPU, constants, 0) * _power(load(FR_GPU, constants, 1), k))
    if with_minus:
        value = value - load(FR_GPU, minus, origin + k)
    cuda.syncthreads()
    store(FR_GPU, target, origin + k, value)


@cuda_jit(WORDS, WORDS, types.int64, types.int64, types.int64, launch_bounds=(TABLE_THREADS,))
def ntt_reorder(source, target, low, middle, high):  # type: ignore[no-untyped-def]
    """Row i of target = row j of source, j: i with its three digits in reverse; `low` etc. are their bits."""
    i = types.int64(cuda.grid(1))
    if i < 1 << (low + middle + high):
        digits = (i & ((1 << low) - 1)) << (middle + high)
        digits |= (i >> low & ((1 << middle) - 1)) << high
        digits |= i >> (low + middle)
        store(FR_GPU, target, i, load(FR_GPU, source, digits))
