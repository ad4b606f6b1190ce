"""The GPU's inversion, whose limbs are plain code: compiled for the CPU here, against Python's pow."""

from __future__ import annotations

import random
from typing import Any

import numba
import numpy as np
import pytest

from cuzk.kernels.gpu import inverse
from cuzk.kernels.modulus import FQ

P = FQ.p
EDGES = [0, 1, 2, 3, P - 1, P - 2, (P - 1) // 2, (P + 1) // 2, 2**30 - 1, 2**30, 2**380, 2**32, 2**352]


@pytest.fixture(scope="module")
def invert() -> Any:
    @numba.njit
    def run(limbs):  # type: ignore[no-untyped-def]
        return inverse.invert_limbs(limbs, inverse._zero_limbs())

    def invert_number(x: int) -> int:
        limbs = tuple(np.int32(v) for v in FQ.limbs(x, inverse.LIMBS, inverse.BATCH))
        return sum(int(limb) << (inverse.BATCH * i) for i, limb in enumerate(run(limbs)))

    return invert_number


@pytest.mark.parametrize("x", EDGES)
def test_edges_have_the_inverse_that_python_finds(invert: Any, x: int) -> None:
    assert invert(x) == (pow(x, -1, P) if x else 0)


def test_random_numbers_have_the_inverse_that_python_finds(invert: Any) -> None:
    rnd = random.Random(381)
    for _ in range(2000):
        x = rnd.randrange(1, P)
        assert invert(x) == pow(x, -1, P), x


def test_small_multiples_of_powers_of_two_are_inverted(invert: Any) -> None:
    """Long runs of zero bits, where a batch ends in the middle of a run."""
    for shift in range(0, 381, 7):
        x = (5 << shift) % P
        assert invert(x) == pow(x, -1, P), shift
