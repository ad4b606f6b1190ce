"""What this process may still take: the machine, its control groups, its own limit."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from cuzk.groth16 import memory_limits
from cuzk.groth16.memory_limits import available_memory


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Control groups without limits: this process in /service/worker, whatever its own group is."""
    monkeypatch.setattr(memory_limits, "_CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(
        memory_limits, "_groups", lambda: [tmp_path / "service" / "worker", tmp_path / "service", tmp_path]
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
    assert list(memory_limits._groups())[-1] == Path("/sys/fs/cgroup")
