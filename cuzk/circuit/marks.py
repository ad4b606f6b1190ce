"""Sets of variables as packed bits, inputs first: variable 8i + j is bit 7 - j of byte i, as NumPy packs.

Of 130 million variables that is 16 MB.
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
