"""1/x in Fq and Fq2, one lane or eight.

Eight lanes are merged into one number by five products, inverted once, and spread again. The one number is
inverted by batches of 30 division steps on signed 30-bit limbs: plain 64-bit integers hold every product and
sum.

Symbols    f, g     start as p and x; a division step halves g (or g - f, g + f) and keeps gcd(f, g)
           d, e     d*x = f and e*x = g (mod p) throughout; at the end g = 0, f = +-1, so 1/x = +-d
           t        the 2x2 matrix of a batch, scaled by 2^30: applied to (f, g) exactly, to (d, e) modulo p
Bounds     |entries of t| sum to at most 2^30 a row; d, e stay in (-2p, p); a limb sum stays below 2^62.
Source     [BY19] eprint 2019/266; batches and the range of d, e as in [safegcd bounds, P. Wuille].
Twin       tests compare with Python's pow(x, -1, p).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from cuzk.kernels import field
from cuzk.kernels.field import fq2
from cuzk.kernels.field_type import FQ, Element, Fq2
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FQ as FQ_MODULUS

_BATCH = 30
_LIMBS = 13  # 13 * 30 = 390 bits: p, a sign and the range of d, e
_MASK = (1 << _BATCH) - 1
_P_LIMBS = np.array(FQ_MODULUS.limbs(FQ_MODULUS.p, _LIMBS, _BATCH), np.int64)
_P_INVERSE = pow(FQ_MODULUS.p, -1, 1 << _BATCH)


@jit
def _division_steps(eta, f, g):
    """30 division steps on the low bits of f and g: new eta, and the matrix (u, v; q, r) scaled by 2^30.

    If g is odd, g += f, or g -= f where eta < 0 and f takes g's place. Masks, as branches would be guessed
    wrong half the time; and rows u + v*2^32, q + r*2^32 in one word: all is linear.
    """
    row_f, row_g = 1, 1 << 32
    for _ in range(_BATCH):
        negative = eta >> 63
        odd = -(g & 1)
        swap = odd & negative
        g += ((f ^ negative) - negative) & odd
        row_g += ((row_f ^ negative) - negative) & odd
        f += g & swap
        row_f += row_g & swap
        eta = (eta ^ swap) - swap - 1
        g >>= 1
        row_f <<= 1
    u, q = np.int64(np.int32(row_f)), np.int64(np.int32(row_g))
    return eta, u, (row_f - u) >> 32, q, (row_g - q) >> 32


@jit
def _apply_exact(f, g, u, v, q, r):
    """(f, g) := t (f, g) / 2^30, whose low limbs are zero by construction."""
    carry_f = (u * f[0] + v * g[0]) >> _BATCH
    carry_g = (q * f[0] + r * g[0]) >> _BATCH
    for i in range(1, _LIMBS):
        carry_f += u * f[i] + v * g[i]
        carry_g += q * f[i] + r * g[i]
        f[i - 1], g[i - 1] = carry_f & _MASK, carry_g & _MASK
        carry_f >>= _BATCH
        carry_g >>= _BATCH
    f[_LIMBS - 1], g[_LIMBS - 1] = carry_f, carry_g


@jit
def _apply_modular(d, e, u, v, q, r):
    """(d, e) := t (d, e) / 2^30 mod p: multiples of p lift negative inputs and clear the low limb."""
    sign_d, sign_e = d[_LIMBS - 1] >> 63, e[_LIMBS - 1] >> 63
    lift_d = (u & sign_d) + (v & sign_e)
    lift_e = (q & sign_d) + (r & sign_e)
    carry_d = u * d[0] + v * e[0]
    carry_e = q * d[0] + r * e[0]
    lift_d -= (_P_INVERSE * (carry_d & _MASK) + lift_d) & _MASK
    lift_e -= (_P_INVERSE * (carry_e & _MASK) + lift_e) & _MASK
    carry_d = (carry_d + _P_LIMBS[0] * lift_d) >> _BATCH
    carry_e = (carry_e + _P_LIMBS[0] * lift_e) >> _BATCH
    for i in range(1, _LIMBS):
        carry_d += u * d[i] + v * e[i] + _P_LIMBS[i] * lift_d
        carry_e += q * d[i] + r * e[i] + _P_LIMBS[i] * lift_e
        d[i - 1], e[i - 1] = carry_d & _MASK, carry_e & _MASK
        carry_d >>= _BATCH
        carry_e >>= _BATCH
    d[_LIMBS - 1], e[_LIMBS - 1] = carry_d, carry_e


@jit
def _add_times(x, k):
    """x := k*x + p if k*x is negative, else k*x; k is 1 or -1. From (-2p, p), twice, into [0, p)."""
    carry = np.int64(0)
    for i in range(_LIMBS):
        carry += k * x[i]
        x[i] = carry & _MASK if i < _LIMBS - 1 else carry
        carry >>= _BATCH
    if x[_LIMBS - 1] < 0:
        carry = np.int64(0)
        for i in range(_LIMBS):
            carry += x[i] + _P_LIMBS[i]
            x[i] = carry & _MASK if i < _LIMBS - 1 else carry
            carry >>= _BATCH


@jit
def _split_limbs(words, limbs):
    """Six 64-bit words to 13 limbs of 30 bits."""
    for i in range(_LIMBS):
        word, shift = (_BATCH * i) // 64, (_BATCH * i) % 64
        limb = words[word] >> np.uint64(shift)
        if shift > 64 - _BATCH and word + 1 < 6:
            limb |= words[word + 1] << np.uint64(64 - shift)
        limbs[i] = np.int64(limb & np.uint64(_MASK))


@jit
def _join_words(limbs, words):
    for i in range(6):
        words[i] = 0
    for i in range(_LIMBS):
        word, shift = (_BATCH * i) // 64, (_BATCH * i) % 64
        limb = np.uint64(limbs[i])
        words[word] |= limb << np.uint64(shift)
        if shift > 64 - _BATCH and word + 1 < 6:
            words[word + 1] |= limb >> np.uint64(64 - shift)


@jit
def _invert_words(words):
    """words := 1/words mod p as plain integers, in place; 0 stays 0. Variable time."""
    f, g = _P_LIMBS.copy(), np.empty(_LIMBS, np.int64)
    d, e = np.zeros(_LIMBS, np.int64), np.zeros(_LIMBS, np.int64)
    _split_limbs(words, g)
    e[0] = 1
    eta = -1
    while np.any(g):
        low_f, low_g = f[0] + (f[1] << _BATCH), g[0] + (g[1] << _BATCH)
        eta, u, v, q, r = _division_steps(eta, low_f, low_g)
        _apply_exact(f, g, u, v, q, r)
        _apply_modular(d, e, u, v, q, r)
    _add_times(d, 1)
    _add_times(d, 1 if f[_LIMBS - 1] >= 0 else -1)
    _join_words(d, words)


@jit
def _invert_number(x):
    """1/x for a one-lane element as a plain integer."""
    words = np.empty(6, np.uint64)
    for i, word in enumerate(field.to_words(x)):
        words[i] = word
    _invert_words(words)
    return field.from_words(FQ, (words[0], words[1], words[2], words[3], words[4], words[5]))


def inverse(form: Any, x: Any) -> Any:
    """1/x in Montgomery form, lane by lane. If any lane is 0, every lane of the result is 0.

    Cost: one lane about 2 us; eight lanes five products more, together.
    """
    raise NotImplementedError("called from compiled code only")


@overload(inverse)
def _inverse_fq(form, x):
    if not (isinstance(x, Element) and field.is_field(form)):
        return None
    if form.form.lanes == 1:
        return lambda form, x: _invert_number(x) * field.r_cubed(form)

    def eight_lanes(form, x):
        """`others` becomes the product of the seven other lanes, `total` of all eight, in every lane."""
        x = field.carried(x)
        others = field.rotate_lanes(x, 4)
        total = x * others
        far = field.rotate_lanes(total, 2)
        others, total2 = others * far, total * far
        near = field.rotate_lanes(total2, 1)
        others2, total3 = others * near, total2 * near
        number = _invert_number(field.first_lane(field.canonical(total3)))
        return field.broadcast(form, number) * field.r_cubed(form) * others2

    return eight_lanes


@overload(inverse)
def _inverse_fq2(form, x):
    """1/(c0 + c1 u) = (c0 - c1 u) / (c0^2 + c1^2)."""
    if not isinstance(x, Fq2):
        return None
    base = form.form.base

    def impl(form, x):
        norm_inverse = inverse(base, field.sqr(x.c0) + field.sqr(x.c1))
        return fq2(x.c0 * norm_inverse, field.carried(field.zero(base) - x.c1 * norm_inverse))

    return impl
