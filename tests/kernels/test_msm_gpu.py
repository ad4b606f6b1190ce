"""The kernels of MSM and of sums over bits, compiled without a GPU: registers, spills, and no floating point
by accident.
"""

from __future__ import annotations

import itertools
import random
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from bench import gpu_curve
from cuzk.kernels import (
    bucket_sort_gpu,
    digits_gpu,
    integrate_gpu,
    msm_gpu,
    rounds_gpu,
    selected_sum_gpu,
    staged_sort_gpu,
)
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.modulus import FR
from cuzk.kernels.pair_add_gpu import pair_add_kernel
from cuzk.kernels.sum_plan import msm_plan
from cuzk.kernels.sum_schedule import (
    DEFAULT_SHAPES,
    LEAST_WINDOWS,
    MOST_WINDOWS,
    SCALAR_BITS,
    additions,
    bin_bits,
    msm_layout,
)
from cuzk.kernels.tail_sum_gpu import sum_lists_kernel
from cuzk.kernels.xyzz import EMPTY

H200 = (9, 0)
LISTS = [
    rounds_gpu.count_pairs,
    rounds_gpu.scan_partials,
    rounds_gpu.place_pairs,
    rounds_gpu.next_list,
    rounds_gpu.neighbours,
    digits_gpu.make_digits,
    bucket_sort_gpu.count_digits,
    bucket_sort_gpu.scatter_digits,
    staged_sort_gpu.count_bins,
    staged_sort_gpu.spread_digits,
    staged_sort_gpu.spread_entries,
    staged_sort_gpu.count_buckets,
    staged_sort_gpu.scatter_bins,
    integrate_gpu.group_pairs,
    integrate_gpu.bit_lists,
    msm_gpu.begin_pass,
    selected_sum_gpu.select_codes,
    selected_sum_gpu.plan_rounds,
    selected_sum_gpu.tail_lists,
]


@pytest.mark.parametrize("kernel", LISTS, ids=lambda kernel: str(kernel.name))
def test_kernels_of_lists_keep_their_values_in_registers_and_are_integer_code(kernel: Any) -> None:
    compiled = kernel.compile(H200)
    assert compiled.registers <= 64
    assert compiled.spill_bytes == 0
    assert "f64" not in compiled.ptx, "a signed and an unsigned 64-bit integer met: Numba makes that a float"


def test_long_rounds_of_g1_keep_16_warps_on_a_multiprocessor() -> None:
    compiled = pair_add_kernel(FQ_GPU, DEFAULT_SHAPES[1][0]).compile(H200)
    assert compiled.registers <= 128
    assert compiled.spill_bytes <= 256
    assert "f64" not in compiled.ptx


def test_mixed_additions_keep_the_sum_and_the_point_in_registers_of_12_warps() -> None:
    compiled = gpu_curve.adding(gpu_curve.SHAPES[0]).compile(H200)
    assert compiled.registers <= 65536 // (12 * 32)
    assert compiled.spill_bytes == compiled.stack_bytes == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "spill_bytes"),
    [
        (pair_add_kernel(FQ_GPU, DEFAULT_SHAPES[1][1]), 0),
        (pair_add_kernel(FQ2_GPU, DEFAULT_SHAPES[2][0]), 128),
        (sum_lists_kernel(FQ_GPU, 64), 0),
        (sum_lists_kernel(FQ2_GPU, 64), 3200),
    ],
)
def test_other_kernels_of_points_spill_no_more_than_they_do_today(kernel: Any, spill_bytes: int) -> None:
    compiled = kernel.compile(H200)
    assert compiled.spill_bytes <= spill_bytes
    assert "f64" not in compiled.ptx


EVERY_NUMBER_OF_WINDOWS = range(LEAST_WINDOWS, MOST_WINDOWS + 1)


