"""Products by known factors in Fr, as programs of `asm` [Sho]: no Montgomery reduction.

    x*w - q*p, q = floor(w_shoup * x / 2^256), w_shoup = floor(w 2^256 / p)      in [0, 2p) for x < 2p

`radix32.mul_shoup` takes w and w_shoup as words. Here a factor is a constant, and its limbs that are 0 or
powers of two cost no product. One factor is that short: p = X^4 - X^2 + 1, so -X^3, of 191 bits, is a
fourth root of unity.
Costs      wide products + products of which only the lower half is needed:
           by any constant 86 + 14; by the fourth root 56 + 10.
"""

from __future__ import annotations

from cuzk.kernels.codegen.asm import WIDTH, Asm, Word, Words
from cuzk.kernels.codegen.radix32 import Columns, limb_count, reduce_once
from cuzk.kernels.modulus import FR, Modulus

LIMBS = limb_count(FR)
RADIX = 1 << LIMBS * WIDTH
_CUT = LIMBS - 2  # columns below it are left out of the product w_shoup * x, see `radix32.mul_shoup_lt_2p`


def companion(asm: Asm, mont: Words, modulus: Modulus) -> Words:
    """floor(w 2^256 / p) of a factor w, from its Montgomery form m = w 2^256 mod p: -m/p modulo 2^256."""
    minus_inverse = modulus.limbs(-pow(modulus.p, -1, RADIX) % RADIX, LIMBS, WIDTH)
    columns = Columns(asm)
    for i, limb in enumerate(mont):
        columns.add_row_below(list(minus_inverse), limb, at=i, end=LIMBS)
    return columns.joined(0, LIMBS, wraps=True)


def mul_constant(asm: Asm, x: Words, factor: int, modulus: Modulus) -> Words:
    """x*factor mod p, for x < 2p."""
    q = _quotient(asm, x, factor * RADIX // modulus.p)
    columns = Columns(asm)  # -q*p as in `radix32.mul_shoup_lt_2p`
    columns.words[0].update((c, asm.not_(word)) for c, word in enumerate(q))
    columns.words[1].update(enumerate([1, *q[:-1]]))
    rest = modulus.limbs((1 << WIDTH * _CUT) - (modulus.p >> 2 * WIDTH) - 1, _CUT, WIDTH)
    for i, limb in enumerate(q[:_CUT]):
        columns.add_row_below(list(rest), limb, at=2 + i, end=LIMBS)
    for j, limb in enumerate(modulus.limbs(factor, LIMBS, WIDTH)):
        if limb.bit_count() == 1:
            _add_shifted(asm, columns, x, at=j, shift=limb.bit_length() - 1)
        elif limb:
            columns.add_row_below(x, limb, at=j, end=LIMBS)
    return reduce_once(asm, columns.joined(0, LIMBS, wraps=True), modulus)


def _quotient(asm: Asm, x: Words, factor_shoup: int) -> Words:
    """floor(factor_shoup * x / 2^256), or one less."""
    columns = Columns(asm)
    used = -(-factor_shoup.bit_length() // WIDTH)
    for j, limb in enumerate(FR.limbs(factor_shoup, used, WIDTH)):
        begin, part = max(_CUT, j), x[max(_CUT - j, 0) :]
        if limb == 1 and j == used - 1:
            _add_words(columns, part, begin)
        else:
            columns.add_row(part, limb, at=begin)
    return columns.joined(_CUT + 1, 2 * LIMBS)[1:]


def _add_words(columns: Columns, x: Words, at: int) -> None:
    """Add x * 2^(32 at); what lies above holds nothing yet, and takes the carry."""
    chain = columns.asm.chain()
    for column, word in enumerate([*x, 0], at):
        columns.add_word(chain, at, column, word)


def _add_shifted(asm: Asm, columns: Columns, x: Words, at: int, shift: int) -> None:
    """Add x * 2^(32 at + shift) modulo 2^256."""
    chain = asm.chain()
    words = columns.words[0]
    below: Word = 0
    for column, word in zip(range(at, LIMBS), x, strict=False):
        shifted = asm.shift_left(below, word, shift) if shift else word
        words[column] = chain.add(words[column], shifted, wraps=column == LIMBS - 1)
        below = word
