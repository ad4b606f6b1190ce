"""Fixed-base multiples against py_ecc, over scalars whose digits are all zeros, all ones or mixed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from py_ecc import bls12_381 as oracle

from cuzk.kernels.device.cpu import CpuDevice, has_ifma
from cuzk.kernels.fixed_base import FixedBase, best_window
from cuzk.kernels.modulus import FR
from tests.kernels.point_values import encode_point, generator

LANES = [1, pytest.param(8, marks=pytest.mark.skipif(not has_ifma(), reason="this CPU has no AVX-512 IFMA"))]
EDGES = [
    1,
    2,
    FR.p - 1,
    FR.p - 2,
    (FR.p - 1) // 2,
    2**16 - 1,
    2**16,
    2**254,
    2**64,
    2**64 - 1,
    2**255 - 1 - 2**254,
]


def _scalars(values: list[int]) -> np.ndarray[Any, Any]:
    return np.array([FR.limbs(v, 4, 64) for v in values], np.uint64)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(("group", "planned"), [("G1", 1), ("G1", 200), ("G2", 1)])
def test_multiples_of_the_generator_equal_py_ecc(group: str, planned: int, lanes: int) -> None:
    device, rng = CpuDevice(threads=2, lanes=lanes), random.Random(4)
    form = device.g1 if group == "G1" else device.g2
    values = EDGES + [rng.randrange(1, FR.p) for _ in range(10)]
    encoded = np.zeros((len(values), 96 if group == "G1" else 192), np.uint8)
    FixedBase(device, form, planned).encode(_scalars(values), encoded)
    for value, got in zip(values, encoded, strict=True):
        assert got.tobytes() == encode_point(oracle.multiply(generator(group), value))


@pytest.mark.parametrize("lanes", LANES)
def test_more_scalars_than_a_batch_on_two_threads_are_multiplied_in_order(lanes: int) -> None:
    device = CpuDevice(threads=2, lanes=lanes)
    values = list(range(1, 5001))
    encoded = np.zeros((len(values), 96), np.uint8)
    FixedBase(device, device.g1, len(values)).encode(_scalars(values), encoded)
    point = None
    for k, got in zip(values, encoded, strict=True):
        point = oracle.add(point, oracle.G1)
        if k % 97 == 0 or k in (1, 2047, 2048, 2049, 4999, 5000):
            assert got.tobytes() == encode_point(point)


def test_the_window_grows_with_the_number_of_scalars() -> None:
    windows = [best_window(n) for n in (1, 1 << 10, 1 << 16, 1 << 20, 1 << 27)]
    assert windows == sorted(windows) and windows[0] == 4 and windows[-1] == 16


def test_a_scalar_of_zero_is_refused() -> None:
    device = CpuDevice(threads=1)
    with pytest.raises(AssertionError, match="is 0"):
        FixedBase(device, device.g1, 1).encode(_scalars([5, 0, 7]), np.zeros((3, 96), np.uint8))
