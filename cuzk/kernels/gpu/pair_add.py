"""Batched affine additions of pairs of points: the one kernel that all sums of points on the GPU are made of.

Symbols    A slot names a point: below n_points one of the given points, else row slot - n_points of the
           pool; bit 31 of a code `slot | sign << 31` negates. Pair q is the codes in the halves of pairs[q];
           its sum becomes a row of the pool. T threads a block, S threads in all; a thread takes the pairs
           t, t + S, t + 2S, ...: up to K of them at once.
1 forward  running product of the denominators x2 - x1; what it was before each pair is kept in `prefixes`: 1M
2 invert   the block's T products: a binary tree in shared memory down to 32, which one warp inverts
3 back     1/(x2 - x1) = prefix * inverse, then the sum: 4M + 1S
Special    A pair with an identity, (0, 0), or of equal x is noticed by a low word that is 0; then all words
           are looked at, on a branch hardly ever taken: the denominator is 2y for a doubling, and 1 where
           the sum needs none.
Latency    x is read twice, y once. Codes are read two pairs ahead, x coordinates one, so that they arrive in
           time.
Source     [CycloneMSM] eprint 2022/1396, 5.3; Montgomery's inversion of many at once.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba.core import types
from numba.extending import register_jitable

from cuzk.kernels.field import load, one, sqr, store, zero
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.inverse import inverse_gpu
from cuzk.kernels.gpu.jit import CudaKernel, cuda_jit
from cuzk.kernels.gpu.ops import lowest_word
from cuzk.kernels.gpu.sum_schedule import Form, PairShape
from cuzk.kernels.xyzz import vanishes

SIGN = 1 << 31
WARP = 32
_SLOT_MASK = SIGN - 1
_ORDINARY, _EQUAL, _OPPOSITE, _FIRST_IS_IDENTITY, _SECOND_IS_IDENTITY = range(5)


@register_jitable
def slot_of(code):  # type: ignore[no-untyped-def]
    return np.uint32(np.uint32(code) & np.uint32(_SLOT_MASK))


@register_jitable
def second(entry):  # type: ignore[no-untyped-def]
    """The second code of a pair; the first is the lower half."""
    return np.uint32(entry >> np.uint64(32))


@register_jitable
def load_point(form, points, pool, n_points, code):  # type: ignore[no-untyped-def]
    """One coordinate, whatever the sign: of the given points or of the pool."""
    source, row = points, slot_of(code)
    if row >= n_points:
        source, row = pool, np.uint32(row - n_points)
    return load(form, source, row)


@register_jitable
def with_sign(form, code, y):  # type: ignore[no-untyped-def]
    """By a branch, not a selection: after the first round no thread takes it."""
    if code & np.uint32(SIGN):
        y = zero(form) - y
    return y


@register_jitable
def _is_suspect(x1, x2, d):  # type: ignore[no-untyped-def]
    """Whether a low word is 0, as it is in every special case."""
    return lowest_word(x1) == 0 or lowest_word(x2) == 0 or lowest_word(d) == 0


@register_jitable
def _kind_of(x1, y1, x2, y2):  # type: ignore[no-untyped-def]
    if vanishes(x1) and vanishes(y1):
        return _FIRST_IS_IDENTITY
    if vanishes(x2) and vanishes(y2):
        return _SECOND_IS_IDENTITY
    if vanishes(x2 - x1):
        return _EQUAL if vanishes(y2 - y1) else _OPPOSITE
    return _ORDINARY


@cache
def pair_add_kernel(form: Form, shape: PairShape) -> CudaKernel:
    """Sums of the pairs of one round, into the pool.

    points_x, points_y  n_points elements each, Montgomery form; the identity is (0, 0)
    pool_x, pool_y      rows of sums
    pairs               uint64, the first code in the lower half
    sizes, bases        pairs of each round, and the pool's row of its first sum
    prefixes            `prefix_rows` elements of scratch
    """
    threads, nodes, most_steps, words = shape.threads, 2 * shape.threads, shape.steps, form.words
    early = int(shape.early)
    levels = (threads // WARP).bit_length() - 1
    assert threads == WARP << levels, shape
    coordinates = pointer(types.uint32)

    @cuda_jit(
        coordinates,
        coordinates,
        coordinates,
        coordinates,
        types.uint32,
        pointer(types.uint64),
        pointer(types.uint32),
        pointer(types.uint32),
        types.uint32,
        coordinates,
        launch_bounds=(threads, shape.blocks),
    )
    def add_pairs(points_x, points_y, pool_x, pool_y, n_points, pairs, sizes, bases, number, prefixes):  # type: ignore[no-untyped-def]
        tree = cuda.shared.array((nodes, words), types.uint32, alignment=16)
        count, first_sum = np.int64(sizes[number]), np.int64(bases[number])
        t = np.int32(cuda.threadIdx.x)
        first_of_block = np.int64(cuda.blockIdx.x) * threads
        stride = np.int64(cuda.gridDim.x) * threads
        whole = (count + stride - 1) // stride
        turns = (whole + most_steps - 1) // most_steps
        for turn in range(turns):
            depth = (whole + turns - 1) // turns
            if turn * depth * stride + first_of_block >= count:
                return
            start = turn * depth * stride + first_of_block + t
            steps = np.int32(0)
            if start < count:
                steps = np.int32(min(depth, (count - start + stride - 1) // stride))
            last = np.int32(steps - 1)

            running = one(form)
            if steps > 0:
                entry = pairs[start]
                x1 = load_point(form, points_x, pool_x, n_points, np.uint32(entry))
                x2 = load_point(form, points_x, pool_x, n_points, second(entry))
                entry = pairs[start + stride * min(np.int32(1), last)]
                for k in range(steps):
                    d = x2 - x1
                    if _is_suspect(x1, x2, d):
                        own = pairs[start + stride * k]
                        y1 = load_point(form, points_y, pool_y, n_points, np.uint32(own))
                        y2 = load_point(form, points_y, pool_y, n_points, second(own))
                        y1, y2 = with_sign(form, np.uint32(own), y1), with_sign(form, second(own), y2)
                        kind = _kind_of(x1, y1, x2, y2)
                        if kind != _ORDINARY:
                            d = y1 + y1 if kind == _EQUAL else one(form)
                    x1 = load_point(form, points_x, pool_x, n_points, np.uint32(entry))
                    x2 = load_point(form, points_x, pool_x, n_points, second(entry))
                    entry = pairs[start + stride * min(np.int32(k + 2), last)]
                    store(form, prefixes, first_of_block + t + stride * k, running)
                    running = running * d

            inverse = _block_inverse(form, tree, t, threads, levels, running)

            if steps > 0:
                entry = pairs[start + stride * last]
                x1 = load_point(form, points_x, pool_x, n_points, np.uint32(entry))
                x2 = load_point(form, points_x, pool_x, n_points, second(entry))
                following = pairs[start + stride * max(np.int32(last - 1), np.int32(0))]
                for back in range(steps):
                    k = np.int32(last - back)
                    y1 = load_point(form, points_y, pool_y, n_points, np.uint32(entry))
                    y2 = load_point(form, points_y, pool_y, n_points, second(entry))
                    prefix = load(form, prefixes, first_of_block + t + stride * k)
                    d = x2 - x1
                    kind = _ORDINARY
                    if _is_suspect(x1, x2, d):
                        s1, s2 = with_sign(form, np.uint32(entry), y1), with_sign(form, second(entry), y2)
                        kind = _kind_of(x1, s1, x2, s2)
                        if kind != _ORDINARY:
                            d = s1 + s1 if kind == _EQUAL else one(form)
                    factor = inverse * prefix
                    inverse = inverse * d
                    y1, y2 = with_sign(form, np.uint32(entry), y1), with_sign(form, second(entry), y2)
                    slope = y2 - y1
                    if kind == _EQUAL:
                        square = sqr(x1)
                        slope = square + square + square
                    own, entry = entry, following
                    if early:
                        next_x1 = load_point(form, points_x, pool_x, n_points, np.uint32(entry))
                        next_x2 = load_point(form, points_x, pool_x, n_points, second(entry))
                    following = pairs[start + stride * max(np.int32(k - 2), np.int32(0))]
                    slope = slope * factor
                    x3 = sqr(slope) - x1 - x2
                    y3 = slope * (x1 - x3) - y1
                    if kind > _EQUAL:
                        x3, y3 = zero(form), zero(form)
                        if kind != _OPPOSITE:
                            code = second(own) if kind == _FIRST_IS_IDENTITY else np.uint32(own)
                            x3 = load_point(form, points_x, pool_x, n_points, code)
                            y3 = with_sign(form, code, load_point(form, points_y, pool_y, n_points, code))
                    row = first_sum + start + stride * k
                    store(form, pool_x, row, x3)
                    store(form, pool_y, row, y3)
                    if not early:
                        next_x1 = load_point(form, points_x, pool_x, n_points, np.uint32(entry))
                        next_x2 = load_point(form, points_x, pool_x, n_points, second(entry))
                    x1, x2 = next_x1, next_x2

    return add_pairs


@register_jitable
def _block_inverse(form, tree, t, threads, levels, x):  # type: ignore[no-untyped-def]
    """1/x for each thread's nonzero x. Node i of the tree is the product of nodes 2i and 2i + 1; leaves
    begin at `threads`.
    """
    store(form, tree, threads + t, x)
    cuda.syncthreads()
    width = np.int32(threads)
    for _ in range(levels):
        width = np.int32(width >> 1)
        if t < width:
            node = np.int32(width + t)
            store(form, tree, node, load(form, tree, 2 * node) * load(form, tree, 2 * node + 1))
        cuda.syncthreads()
    if t < WARP:
        node = np.int32(WARP + t)
        store(form, tree, node, inverse_gpu(form, load(form, tree, node)))
    cuda.syncthreads()
    width = np.int32(WARP)
    for _ in range(levels):
        inside, node = t < 2 * width, np.int32(2 * width + t)
        result = one(form)
        if inside:
            result = load(form, tree, node >> 1) * load(form, tree, node ^ 1)
        cuda.syncthreads()
        if inside:
            store(form, tree, node, result)
        cuda.syncthreads()
        width = np.int32(width << 1)
    return load(form, tree, threads + t)
