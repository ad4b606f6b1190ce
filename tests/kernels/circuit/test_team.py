"""Code that a team runs: alone on the CPU, and by several threads at once as in a GPU's block."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from cuzk.kernels.circuit.team import meet, member, members

ROOT = Path(__file__).resolve().parents[3]


@numba.njit
def who_am_i():
    meet()
    return member(), members()


def test_on_the_cpu_a_thread_is_alone() -> None:
    assert who_am_i() == (0, 1)


@pytest.mark.slow  # compiles a circuit's kernels anew
def test_teams_of_any_size_fill_variables_and_rows_as_one_thread_does(tmp_path: Path) -> None:
    sizes = ["1", "2", "5", "13", "32", "128"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.circuit.threaded_team", *sizes],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout == "right\n", done.stderr[-2000:]
