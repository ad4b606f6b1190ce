"""Sets of variables as packed bits against NumPy's unpacked ones."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.circuit import marks


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 1000, 4099])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_members_counts_and_ranks_are_those_of_unpacked_bits(size: int, density: float) -> None:
    chosen = np.random.default_rng(size).random(size) < density
    packed, variables = np.packbits(chosen), np.arange(size)
    assert marks.count(packed) == chosen.sum()
    assert np.array_equal(marks.contains(packed, variables), chosen)
    before = np.cumsum(chosen) - chosen
    assert np.array_equal(marks.ranks(packed, variables), before)
    assert np.array_equal(marks.counts_before(packed), before[::8])


def test_variables_may_come_in_any_order() -> None:
    packed = np.packbits([1, 0, 1, 1, 0, 0, 0, 0, 0, 1])
    assert marks.contains(packed, np.array([9, 1, 2])).tolist() == [True, False, True]
    assert marks.ranks(packed, np.array([9, 1, 2, 0])).tolist() == [3, 1, 1, 0]
