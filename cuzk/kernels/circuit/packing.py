"""Witness of bit decompositions and packings. Bits are uint8, a number is eight uint32 of `words`."""

from __future__ import annotations

import numpy as np

from cuzk.kernels.circuit.team import member, members
from cuzk.kernels.jit import jit

NUMBER_WORDS = 8


@jit
def fill_bits(words, row, bits, at, count):
    """bits[at:] = the lowest `count` bits of number `row`, lowest first."""
    for i in range(member(), count, members()):
        bits[at + i] = words[NUMBER_WORDS * row + (i >> 5)] >> np.uint32(i & 31) & np.uint32(1)


@jit
def pack_bits(bits, places, start, count, words, row):
    """Number `row` = the sum of 2^i * bits[places[start + i]] for i < count, at most 254."""
    for word in range(member(), NUMBER_WORDS, members()):
        packed = np.uint32(0)
        for i in range(32 * word, min(32 * word + 32, count)):
            packed |= np.uint32(bits[places[start + i]]) << np.uint32(i & 31)
        words[NUMBER_WORDS * row + word] = packed
