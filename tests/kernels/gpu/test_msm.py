"""Windows, bins and the fold of the GPU's MSM, on plain integers."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.errors import ResourceError
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.field_type import FQ_GPU
from cuzk.kernels.gpu import digits, msm, staged_sort
from cuzk.kernels.gpu.jit import CudaKernel
from cuzk.kernels.gpu.msm import GpuMsm
from cuzk.kernels.gpu.selected_sum import GpuSelectedSum
from cuzk.kernels.gpu.sum_plan import msm_plan
from cuzk.kernels.gpu.sum_schedule import (
    LEAST_WINDOWS,
    MOST_WINDOWS,
    SCALAR_BITS,
    additions,
    bin_bits,
    msm_layout,
    selected_plan,
)
from cuzk.kernels.modulus import FR
from cuzk.kernels.xyzz import EMPTY
from tests.kernels.device.fake_cuda import FakeDriver

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
        for row in digits.digit_constants(plan).reshape(3, 4)
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
    codes = msm.fold_codes(plan)
    named = [
        (position, code >> 1) for row in codes for position, code in enumerate(row.tolist()) if code != EMPTY
    ]
    assert sum(int(values[row]) << position for position, row in named) == total


@pytest.mark.parametrize(
    ("largest", "rounds"), [(0, 2), (1, 2), (4, 2), (5, 3), (64, 6), (65, 7), (1 << 27, 27)]
)
def test_rounds_halve_the_largest_bucket_until_it_is_one_sum(largest: int, rounds: int) -> None:
    assert msm.rounds_of(largest) == rounds


@pytest.mark.parametrize(
    "n", [1 << 19, (1 << 22) + 1, 1 << 24, (1 << 26) - 1, 1 << 26, (1 << 27) - 1, 1 << 27]
)
def test_uniform_digits_fit_the_bins_of_the_staged_sort(n: int) -> None:
    """A bin's digits in shared memory, six standard deviations above the mean; and its buckets' counts."""
    plan = msm_plan(FQ_GPU, n)
    b = bin_bits(n, plan.windows)
    assert b is not None and b == plan.bin_bits
    mean = n / (1 << b)
    assert mean + 6 * mean**0.5 <= staged_sort.CAPACITY
    assert b <= plan.c - 2 and 1 << (plan.c - 1 - b) <= staged_sort.MAX_BIN_BUCKETS
    assert staged_sort.histogram_bytes(b) <= 64 << 10, "what every card of capability 7.5 or later has"


def test_two_to_the_27_points_fit_a_card_of_139_gib_beside_parameters_of_47_gb_and_three_vectors() -> None:
    n = 1 << 27
    plan = msm_plan(FQ_GPU, n, windows_a_pass=4)
    assert plan.passes == [(0, 4), (4, 8), (8, 11)]
    assert msm_layout(FQ_GPU, plan, 132).nbytes + 47e9 + 3 * 32 * n < 0.9 * (139 << 30)
    assert msm_layout(FQ_GPU, msm_plan(FQ_GPU, n, windows_a_pass=3), 132).nbytes < 50e9
    assert msm_layout(FQ_GPU, msm_plan(FQ_GPU, n, windows_a_pass=1), 132).nbytes < 18e9


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaDevice]:
    """A card whose kernels do nothing."""
    driver = FakeDriver()
    driver.effects = defaultdict(lambda: lambda *_: None)
    monkeypatch.setattr(CudaKernel, "cubin", lambda self, capability: b"code")
    with CudaDevice("cuda:0", api=driver) as device:
        yield device
    assert driver.held == {}


def made_sums(device: CudaDevice, points: DeviceArray, workspace: DeviceArray) -> list[Any]:
    """Both kinds, over the same points."""
    n = points.shape[0]
    return [
        GpuMsm(device, FQ_GPU, points, points, msm_plan(FQ_GPU, n), workspace),
        GpuSelectedSum(device, FQ_GPU, points, points, selected_plan(FQ_GPU, n), workspace),
    ]


def test_sums_give_back_all_that_they_held(idle: CudaDevice) -> None:
    n = 100
    scalars, bits = idle.allocate((n, 4), np.uint64), idle.allocate(n, np.uint8)
    points, workspace = idle.allocate((n, FQ_GPU.words), np.uint32), idle.allocate(1 << 22, np.uint8)
    for argument, which in ((scalars, 0), (bits, 1)):  # the copies' pages and the kernels stay
        with made_sums(idle, points, workspace)[which] as first:
            first.run(argument)
    used, handles = idle.memory.used_bytes, idle.open_handles
    msm, selected = made_sums(idle, points, workspace)
    assert msm.run(scalars) is None and selected.run(bits) is None
    assert idle.open_handles > handles
    msm.close()
    selected.close()
    selected.close()
    assert (idle.memory.used_bytes, idle.open_handles) == (used, handles)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_sum_that_cannot_be_made_leaves_nothing(idle: CudaDevice, at: int) -> None:
    points, workspace = idle.allocate((10, FQ_GPU.words), np.uint32), idle.allocate(1 << 22, np.uint8)
    made_sums(idle, points, workspace)[0].close()
    used, handles = idle.memory.used_bytes, idle.open_handles
    idle._context.api.fail("cuMemHostAlloc", "OUT_OF_MEMORY", at=at)
    with pytest.raises(ResourceError, match="does not pin"):
        GpuMsm(idle, FQ_GPU, points, points, msm_plan(FQ_GPU, 10), workspace)
    assert (idle.memory.used_bytes, idle.open_handles) == (used, handles)
