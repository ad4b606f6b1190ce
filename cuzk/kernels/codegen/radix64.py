"""Montgomery arithmetic on 64-bit limbs with double-width products: one element, always in [0, p).

R = 2^(64 n) > 2p, so a sum of two elements fits unsigned, and a sum less p fits signed. Whole numbers (`add`,
`sub`, conditional subtraction) are operations of the machine on all limbs at once: LLVM makes one carry chain
of an i384 addition. Source: [KAK96] CIOS, without the second carry word, which a modulus with a spare top bit
never needs.
"""

from __future__ import annotations

from typing import Any

from cuzk.kernels.modulus import Modulus

WIDTH = 64
Words = list[Any]


def limb_count(modulus: Modulus) -> int:
    """Limbs of 64 bits with at least one spare bit: 6 for Fq, 4 for Fr."""
    return -(-(modulus.bits + 1) // WIDTH)


def add_mod(m: Any, a: Any, b: Any, modulus: Modulus) -> Any:
    """a + b mod p on whole numbers."""
    return reduce_once(m, m.add(a, b), modulus)


def sub_mod(m: Any, a: Any, b: Any, modulus: Modulus) -> Any:
    """a - b mod p on whole numbers."""
    difference = m.sub(a, b)
    return m.select_negative(difference, m.add(difference, m.const(modulus.p)), difference)


def reduce_once(m: Any, a: Any, modulus: Modulus) -> Any:
    """a mod p for a in [0, 2p)."""
    less = m.sub(a, m.const(modulus.p))
    return m.select_negative(less, a, less)


def mul_mont(m: Any, a: Any, b: Any, modulus: Modulus) -> Any:
    """a*b/R mod p in [0, p), for a, b < p. Cost 2n^2 + n products.

    A row adds a*b[i] and q*p, q such that limb 0 becomes 0, and drops limb 0. The sum stays below 2^64 R
    because p < R/2: the two carries of a row fit one word.
    """
    n = limb_count(modulus)
    x, y, p = m.split(a, n), m.split(b, n), [m.word(v) for v in modulus.limbs(modulus.p, n, WIDTH)]
    zero, m0 = m.word(0), m.word(modulus.m0(WIDTH))
    acc = [zero] * n
    for i in range(n):
        acc[0], carry_ab = m.mad_wide(x[0], y[i], acc[0], zero)
        q = m.mul_word(acc[0], m0)
        _, carry_qp = m.mad_wide(q, p[0], acc[0], zero)
        for j in range(1, n):
            acc[j], carry_ab = m.mad_wide(x[j], y[i], acc[j], carry_ab)
            acc[j - 1], carry_qp = m.mad_wide(q, p[j], acc[j], carry_qp)
        acc[n - 1] = m.add_word(carry_ab, carry_qp)
    return reduce_once(m, m.join(acc), modulus)