@pytest.mark.parametrize("windows", EVERY_NUMBER_OF_WINDOWS)
def test_windows_hold_the_bits_of_a_scalar_exactly(windows: int) -> None:
    plan = msm_plan(FQ_GPU, 1, windows=windows)
    bits = [plan.start(w + 1) - plan.start(w) for w in range(windows)]
    assert sum(bits) == SCALAR_BITS and set(bits) <= {plan.c, plan.c - 1}
    assert bits == sorted(bits, reverse=True) and bits.count(plan.c) == plan.wide
    for first, end in itertools.combinations(range(windows + 1), 2):
        assert plan.buckets(first, end) == sum(1 << (k - 1) for k in bits[first:end])
        assert plan.wide_of(first, end) == bits[first:end].count(plan.c)
    assert additions(5, windows) == 5 * windows + plan.buckets(0, windows)
    h, row_bits = plan.group_bits
    assert h >= 1 and row_bits == plan.c - 1 - h and bits[-1] - 1 - h >= h


@pytest.mark.parametrize("windows", EVERY_NUMBER_OF_WINDOWS)
def test_digits_of_every_window_size_hold_number_and_sign(windows: int) -> None:
    """The top digit, which has no half added, stays within the buckets for the largest numbers of either
    sign.
    """
    plan = msm_plan(FQ_GPU, 1, windows=windows)
    halves, less, middle = (
        sum(int(word) << (64 * i) for i, word in enumerate(row))
        for row in digits_gpu.digit_constants(plan).reshape(3, 4)
    )
    assert halves == sum(1 << (plan.start(w + 1) - 1) for w in range(windows - 1))
    assert middle == FR.p // 2 and (halves - less) % (1 << 256) == FR.p
    for number in (FR.p // 2, -(FR.p // 2)):
        top = (number + halves) >> plan.start(windows - 1)
        assert abs(top) <= plan.buckets(windows - 1, windows)


@pytest.mark.parametrize("windows", EVERY_NUMBER_OF_WINDOWS)
def test_the_fold_adds_each_bit_sum_where_its_window_has_it(windows: int) -> None:
    """With T[w][t] = sum of the digits whose j has bit t, and of all digits for t = c - 1."""
    plan = msm_plan(FQ_GPU, 1, windows=windows)
    rng, total = random.Random(windows), 0
    values = np.zeros(windows * plan.c, object)
    for w in range(windows):
        bits = plan.start(w + 1) - plan.start(w)
        j = rng.randrange(1 << (bits - 1))
        values[w * plan.c + plan.c - 1] = 1
        for t in range(bits - 1):
            values[w * plan.c + t] = j >> t & 1
        total += (j + 1) << plan.start(w)
    codes = msm_gpu.fold_codes(plan)
    named = [
        (position, code >> 1) for row in codes for position, code in enumerate(row.tolist()) if code != EMPTY
    ]
    assert sum(int(values[row]) << position for position, row in named) == total


@pytest.mark.parametrize(
    "n", [1 << 19, (1 << 22) + 1, 1 << 24, (1 << 26) - 1, 1 << 26, (1 << 27) - 1, 1 << 27]
)
def test_uniform_digits_fit_the_bins_of_the_staged_sort(n: int) -> None:
    """A bin's digits in shared memory, six standard deviations above the mean; and its buckets' counts."""
    plan = msm_plan(FQ_GPU, n)
    b = bin_bits(n, plan.windows)
    assert b is not None and b == plan.bin_bits
    mean = n / (1 << b)
    assert mean + 6 * mean**0.5 <= staged_sort_gpu.CAPACITY
    assert b <= plan.c - 2 and 1 << (plan.c - 1 - b) <= staged_sort_gpu.MAX_BIN_BUCKETS
    assert staged_sort_gpu.histogram_bytes(b) <= 64 << 10, "what every card of capability 7.5 or later has"


def test_two_to_the_27_points_fit_a_card_of_139_gib_beside_parameters_of_47_gb_and_three_vectors() -> None:
    n = 1 << 27
    plan = msm_plan(FQ_GPU, n, windows_a_pass=4)
    assert plan.passes == [(0, 4), (4, 8), (8, 11)]
    assert msm_layout(FQ_GPU, plan, 132).nbytes + 47e9 + 3 * 32 * n < 0.9 * (139 << 30)
    assert msm_layout(FQ_GPU, msm_plan(FQ_GPU, n, windows_a_pass=3), 132).nbytes < 50e9
    assert msm_layout(FQ_GPU, msm_plan(FQ_GPU, n, windows_a_pass=1), 132).nbytes < 18e9
