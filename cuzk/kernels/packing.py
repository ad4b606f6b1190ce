"""Witness of bit decompositions and packings. Bits are uint8, numbers rows of four uint64, canonical."""

from __future__ import annotations

import numpy as np

from cuzk.kernels.jit import jit


@jit
def fill_bits(values, row, bits, at, count):
    """bits[at:] = the lowest `count` bits of values[row], lowest first."""
    for i in range(count):
        bits[at + i] = (values[row, i >> 6] >> np.uint64(i & 63)) & np.uint64(1)


@jit
def pack_bits(bits, places, values, row):
    """values[row] = the sum of 2^i * bits[places[i]], for up to 254 bits; it was 0 before."""
    for i in range(len(places)):
        values[row, i >> 6] |= np.uint64(bits[places[i]]) << np.uint64(i & 63)
