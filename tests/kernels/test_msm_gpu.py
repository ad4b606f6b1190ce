"""The kernels of MSM and of sums over bits, compiled without a GPU: registers, spills, and no floating point
by accident.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels import (
    bucket_sort_gpu,
    integrate_gpu,
    msm_gpu,
    rounds_gpu,
    selected_sum_gpu,
    staged_sort_gpu,
)
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.modulus import FR
from cuzk.kernels.pair_add_gpu import pair_add_kernel
from cuzk.kernels.sum_schedule import DEFAULT_SHAPES, MAX_WINDOW, MIN_WINDOW, best_window
from cuzk.kernels.tail_sum_gpu import sum_lists_kernel

H200 = (9, 0)
LISTS = [
    rounds_gpu.count_pairs,
    rounds_gpu.scan_partials,
    rounds_gpu.place_pairs,
    rounds_gpu.next_list,
    rounds_gpu.neighbours,
    bucket_sort_gpu.count_digits,
    bucket_sort_gpu.scatter_digits,
    staged_sort_gpu.make_digits,
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


@pytest.mark.parametrize("c", range(MIN_WINDOW, MAX_WINDOW + 1))
def test_digits_of_every_window_size_hold_number_and_sign(c: int) -> None:
    """The top digit, which has no half added, stays within the buckets for the largest numbers of either
    sign.
    """
    windows = -(-FR.bits // c)
    halves, less, middle = (
        sum(int(word) << (64 * i) for i, word in enumerate(row))
        for row in bucket_sort_gpu.digit_constants(c, windows).reshape(3, 4)
    )
    assert middle == FR.p // 2 and (halves - less) % (1 << 256) == FR.p
    for number in (FR.p // 2, -(FR.p // 2)):
        top = (number + halves) >> (c * (windows - 1))
        assert abs(top) <= 1 << (c - 1)


def test_the_window_of_least_additions_grows_with_the_number_of_points() -> None:
    assert [best_window(1 << k) for k in (16, 18, 20, 22, 24, 26, 27)] == [13, 15, 17, 17, 20, 22, 22]
