"""What a proof will take, and what is said when that is too much."""

from __future__ import annotations

import pytest

from cuzk.errors import ResourceError
from cuzk.groth16.memory_plan import GenerationPlan, MemoryPlan
from cuzk.groth16.parameters.params_file import PointCounts
from cuzk.kernels.device.cpu import CpuDevice

GIB = 1 << 30
COUNTS = PointCounts(ic=40, h=4_194_303, l=2_685_673, a=2_674_948, b=685_522)  # of 2 KiB
PLAN = MemoryPlan(process=1 * GIB, witness=2 * GIB, transforms=3 * GIB, sums=5 * GIB)


def test_what_does_not_overlap_in_time_is_not_added_up() -> None:
    assert PLAN.peak == 8 * GIB


def test_exactly_enough_is_enough_and_a_byte_less_is_not() -> None:
    PLAN.require(PLAN.peak)
    with pytest.raises(ResourceError) as raised:
        PLAN.require(PLAN.peak - 1)
    assert "8.00 GiB" in raised.value.what or "8 GiB" in raised.value.what or "8.0 GiB" in raised.value.what
    for part in ("process", "witness", "transforms", "sums"):
        assert part in str(raised.value.where)
    assert raised.value.next


def test_the_smallest_sector_takes_less_than_4_gib_and_at_least_its_vectors() -> None:
    plan = MemoryPlan.of(CpuDevice(threads=2, lanes=1), COUNTS)
    assert 4 * 32 * (1 << 22) + 96 * (1 << 22) < plan.peak < 4 * GIB


def test_more_threads_never_take_less() -> None:
    peaks = [MemoryPlan.of(CpuDevice(threads=threads, lanes=1), COUNTS).peak for threads in (1, 2, 16)]
    assert peaks == sorted(peaks)


def test_generation_refuses_with_its_plan() -> None:
    plan = GenerationPlan(process=1 * GIB, values=4 * GIB, points=2 * GIB)
    assert plan.peak == 5 * GIB
    plan.require(plan.peak)
    with pytest.raises(ResourceError, match="generating parameters takes") as raised:
        plan.require(plan.peak - 1)
    for part in ("process", "values", "points"):
        assert part in str(raised.value.where)


def test_generation_holds_at_least_three_values_a_variable_and_its_tables() -> None:
    plan = GenerationPlan.of(CpuDevice(threads=2, lanes=1), COUNTS)
    assert 3 * 32 * COUNTS.l < plan.values < plan.peak < 2 * GIB
    assert 32 * (COUNTS.l + COUNTS.a + COUNTS.b) + (1 << 27) < plan.points
    beside_a_gpu = GenerationPlan.of(None, COUNTS)
    assert beside_a_gpu.points < plan.points and beside_a_gpu.values == plan.values
