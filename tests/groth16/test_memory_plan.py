"""What a proof will take, what the machine has, and what is said when that is too little."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from cuzk.errors import ResourceError
from cuzk.groth16 import memory_plan
from cuzk.groth16.memory_plan import GenerationPlan, MemoryPlan, available_memory
from cuzk.groth16.parameters import PointCounts
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


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Control groups without limits: this process in /service/worker, whatever its own group is."""
    monkeypatch.setattr(memory_plan, "_CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(
        memory_plan, "_groups", lambda: [tmp_path / "service" / "worker", tmp_path / "service", tmp_path]
    )
    (tmp_path / "service" / "worker").mkdir(parents=True)
    return tmp_path


def limit(group: Path, maximum: object, current: int, files: int = 0) -> None:
    (group / "memory.max").write_text(f"{maximum}\n")
    (group / "memory.current").write_text(f"{current}\n")
    (group / "memory.stat").write_text(f"anon 0\ninactive_file {files // 2}\nactive_file {files // 2}\n")


def test_a_machine_without_limits_offers_what_is_available(groups: Path) -> None:
    assert 0 < available_memory() < 1 << 50


def test_the_tightest_of_all_control_groups_counts(groups: Path) -> None:
    limit(groups, 1 << 60, 0)
    limit(groups / "service", 5000, 1000)
    limit(groups / "service" / "worker", "max", 1000)
    assert available_memory() == 4000


def test_files_that_are_kept_in_memory_make_room(groups: Path) -> None:
    limit(groups / "service", 5000, 4900, files=4000)
    assert available_memory() == 4100


def test_a_group_over_its_limit_has_nothing_left(groups: Path) -> None:
    limit(groups / "service", 5000, 6000)
    assert available_memory() == 0


def test_the_limit_of_the_process_counts(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    top = pages * resource.getpagesize() + (100 << 20)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (top, resource.RLIM_INFINITY))
    assert 90 << 20 < available_memory() < 110 << 20


def test_the_groups_of_this_process_end_at_the_root() -> None:
    assert list(memory_plan._groups())[-1] == Path("/sys/fs/cgroup")
