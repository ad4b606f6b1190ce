"""Sets of variables as packed bits, inputs first: variable 8i + j is bit 7 - j of byte i, as NumPy packs.

Of 130 million variables that is 16 MB. Where each of a few million variables stands among those of the set
follows from counts before each byte.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Marks = NDArray[np.uint8]

_BYTE_BITS = 8
_POPULATION = np.array([byte.bit_count() for byte in range(1 << _BYTE_BITS)], np.uint8)


def count(marks: Marks) -> int:
    """How many variables are in the set."""
    return int(_POPULATION[marks].sum(dtype=np.int64))


def counts_before(marks: Marks) -> NDArray[np.uint32]:
    """For each byte how many variables of the set come before it."""
    population = _POPULATION[marks]
    before: NDArray[np.uint32] = np.cumsum(population, dtype=np.uint32)
    before -= population
    return before


def contains(marks: Marks, variables: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the variables are in the set."""
    bits = marks[variables // _BYTE_BITS] >> (_BYTE_BITS - 1 - variables % _BYTE_BITS).astype(np.uint8)
    return (bits & 1).view(np.bool_)


def ranks(marks: Marks, variables: NDArray[np.int64]) -> NDArray[np.uint32]:
    """For each of the variables how many of the set come before it."""
    byte, within = np.divmod(variables, _BYTE_BITS)
    earlier = marks[byte].astype(np.uint16) >> (_BYTE_BITS - within).astype(np.uint16)
    found: NDArray[np.uint32] = counts_before(marks)[byte] + _POPULATION[earlier]
    return found
