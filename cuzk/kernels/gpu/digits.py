"""Digits of scalars on the GPU, and where the buckets of a window lie.

Symbols    W windows hold the bits of a scalar exactly: the lowest `wide` have c bits, the others c - 1.
           Digits lie in [-B, B] with B = 2^(bits - 1), without carries, as in `kernels.msm.recode`; bucket
           |digit| - 1 of its window, windows one after another. Within a pass windows count from its first
           one, and so does `wide`.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import register_jitable
from numpy.typing import NDArray

from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.pair_add import SIGN
from cuzk.kernels.gpu.sum_schedule import CONSTANT_WORDS, GpuPlan
from cuzk.kernels.modulus import FR

THREADS = 256
_U64 = pointer(types.uint64)


def digit_constants(plan: GpuPlan) -> NDArray[np.uint64]:
    """(12,): half a window for each window but the top one; that less r; r/2 rounded down."""
    halves = sum(1 << (plan.start(w + 1) - 1) for w in range(plan.windows - 1))
    words = [FR.limbs(number % (1 << 256), 4, 64) for number in (halves, halves - FR.p, FR.p // 2)]
    return np.array(words, np.uint64).reshape(CONSTANT_WORDS)


@register_jitable
def buckets_below(w, c, wide):  # type: ignore[no-untyped-def]
    """Buckets of all windows before w."""
    narrow = max(np.int64(w) - np.int64(wide), np.int64(0))
    return ((np.int64(w) - narrow) << np.int64(c - 1)) + (narrow << np.int64(c - 2))


@register_jitable
def bits_of_window(w, c, wide):  # type: ignore[no-untyped-def]
    return np.int32(c) if w < wide else np.int32(c - 1)


@register_jitable
def window_of(bucket, c, wide):  # type: ignore[no-untyped-def]
    """The window of a bucket."""
    narrow = bucket - (np.int64(wide) << np.int64(c - 1))
    return bucket >> np.int64(c - 1) if narrow < 0 else np.int64(wide) + (narrow >> np.int64(c - 2))


@register_jitable
def code_of(i, digit):  # type: ignore[no-untyped-def]
    """Of row i, negated where the digit is negative."""
    return np.uint32(np.uint32(i) | np.uint32(SIGN)) if digit < 0 else np.uint32(i)


@register_jitable
def _raised(scalars, i, constants):  # type: ignore[no-untyped-def]
    """Scalar i, less r if that is nearer to 0, plus half a window for each window but the top one."""
    s0, s1, s2, s3 = scalars[4 * i], scalars[4 * i + 1], scalars[4 * i + 2], scalars[4 * i + 3]
    is_above = s0 > constants[8]
    is_above = s1 > constants[9] or (s1 == constants[9] and is_above)
    is_above = s2 > constants[10] or (s2 == constants[10] and is_above)
    is_above = s3 > constants[11] or (s3 == constants[11] and is_above)
    first = 4 if is_above else 0
    s0, carry = _sum(s0, constants[first], np.uint64(0))
    s1, carry = _sum(s1, constants[first + 1], carry)
    s2, carry = _sum(s2, constants[first + 2], carry)
    s3, carry = _sum(s3, constants[first + 3], carry)
    return s0, s1, s2, s3


@register_jitable
def _sum(a, b, carry):  # type: ignore[no-untyped-def]
    partial = a + carry
    total = partial + b
    return total, np.uint64(partial < carry) | np.uint64(total < partial)


@register_jitable
def _shifted(s0, s1, s2, s3, bits):  # type: ignore[no-untyped-def]
    """The signed number in four words, divided by 2^bits; 0 < bits < 64."""
    down, up = np.uint64(bits), np.uint64(64 - bits)
    s0, s1, s2 = s0 >> down | s1 << up, s1 >> down | s2 << up, s2 >> down | s3 << up
    return s0, s1, s2, np.uint64(np.int64(s3) >> np.int64(bits))


@register_jitable
def put_digits(scalars, n, i, constants, c, wide, windows, first_window, end_window, digits):  # type: ignore[no-untyped-def]
    """digits[w - first_window, i] of scalars[i], for the windows of a pass."""
    s0, s1, s2, s3 = _raised(scalars, i, constants)
    for w in range(end_window):
        bits = bits_of_window(w, c, wide)
        if w >= first_window:
            digit = np.int64(s0)  # of the top window, what is left with its sign
            if w < windows - 1:
                mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
                digit = np.int64(s0 & mask) - (np.int64(1) << np.int64(bits - 1))
            digits[np.int64(w - first_window) * n + i] = np.int32(digit)
        s0, s1, s2, s3 = _shifted(s0, s1, s2, s3, bits)


@cuda_jit(
    _U64, types.uint32, _U64, types.int32, types.int32, types.int32, types.int32, types.int32,
    pointer(types.int32), launch_bounds=(THREADS,),
)  # fmt: skip
def make_digits(scalars, n, constants, c, wide, windows, first_window, end_window, digits):  # type: ignore[no-untyped-def]
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if i < n:
        put_digits(scalars, n, i, constants, c, wide, windows, first_window, end_window, digits)
