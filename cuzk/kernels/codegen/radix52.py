"""Montgomery arithmetic on 52-bit limbs, for AVX-512 IFMA; a word holds one limb of one element a lane.

Limbs     *carried*: each in [0, 2^52). *loose*: signed 64-bit sums of a few carried ones, value unchanged.
Values    a carried value lies in [0, k*p) for a k that the caller tracks; R = 2^(52 n).
Product   a*b/R mod p in [0, 2p), whenever a*b <= p^2 * floor(R/p): no conditional subtraction, because
          R/p > 2^35 (Fq) or 2^5 (Fr).
Rows      Row i adds a*b[i], then drops limb 0 with digit d: d*2^(52 i) is replaced by d*N*2^(52(i+1)), where
          N = 2^-52 mod p. The digit is the multiplier, there is no quotient to wait for. The sum grows to
          2^52 p; the last two rows add q*p instead, with q such that limb 0 becomes a multiple of 2^52, and
          bring it below a*b/R + p + 2^-51 p.
Cost      Fq: 258 multiply-adds a product, 202 a square.
Source    [KAK96] CIOS; [GK16] for the use of the 52-bit multiply-add.
"""

from __future__ import annotations

from typing import Any

from cuzk.kernels.modulus import Modulus

WIDTH = 52
_ROWS_BY_QUOTIENT = 2
_MULTIPLES = 8  # that a lookup holds
_MARGIN = 16  # units of the top limb: more than the carries that loose limbs below it still hold
Words = list[Any]


