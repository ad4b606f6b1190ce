"""Many affine additions with one shared inversion: the only way that this target adds points in bulk.

R = P + Q, lambda = (y_Q - y_P) / (x_Q - x_P): x_R = lambda^2 - x_P - x_Q, y_R = lambda (x_P - x_R) - y_P.
Symbols    group G of `lanes` pairs, worked on side by side; m groups a batch
1 up       the running product of the denominators, kept before each factor        1M a pair
2 invert   one inversion for the batch (`inverse` merges the lanes)                 2 us a batch
3 down     each denominator's inverse from the kept products, then the sum          4M + 1S a pair
Cost       6 products a pair in G1: 60 ns with eight lanes in cache, of which 37 are the products.
Ranges     eight lanes: coordinates in rows are below 2p, `reduced`, not canonical; points of a file are both.
Memory     rows are gathered twice, so the rows of later groups are prefetched (15-45 % on large tables).
Complete   a pair with equal x would make the whole product zero: `batch_add` finds that by its total, writes
           nothing, and the caller uses `batch_add_complete`, which knows the identity (0, 0), doublings and
           opposites.
Source     Montgomery's trick; [CycloneMSM] eprint 2022/1396, 5.3.
"""

from __future__ import annotations

from cuzk.kernels.field import (
    any_lane,
    canonical,
    carried,
    gather,
    is_zero,
    lanes_of,
    negate_where,
    one,
    prefetch,
    reduced,
    select,
    sign_mask,
    spill,
    sqr,
    store_at,
    unspill,
    words_of,
    zero,
)
from cuzk.kernels.inverse import inverse
from cuzk.kernels.jit import jit

PREFETCH_GROUPS = 8  # groups between a prefetch and its use: measured flat from 6 to 12


@jit
def _x(form, rows, codes, i):
    return gather(form, rows, codes, i, 0)


@jit
def _y(form, rows, codes, i):
    return negate_where(sign_mask(form, codes, i), gather(form, rows, codes, i, words_of(form)))


@jit
def _dx(form, rows, left, right, i):
    return carried(_x(form, rows, right, i) - _x(form, rows, left, i))


@jit
def _store_point(form, rows, row, x, y):
    store_at(form, rows, row, 0, x)
    store_at(form, rows, row, words_of(form), y)


@jit
def batch_add(form, rows, left, right, count, out_row, products):
    """rows[out_row + k] = +-rows[left[k]] +- rows[right[k]] for k < count; False if a pair has equal x.

    form      coordinates of the group: FQ, FQ8 (G1), FQ2, FQ2_8 (G2)
    rows      (n, 2*words) uint64: x, y in Montgomery form, below 2p with eight lanes;
              no identity among the summands
    left, right  (count,) uint32 codes `row << 1 | negative`; count is a multiple of the lanes
    products  scratch: (count * words,) uint64, 64-byte aligned
    On False nothing was written: use `batch_add_complete`.
    """
    lanes = lanes_of(form)
    product = carried(one(form) * one(form))
    dx = _dx(form, rows, left, right, 0)
    for i in range(0, count, lanes):
        ahead = i + PREFETCH_GROUPS * lanes
        if ahead < count:
            prefetch(form, rows, left, ahead)
            prefetch(form, rows, right, ahead)
        spill(form, products, i // lanes, product)
        following = _dx(form, rows, left, right, min(i + lanes, count - lanes))  # while this product is made
        product, dx = product * dx, following
    if any_lane(is_zero(product)):
        return False
    inverse_product = carried(inverse(form, product))
    for i in range(count - lanes, -1, -lanes):
        behind = i - PREFETCH_GROUPS * lanes
        if behind >= 0:
            prefetch(form, rows, left, behind)
            prefetch(form, rows, right, behind)
        x1, x2 = _x(form, rows, left, i), _x(form, rows, right, i)
        y1, y2 = _y(form, rows, left, i), _y(form, rows, right, i)
        slope = (y2 - y1) * (inverse_product * unspill(form, products, i // lanes))
        inverse_product = inverse_product * (x2 - x1)
        x3 = reduced(sqr(slope) - x1 - x2)
        _store_point(form, rows, out_row + i, x3, reduced(slope * (x1 - x3) - y1))
    return True


@jit
def _cases(form, rows, left, right, i):
    """Masks of one group: P is the identity; Q is; P = Q, a doubling; P = -Q, the identity."""
    x1, x2 = _x(form, rows, left, i), _x(form, rows, right, i)
    y1, y2 = _y(form, rows, left, i), _y(form, rows, right, i)
    left_identity = is_zero(x1) & is_zero(y1)
    right_identity = is_zero(x2) & is_zero(y2)
    same_x = is_zero(x2 - x1) & ~left_identity & ~right_identity
    doubling = same_x & is_zero(y2 - y1) & ~is_zero(y1)
    return left_identity, right_identity, doubling, same_x & ~doubling


@jit
def _denominator(form, rows, left, right, i, cases):
    left_identity, right_identity, doubling, opposite = cases
    y = _y(form, rows, left, i)
    dx = _dx(form, rows, left, right, i)
    plain = select(left_identity | right_identity | opposite, one(form), dx)
    return select(doubling, y + y, plain)


@jit
def batch_add_complete(form, rows, left, right, count, out_row, products):
    """As `batch_add` for any summands, identity rows included; True if a result is the identity (0, 0).

    Cost about twice that of `batch_add`: every pair is classified twice.
    """
    lanes = lanes_of(form)
    product = carried(one(form) * one(form))
    for i in range(0, count, lanes):
        spill(form, products, i // lanes, product)
        cases = _cases(form, rows, left, right, i)
        product = product * _denominator(form, rows, left, right, i, cases)
    inverse_product = carried(inverse(form, product))
    some_identity = False
    for i in range(count - lanes, -1, -lanes):
        cases = _cases(form, rows, left, right, i)
        left_identity, right_identity, doubling, opposite = cases
        x1, x2 = _x(form, rows, left, i), _x(form, rows, right, i)
        y1, y2 = canonical(_y(form, rows, left, i)), canonical(_y(form, rows, right, i))
        denominator = _denominator(form, rows, left, right, i, cases)
        x_squared = sqr(x1)
        numerator = select(doubling, x_squared + x_squared + x_squared, y2 - y1)
        slope = carried(numerator) * (inverse_product * unspill(form, products, i // lanes))
        inverse_product = inverse_product * denominator
        x3 = canonical(sqr(slope) - x1 - x2)
        y3 = canonical(slope * (x1 - x3) - y1)
        x3 = select(left_identity, x2, select(right_identity, x1, select(opposite, zero(form), x3)))
        y3 = select(left_identity, y2, select(right_identity, y1, select(opposite, zero(form), y3)))
        some_identity |= any_lane(opposite | (left_identity & right_identity))
        _store_point(form, rows, out_row + i, canonical(x3), canonical(y3))
    return some_identity
