"""Montgomery arithmetic on 32-bit limbs, as programs of `asm` for the GPU. R = 2^384 for Fq, 2^256 for Fr.

Columns   A sum of products is held in two parts: products that begin in an even column, and in an odd one.
          Within either, the pairs (low, high) of a row touch without overlap, so one carry chain runs through
          all of them, and each is one wide multiply-add of the GPU.
Digits    Reduction clears column by column, from below: joins the column's two words to a digit and adds the
          multiple of p that makes it 0. Nothing is moved; a cleared column is not looked at again.
Ranges    Elements are canonical (in [0, p)) unless a name says `_lt_2p` (in [0, 2p)).
Costs     A wide product takes twice the time of any other instruction, and the other units work meanwhile, so
          products are the cost, wide + those of which only the lower half is needed:
          Fq product 288 + 2, square 222 + 2; Fr product 112, square 84, product by a constant 86 + 14.
Source    [KAK96] CIOS, for the order of the rows. [Sho] V. Shoup's product by a constant, NTL.
"""

from __future__ import annotations

from collections.abc import Callable

from cuzk.kernels.codegen.asm import LOW, WIDTH, Asm, Chain, Program, Word, Words
from cuzk.kernels.modulus import Modulus


def limb_count(modulus: Modulus) -> int:
    """Limbs of 32 bits with at least one spare bit: 12 for Fq, 8 for Fr."""
    return -(-(modulus.bits + 1) // WIDTH)


def build(emit: Callable[..., Words], modulus: Modulus, elements: int, words: int = 0) -> Program:
    """The program that `emit` records when given `elements` elements and then `words` single words."""
    asm, n = Asm(), limb_count(modulus)
    operands = [asm.inputs(n) for _ in range(elements)] + [asm.inputs(1)[0] for _ in range(words)]
    return asm.program(emit(asm, *operands, modulus))


def constant(value: int, modulus: Modulus) -> Words:
    return list(modulus.limbs(value, limb_count(modulus), WIDTH))


# Sums


def add_mod(asm: Asm, a: Words, b: Words, modulus: Modulus) -> Words:
    """a + b mod p."""
    return reduce_once(asm, add_lt_2p(asm, a, b, modulus), modulus)


def sub_mod(asm: Asm, a: Words, b: Words, modulus: Modulus) -> Words:
    """a - b mod p."""
    difference, borrow = _difference(asm, a, b)
    lift = [asm.and_(word, borrow) for word in constant(modulus.p, modulus)]
    return _add(asm, difference, lift, wraps=True)


def add_lt_2p(asm: Asm, a: Words, b: Words, modulus: Modulus) -> Words:
    """a + b, for an operand of a product."""
    return _add(asm, a, b)


def sub_lt_2p(asm: Asm, a: Words, b: Words, modulus: Modulus) -> Words:
    """a - b + p, for an operand of a product."""
    raised, chain = _add(asm, a, constant(modulus.p, modulus)), asm.chain()
    return [chain.sub(x, y) for x, y in zip(raised, b, strict=True)]


def neg_mod(asm: Asm, a: Words, modulus: Modulus) -> Words:
    """-a mod p."""
    return neg_mod_if(asm, a, 1, modulus)


def neg_mod_if(asm: Asm, a: Words, choice: Word, modulus: Modulus) -> Words:
    """-a mod p if the word `choice` is not zero, else a."""
    negative, _ = _difference(asm, constant(modulus.p, modulus), a)
    any_bit = a[0]
    for word in a[1:]:
        any_bit = asm.or_(any_bit, word)
    return asm.select(asm.min(any_bit, choice), negative, a)


def reduce_once(asm: Asm, a: Words, modulus: Modulus) -> Words:
    """a mod p for a in [0, 2p)."""
    less, borrow = _difference(asm, a, constant(modulus.p, modulus))
    return asm.select(borrow, a, less)


def _add(asm: Asm, a: Words, b: Words, wraps: bool = False) -> Words:
    chain, last = asm.chain(), len(a) - 1
    return [chain.add(x, y, wraps=wraps and k == last) for k, (x, y) in enumerate(zip(a, b, strict=True))]


def _difference(asm: Asm, a: Words, b: Words) -> tuple[Words, Word]:
    """a - b modulo 2^(32n), and all ones if it is negative."""
    chain = asm.chain()
    words = [chain.sub(x, y) for x, y in zip(a, b, strict=True)]
    return words, chain.mask_of_borrow()


# Products


class Columns:
    """A sum of products: word c of `words[s]` counts 2^(32c); its pairs begin in columns of parity s."""

    def __init__(self, asm: Asm) -> None:
        self.asm = asm
        self.words: tuple[dict[int, Word], dict[int, Word]] = {}, {}

    def digit(self, column: int) -> Word:
        """The sum of a column modulo 2^32; its carry is for whoever joins the column."""
        return self.asm.add_wrapping(*(words.get(column, 0) for words in self.words))

    def join(self, chain: Chain, column: int, wraps: bool = False) -> None:
        """Let a column have one word. The carry goes on with the chain."""
        own, other = self.words[column % 2], self.words[1 - column % 2]
        own[column] = chain.add(own.get(column, 0), other.pop(column, 0), wraps)

    def joined(self, first: int, end: int, wraps: bool = False) -> Words:
        """Columns `first` to `end` as one number, the carry out of the last one lost if it `wraps`."""
        chain = self.asm.chain()
        for column in range(first, end):
            self.join(chain, column, wraps and column == end - 1)
        return [self.words[column % 2][column] for column in range(first, end)]

    def add_row(self, x: Words, y: Word, at: int, join: int | None = None) -> None:
        """Add x*y * 2^(32 at), and join a column, at - 1 or at.

        The pairs that end below the row's top word leave a carry to that word. It never overflows: either the
        whole sum fits the columns, or the word is the upper half of one product.
        """
        top = at + len(x)
        for first in sorted((at, at + 1), key=lambda column: (top - 1 - column) % 2):
            chain = self.asm.chain()
            if join is not None and first == join + 1:
                self.join(chain, join)
            self.add_pairs(chain, x[first - at :: 2], y, first)
            if (top - first) % 2 == 0:
                self.add_word(chain, first + 1, top, 0)

    def add_pairs(self, chain: Chain, x: Words, y: Word, first: int) -> None:
        """Add x[0]*y at column `first`, x[1]*y at first + 2, and so on."""
        words = self.words[first % 2]
        for c, limb in zip(range(first, first + 2 * len(x), 2), x, strict=True):
            words[c], words[c + 1] = chain.mad_wide(limb, y, words.get(c, 0), words.get(c + 1, 0))

    def add_word(self, chain: Chain, parity: int, column: int, word: Word) -> None:
        words = self.words[parity % 2]
        words[column] = chain.add(words.get(column, 0), word)

    def add_row_below(self, x: Words, y: Word, at: int, end: int) -> None:
        """Add x*y * 2^(32 at) modulo 2^(32 end)."""
        for first in (at, at + 1):
            chain, words = self.asm.chain(), self.words[first % 2]
            for c, limb in zip(range(first, end, 2), x[first - at :: 2], strict=False):
                if c == end - 1:
                    words[c] = chain.mad_low(limb, y, words.get(c, 0))
                else:
                    pair = words.get(c, 0), words.get(c + 1, 0)
                    words[c], words[c + 1] = chain.mad_wide(limb, y, *pair, wraps=c == end - 2)


def mul_mont(asm: Asm, a: Words, b: Words, modulus: Modulus) -> Words:
    """a*b/R mod p, for operands as `mul_mont_lt_2p` takes them."""
    return reduce_once(asm, mul_mont_lt_2p(asm, a, b, modulus), modulus)


def mul_mont_lt_2p(asm: Asm, a: Words, b: Words, modulus: Modulus) -> Words:
    """a*b/R mod p in [0, 2p), for a, b < 3p in Fq; a < p, b < 2p in Fr."""
    columns, n = Columns(asm), len(a)
    for i, limb in enumerate(b):
        columns.add_row(a, limb, at=i, join=i)
        _clear(columns, i, modulus)
    return columns.joined(n, 2 * n)


def sqr_mont(asm: Asm, a: Words, modulus: Modulus) -> Words:
    """a*a/R mod p, for an operand as `sqr_mont_lt_2p` takes it."""
    return reduce_once(asm, sqr_mont_lt_2p(asm, a, modulus), modulus)


def sqr_mont_lt_2p(asm: Asm, a: Words, modulus: Modulus) -> Words:
    """a*a/R mod p in [0, 2p), for a < 3p in Fq; a < p in Fr.

    Row i adds a[i] * (a[i] + twice the limbs above it): every cross product once. The limbs of 2a are made
    once, but the lowest of them in a row must not contain the top bit of a[i].
    """
    columns, n = Columns(asm), len(a)
    twice = [asm.shift_left(low, high, 1) for low, high in zip([0, *a], a, strict=False)]
    for i in range(n):
        above = [asm.shift_left(0, a[i + 1], 1), *twice[i + 2 :]] if i + 1 < n else []
        columns.add_row([a[i], *above], a[i], at=2 * i)
        _clear(columns, i, modulus, spills=i < n - 1)
    return columns.joined(n, 2 * n)


def _clear(columns: Columns, i: int, modulus: Modulus, spills: bool = False) -> None:
    """Add a multiple of p that makes column i of the sum 0, its carry included; all below are 0 already.

    What is left then fits the columns i + 1 to i + n: a row of a product is below 2^32 p, and p below R/2.
    A row of a square can reach 2^33 p. Fq has room for that; in Fr it `spills` into one more column.
    """
    p = constant(modulus.p, modulus)
    if p[:2] == [1, LOW]:
        _clear_sparse(columns, i, p, spills)
    elif i < len(p) - 2:
        _clear_whole(columns, i, modulus)
    else:
        _clear_by_digit(columns, i, p, modulus.m0(WIDTH))


def _clear_whole(columns: Columns, i: int, modulus: Modulus) -> None:
    """Replace the digit d * 2^(32i) by d*N * 2^(32(i+1)), with N = 1/2^32 mod p: no product but d*N itself.

    That adds d*m0*p, m0 = -1/p mod 2^32, where `_clear_by_digit` adds the lower half of d*m0 only. So the sum
    may grow to about 2^32 p, which the columns hold; the last two rows, cleared by digit, bring it below 2p.
    """
    inverse = constant(pow(1 << WIDTH, -1, modulus.p), modulus)
    columns.add_row(inverse, columns.digit(i), at=i + 1, join=i)


def _clear_by_digit(columns: Columns, i: int, p: Words, m0: int) -> None:
    """Add q*p * 2^(32i), q = digit * m0 mod 2^32."""
    q = columns.asm.mul_low(columns.digit(i), m0)
    columns.add_row(p, q, at=i, join=i)


def _clear_sparse(columns: Columns, i: int, p: Words, spills: bool) -> None:
    """Add q*p * 2^(32i) for p = 1 + (2^32 - 1) 2^32 + ..., q = -digit mod 2^32: two limbs need no product.

    q*(2^32 - 1) has the lower half -q, the digit again, and the upper half q - 1, or 0 if q is.
    """
    asm, digit = columns.asm, columns.digit(i)
    q = asm.negate(digit)
    upper = asm.sub(q, asm.min(q, 1))
    chain = asm.chain()
    chain.add(digit, q)
    columns.add_word(chain, i, i + 1, digit)
    columns.add_pairs(chain, p[2::2], q, i + 2)
    columns.add_word(chain, i + 1, i + len(p), 0)
    chain = asm.chain()
    columns.join(chain, i)
    columns.add_word(chain, i + 1, i + 1, 0)
    columns.add_word(chain, i + 1, i + 2, upper)
    columns.add_pairs(chain, p[3::2], q, i + 3)
    if spills:
        columns.add_word(chain, i + 1, i + 1 + len(p), 0)


def mul_shoup(asm: Asm, x: Words, w: Words, w_shoup: Words, modulus: Modulus) -> Words:
    """x*w mod p in Fr, for x < 2p; w < p and w_shoup = floor(w 2^256 / p)."""
    return reduce_once(asm, mul_shoup_lt_2p(asm, x, w, w_shoup, modulus), modulus)


def mul_shoup_lt_2p(asm: Asm, x: Words, w: Words, w_shoup: Words, modulus: Modulus) -> Words:
    """x*w mod p in Fr, in [0, 2p), for x < 2p; w < p and w_shoup = floor(w 2^256 / p).

    q = floor(w_shoup * x / 2^256), but columns 0 to 5 of that product are left out: they count less than
    6.01 * 2^224. So x*w - q*p < p * (1 + x / 2^256 + 6.01 / 2^32) < 2p, and its lower half is enough:
    -q*p = q 2^32 - q + q (2^192 - floor(p / 2^64) - 1) 2^64 modulo 2^256.
    """
    n, cut = len(x), len(x) - 2
    columns = Columns(asm)
    for i, limb in enumerate(x):
        columns.add_row(w_shoup[max(cut - i, 0) :], limb, at=max(cut, i))
    q = columns.joined(cut + 1, 2 * n)[1:]

    rest = modulus.limbs((1 << WIDTH * cut) - (modulus.p >> 2 * WIDTH) - 1, cut, WIDTH)
    columns = Columns(asm)
    columns.words[0].update((c, asm.not_(word)) for c, word in enumerate(q))  # -q is not(q) + 1
    columns.words[1].update(enumerate([1, *q[:-1]]))
    for i, limb in enumerate(q[:cut]):
        columns.add_row_below(list(rest), limb, at=2 + i, end=n)
    for i, limb in enumerate(x):
        columns.add_row_below(w, limb, at=i, end=n)
    return columns.joined(0, n, wraps=True)
