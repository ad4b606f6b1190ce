"""Digits and places of buckets on the GPU: the same code compiled for the CPU, against plain integers."""

from __future__ import annotations

import random
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.field_type import FQ_GPU
from cuzk.kernels.gpu import digits as kernels
from cuzk.kernels.gpu.sum_plan import msm_plan
from cuzk.kernels.gpu.sum_schedule import LEAST_WINDOWS, MOST_WINDOWS, GpuPlan
from cuzk.kernels.modulus import FR

R = FR.p
EDGES = [0, 1, 2, R - 1, R - 2, (R - 1) // 2, (R + 1) // 2, 1 << 254, (1 << 128) - 1, R - (1 << 64)]
EVERY_NUMBER_OF_WINDOWS = range(LEAST_WINDOWS, MOST_WINDOWS + 1)


@pytest.fixture(scope="module")
def digits_of() -> Any:
    @numba.njit
    def run(scalars, constants, c, wide, windows, first, end, digits):  # type: ignore[no-untyped-def]
        n = len(scalars) // 4
        for i in range(n):
            kernels.put_digits(
                scalars, np.uint32(n), np.int64(i), constants, c, wide, windows, first, end, digits
            )

    def of(plan: GpuPlan, numbers: list[int], first: int, end: int) -> list[list[int]]:
        scalars = np.array([FR.limbs(number, 4, 64) for number in numbers], np.uint64).reshape(-1)
        digits = np.zeros((end - first) * len(numbers), np.int32)
        shape = tuple(np.int32(k) for k in (plan.c, plan.wide, plan.windows, first, end))
        run(scalars, kernels.digit_constants(plan), *shape, digits)
        rows: list[list[int]] = digits.reshape(end - first, len(numbers)).T.tolist()
        return rows

    return of


@pytest.mark.parametrize("windows", EVERY_NUMBER_OF_WINDOWS)
def test_digits_in_two_passes_sum_up_to_the_scalar_and_have_a_bucket(digits_of: Any, windows: int) -> None:
    plan, rng = msm_plan(FQ_GPU, 1, windows=windows), random.Random(windows)
    numbers = [*EDGES, *(rng.randrange(R) for _ in range(10))]
    half = rng.randrange(1, windows)
    passes = zip(digits_of(plan, numbers, 0, half), digits_of(plan, numbers, half, windows), strict=True)
    for number, (low, high) in zip(numbers, passes, strict=True):
        digits = [*low, *high]
        assert sum(digit << plan.start(w) for w, digit in enumerate(digits)) % R == number
        assert all(abs(digit) <= plan.buckets(w, w + 1) for w, digit in enumerate(digits))


@pytest.mark.parametrize("windows", [11, 12, 17, 19, 20, 64, 85])
def test_buckets_lie_window_after_window(windows: int) -> None:
    plan = msm_plan(FQ_GPU, 1, windows=windows)

    @numba.njit
    def below(w, c, wide):  # type: ignore[no-untyped-def]
        return kernels.buckets_below(w, c, wide)

    @numba.njit
    def window_of(bucket, c, wide):  # type: ignore[no-untyped-def]
        return kernels.window_of(np.int64(bucket), c, wide)

    for first in (0, windows // 3, windows - 1):
        c, wide = np.int32(plan.c), np.int32(plan.wide_of(first, windows))
        for w in range(windows - first):
            start, end = (plan.buckets(first, first + k) for k in (w, w + 1))
            assert below(w, c, wide) == start
            assert window_of(start, c, wide) == window_of(end - 1, c, wide) == w


def test_a_code_names_the_row_and_the_sign() -> None:
    @numba.njit
    def code_of(i, digit):  # type: ignore[no-untyped-def]
        return kernels.code_of(i, digit)

    last = (1 << 31) - 1
    codes = [code_of(np.int64(i), np.int32(digit)) for i in (0, last) for digit in (1, -1)]
    assert codes == [0, 1 << 31, last, last | 1 << 31]
