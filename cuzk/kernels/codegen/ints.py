"""The machines of the tests: programs run on plain integers, and every word's range is asserted.

A carry that a real machine would lose fails here, without any special hardware.
"""

from __future__ import annotations

_LOW_52 = (1 << 52) - 1
_LOW_64 = (1 << 64) - 1


class Radix52Ints:
    """One lane of signed 64-bit words, as the vector unit sees them."""

    @staticmethod
    def _checked(value: int) -> int:
        assert -(1 << 63) <= value < 1 << 63, hex(value)
        return value

    def const(self, value: int) -> int:
        return self._checked(value)

    def add(self, x: int, y: int) -> int:
        return self._checked(x + y)

    def sub(self, x: int, y: int) -> int:
        return self._checked(x - y)

    def and_(self, x: int, y: int) -> int:
        return x & y

    def or_(self, x: int, y: int) -> int:
        return x | y

    def shl(self, x: int, count: int) -> int:
        value = x << count & _LOW_64
        return value - (1 << 64) if value >> 63 else value

    def shr(self, x: int, count: int) -> int:
        return (x & _LOW_64) >> count

    def sar(self, x: int, count: int) -> int:
        return x >> count

    def mad_lo52(self, acc: int, x: int, y: int) -> int:
        return self._checked(acc + ((x & _LOW_52) * (y & _LOW_52) & _LOW_52))

    def mad_hi52(self, acc: int, x: int, y: int) -> int:
        return self._checked(acc + ((x & _LOW_52) * (y & _LOW_52) >> 52))

    def select_negative(self, sign: int, if_negative: int, otherwise: int) -> int:
        return if_negative if sign < 0 else otherwise

    def lookup(self, values: list[int], index: int) -> int:
        assert 0 <= index < len(values) == 8, index
        return self._checked(values[index])


class Radix64Ints:
    """Whole numbers modulo 2^bits, read as signed, and unsigned 64-bit words that must not overflow."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def _whole(self, value: int) -> int:
        value %= 1 << self._bits
        return value - (1 << self._bits) if value >> (self._bits - 1) else value

    @staticmethod
    def _word(value: int) -> int:
        assert 0 <= value <= _LOW_64, hex(value)
        return value

    def const(self, value: int) -> int:
        return self._whole(value)

    def add(self, a: int, b: int) -> int:
        return self._whole(a + b)

    def sub(self, a: int, b: int) -> int:
        return self._whole(a - b)

    def select_negative(self, sign: int, if_negative: int, otherwise: int) -> int:
        return if_negative if sign < 0 else otherwise

    def split(self, a: int, count: int) -> list[int]:
        return [a >> (64 * i) & _LOW_64 for i in range(count)]

    def join(self, words: list[int]) -> int:
        return self._whole(sum(word << (64 * i) for i, word in enumerate(words)))

    def word(self, value: int) -> int:
        return self._word(value)

    def add_word(self, x: int, y: int) -> int:
        return self._word(x + y)

    def mul_word(self, x: int, y: int) -> int:
        return x * y & _LOW_64

    def mad_wide(self, x: int, y: int, c: int, d: int) -> tuple[int, int]:
        value = x * y + c + d
        assert value >> 128 == 0
        return value & _LOW_64, value >> 64
