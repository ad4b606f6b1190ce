"""32-bit words of literals, least significant bit first, and additions whose equations share rows.

The sum of n words is allocated as all bits of the integer sum, carries included, and tied to its operands by
one linear equation of that width. A *multi-equation* packs several such equations into one row of fewer than
254 bits. Sources: bellperson, uint32.rs and multieq.rs.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.circuit import boolean
from cuzk.circuit.r1cs import LC, ONE, Tracer

Word = list[int]

WORD_BITS = 32
ROW_CAPACITY = 254
"""Bits that a row's two sides may hold without wrapping around r: fewer than this."""


def constant_word(value: int) -> Word:
    return [boolean.constant(bool(value >> i & 1)) for i in range(WORD_BITS)]


def rotate_right(word: Word, count: int) -> Word:
    return word[count:] + word[:count]


def shift_right(word: Word, count: int) -> Word:
    return word[count:] + [boolean.FALSE] * count


def is_constant(word: Word) -> bool:
    return all(bit < 2 for bit in word)


def value_of(word: Word) -> int:
    """The value of a constant word."""
    return sum(1 << i for i, bit in enumerate(word) if bit == boolean.TRUE)


def sum_bits(operands: int) -> int:
    """Bits of the largest sum of that many words."""
    return (operands * ((1 << WORD_BITS) - 1)).bit_length()


class MultiEquation:
    """Equations between linear combinations of bits, packed side by side into rows (left) * ONE = right."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._used = 0
        self._left: LC = {}
        self._right: LC = {}

    def equate(self, operands: Sequence[Word], bits: Sequence[int]) -> None:
        """Sum of the operands = sum of 2^i * bits[i], a number of len(bits) bits."""
        if self._used + len(bits) >= ROW_CAPACITY:
            self.flush()
        for word in operands:
            add_word(self._left, word, self._used)
        add_word(self._right, bits, self._used)
        self._used += len(bits)

    def flush(self) -> None:
        """Append the row of what is pending, if anything is."""
        if self._used:
            self._tracer.label("packed sums")
            self._tracer.enforce(self._left, {ONE: 1}, self._right)
            self._used, self._left, self._right = 0, {}, {}


def add_word(lc: LC, bits: Sequence[int], shift: int) -> None:
    """Add the sum of 2^(shift + i) * bits[i] to `lc`, in place."""
    scale = 1 << shift
    for bit in bits:
        boolean.add_scaled(lc, bit, scale)
        scale <<= 1


def add_many(tracer: Tracer, equation: MultiEquation, operands: Sequence[Word]) -> Word:
    """The sum of the words mod 2^32. Its bits are allocated before a full row is written out."""
    if all(is_constant(word) for word in operands):
        return constant_word(sum(map(value_of, operands)))
    bits = []
    for _ in range(sum_bits(len(operands))):
        slot = tracer.alloc_bit()
        tracer.enforce_bit(slot)
        bits.append(boolean.literal(slot))
    equation.equate(operands, bits)
    return bits[:WORD_BITS]
