"""Sets of variables as packed bits against NumPy's unpacked ones."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.circuit import marks


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 1000, 4099])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_counts_are_those_of_unpacked_bits(size: int, density: float) -> None:
    chosen = np.random.default_rng(size).random(size) < density
    packed = np.packbits(chosen)
    assert marks.count(packed) == chosen.sum()
    before = np.cumsum(chosen) - chosen
    assert np.array_equal(marks.counts_before(packed), before[::8])