def limb_count(modulus: Modulus) -> int:
    """Limbs of 52 bits, so that at least three bits are spare: 8 for Fq, 5 for Fr."""
    return -(-(modulus.bits + 3) // WIDTH)


def constant(m: Any, value: int, count: int) -> Words:
    """`value` as carried limbs of the machine, the same in every lane."""
    return [m.const(value >> (WIDTH * i) & ((1 << WIDTH) - 1)) for i in range(count)]


def carry(m: Any, limbs: Words) -> Words:
    """Loose to carried, for a value that is not negative. Cost 3(n-1) operations."""
    limbs, mask = list(limbs), m.const((1 << WIDTH) - 1)
    for i in range(len(limbs) - 1):
        limbs[i + 1] = m.add(limbs[i + 1], m.sar(limbs[i], WIDTH))
        limbs[i] = m.and_(limbs[i], mask)
    return limbs


def add_loose(m: Any, a: Words, b: Words) -> Words:
    """a + b, loose."""
    return [m.add(x, y) for x, y in zip(a, b, strict=True)]


def sub_loose(m: Any, a: Words, b: Words) -> Words:
    """a - b, loose; may be negative."""
    return [m.sub(x, y) for x, y in zip(a, b, strict=True)]


def add_multiple(m: Any, a: Words, k: int, modulus: Modulus) -> Words:
    """a + k*p, loose: lifts a value above -k*p to a positive one before `carry`."""
    return add_loose(m, a, constant(m, k * modulus.p, len(a))) if k else a


def mul_mont_lt_2p(m: Any, a: Words, b: Words, modulus: Modulus) -> Words:
    """a*b/R mod p, carried, in [0, 2p), for carried a, b.

    An accumulator takes at most four 52-bit halves a row, n rows: below 2^(52+2+3), far from 2^63.
    """
    acc = [m.const(0)] * (len(a) + 1)
    for i, y in enumerate(b):
        _add_row(m, acc, a, y)
        acc = _drop_limb(m, acc, m.const(0), i, modulus)
    return carry(m, acc[:-1])


def sqr_mont_lt_2p(m: Any, a: Words, modulus: Modulus) -> Words:
    """a*a/R mod p, as `mul_mont_lt_2p`. The n(n-1)/2 cross products are made once and doubled."""
    n = len(a)
    wide = [m.const(0)] * (2 * n)
    for i in range(n):
        for j in range(i + 1, n):
            wide[i + j] = m.mad_lo52(wide[i + j], a[i], a[j])
            wide[i + j + 1] = m.mad_hi52(wide[i + j + 1], a[i], a[j])
    wide = [m.add(w, w) for w in wide]
    for i in range(n):
        wide[2 * i] = m.mad_lo52(wide[2 * i], a[i], a[i])
        wide[2 * i + 1] = m.mad_hi52(wide[2 * i + 1], a[i], a[i])
    return reduce_wide_lt_2p(m, wide, modulus)


def add_product(m: Any, low: Words, high: Words, a: Words, b: Words) -> None:
    """low + 2^52 high += a*b, in place: 2n - 1 columns each, for carried a, b.

    Lower and upper halves are summed apart, or each column would wait for itself twice as often. A product
    adds at most n of them to a column, so that 2^8 products stay far below 2^63.
    """
    for i, y in enumerate(b):
        for j, x in enumerate(a):
            low[i + j] = m.mad_lo52(low[i + j], x, y)
            high[i + j] = m.mad_hi52(high[i + j], x, y)


def join_halves(m: Any, low: Words, high: Words) -> Words:
    """low + 2^52 high as 2n columns."""
    return [low[0], *(m.add(x, y) for x, y in zip(low[1:], high[:-1], strict=True)), high[-1]]


def reduce_wide_lt_2p(m: Any, wide: Words, modulus: Modulus) -> Words:
    """wide/R mod p, carried, in [0, 2p), for 2n columns whose value is at most R*p."""
    n = len(wide) // 2
    acc, above = wide[: n + 1], [*wide[n + 1 :], m.const(0)]
    for i in range(n):
        acc = _drop_limb(m, acc, above[i], i, modulus)
    return carry(m, acc[:-1])


def _add_row(m: Any, acc: Words, a: Words, y: Any) -> None:
    """acc += a*y, in place. Of every operand the low 52 bits count."""
    for j, x in enumerate(a):
        acc[j] = m.mad_lo52(acc[j], x, y)
    for j, x in enumerate(a):
        acc[j + 1] = m.mad_hi52(acc[j + 1], x, y)


def _drop_limb(m: Any, acc: Words, above: Any, row: int, modulus: Modulus) -> Words:
    """(acc + a multiple of p) / 2^52: the limbs move down by one, `above` is the new top one."""
    n = len(acc) - 1
    if row < n - _ROWS_BY_QUOTIENT:
        digit, *acc = [*acc, above]
        acc[0] = m.add(acc[0], m.shr(digit, WIDTH))
        _add_row(m, acc, constant(m, pow(1 << WIDTH, -1, modulus.p), n), digit)
        return acc
    quotient = m.mad_lo52(m.const(0), acc[0], m.const(modulus.m0(WIDTH)))
    _add_row(m, acc, constant(m, modulus.p, n), quotient)
    acc[1] = m.add(acc[1], m.shr(acc[0], WIDTH))
    return [*acc[1:], above]


def subtract_if_not_less(m: Any, a: Words, k: int, modulus: Modulus) -> Words:
    """a - k*p if that is not negative, else a; carried in and out."""
    less = carry(m, sub_loose(m, a, constant(m, k * modulus.p, len(a))))
    return [m.select_negative(less[-1], x, y) for x, y in zip(a, less, strict=True)]


def canonical(m: Any, a: Words, bound: int, modulus: Modulus) -> Words:
    """A carried value in [0, bound*p) brought to [0, p), by halving the bound."""
    while bound > 1:
        half = (bound + 1) // 2
        a = subtract_if_not_less(m, a, half, modulus)
        bound = half
    return a


def reduce_lt_2p(m: Any, a: Words, low: int, high: int, modulus: Modulus) -> Words:
    """A loose value in [-low*p, high*p) brought to [0, 2p), carried.

    The top limb tells how many p to subtract, one too many at the most, and one less is subtracted: a lookup
    and a subtraction for each limb, and the carries that are due anyway. Wider ranges are halved before.
    """
    while low + high >= _MULTIPLES:
        half = (low + high + 1) // 2
        a = subtract_if_not_less(m, carry(m, add_multiple(m, a, low, modulus)), half, modulus)
        low, high = 0, half
    n, p = len(a), modulus.p
    unit = WIDTH * (n - 1)
    lifted = m.add(a[-1], m.const((low * p >> unit) + _MARGIN))
    number = m.mad_hi52(m.const(0), lifted, m.const((1 << (WIDTH + unit)) // p))
    multiples = [_signed_limbs((k - low - 1) * p, n) for k in range(_MULTIPLES)]
    rest = [m.sub(limb, m.lookup(list(values), number)) for limb, *values in zip(a, *multiples, strict=True)]
    return carry(m, rest)


def _signed_limbs(value: int, count: int) -> list[int]:
    sign = -1 if value < 0 else 1
    return [sign * (abs(value) >> (WIDTH * i) & ((1 << WIDTH) - 1)) for i in range(count)]


def pack64(m: Any, a: Words, count: int) -> Words:
    """Carried 52-bit limbs as `count` 64-bit words: the form in memory and of plain integers."""
    words = []
    for i in range(count):
        first, shift = divmod(64 * i, WIDTH)
        word = m.shr(a[first], shift) if shift else a[first]
        offset = WIDTH - shift
        while offset < 64 and first + 1 < len(a):
            first += 1
            word = m.or_(word, m.shl(a[first], offset))
            offset += WIDTH
        words.append(word)
    return words


def unpack64(m: Any, words: Words, count: int) -> Words:
    """64-bit words as `count` carried 52-bit limbs."""
    mask, limbs = m.const((1 << WIDTH) - 1), []
    for i in range(count):
        first, shift = divmod(WIDTH * i, 64)
        limb = m.shr(words[first], shift) if shift else words[first]
        if shift + WIDTH > 64 and first + 1 < len(words):
            limb = m.or_(limb, m.shl(words[first + 1], 64 - shift))
        limbs.append(m.and_(limb, mask))
    return limbs
