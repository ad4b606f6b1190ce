"""Compiled code: made once, by any number of processes at once, and never a reason to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuzk.proofs.warm_up import GROUPS, TO_CHECK, TO_CHECK_POINTS, TO_GENERATE, TO_PROVE

ROOT = Path(__file__).resolve().parents[2]
C1 = ROOT / "tests" / "vectors" / "porep" / "2k-random.json"
#: Compiled versions of kernels that a first proof and a first generation may take, each about half a second.
MOST_TO_PROVE, MOST_TO_GENERATE = 115, 110


def start(cache: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    return out, err


def start_warm_up(cache: Path, groups: tuple[str, ...]) -> subprocess.Popen[str]:
    """Prints the names of the stages that it had to run."""
    code = (
        "from cuzk.kernels.device.cpu import CpuDevice; from cuzk.proofs.warm_up import warm_up; "
        "from cuzk.events import StageDone; said = []; "
        f"warm_up(CpuDevice(threads=2), {groups!r}, said.append); "
        "print(*(event.name for event in said if isinstance(event, StageDone)))"
    )
    return start(cache, "-W", "error", "-c", code)


def compiled(cache: Path) -> set[tuple[str, int]]:
    """Name and time of change of every compiled version of a kernel."""
    return {(path.name, path.stat().st_mtime_ns) for path in cache.rglob("*.nbc")}


def test_every_task_is_made_of_known_groups() -> None:
    for task in (TO_CHECK, TO_PROVE, TO_GENERATE, TO_CHECK_POINTS):
        assert set(task) <= set(GROUPS)


def test_two_processes_on_an_empty_cache_both_succeed_and_the_next_compiles_nothing(tmp_path: Path) -> None:
    both = [start_warm_up(tmp_path, TO_CHECK) for _ in range(2)]
    for process in both:
        out, err = finish(process)
        assert (out.strip(), err) == ("compile kernels (first start)", "")
    before = compiled(tmp_path)
    assert 0 < len(before) <= 20
    out, err = finish(start(tmp_path, "cli.py", "sector", "inspect", str(C1), "--json"))
    assert '"StackedDrg2KiBV1_1"' in out and "compile" not in err
    assert compiled(tmp_path) == before


@pytest.mark.parametrize("where", ["/proc", "/dev/null"])
def test_a_cache_that_cannot_be_written_is_a_warning(where: str) -> None:
    """Neither takes a folder, whoever asks: the first is read-only, the second a file."""
    out, err = finish(start(Path(where), "cli.py", "params", "list"))
    assert err.count("warning:") <= 1
    out, err = finish(start(Path(where), "cli.py", "sector", "inspect", str(C1)))
    assert "StackedDrg2KiBV1_1" in out
    assert err.count("warning:") == 1 and f"compiled code is not kept in {where}/cuzk" in err


@pytest.mark.slow
@pytest.mark.parametrize(("task", "most"), [(TO_PROVE, MOST_TO_PROVE), (TO_GENERATE, MOST_TO_GENERATE)])
def test_a_task_compiles_a_bounded_number_of_kernels_and_the_second_start_none(
    task: tuple[str, ...], most: int, tmp_path: Path
) -> None:
    finish(start_warm_up(tmp_path, task))
    before = compiled(tmp_path)
    assert len(before) <= most
    assert finish(start_warm_up(tmp_path, task)) == ("\n", "")
    assert compiled(tmp_path) == before


@pytest.mark.slow
def test_what_is_compiled_ahead_is_all_that_generating_and_proving_need(tmp_path: Path) -> None:
    """A kernel that is first compiled in the middle of a proof would stop it for seconds."""
    finish(start_warm_up(tmp_path, (*TO_GENERATE, *TO_CHECK, *TO_PROVE)))
    before = compiled(tmp_path)
    folder = tmp_path / "parameters"
    generate = ("params", "generate", "--sector-size", "2KiB", "--insecure-dev", "--out", str(folder))
    finish(start(tmp_path, "cli.py", *generate))
    (tmp_path / "cuzk" / "checked-parameters.json").unlink()  # so that the proof checks the points too
    finish(start(tmp_path, "cli.py", "prove", str(C1), "--params", str(folder)))
    for path in folder.iterdir():
        path.unlink()
    assert {name for name, _ in compiled(tmp_path)} - {name for name, _ in before} == set()
