"""What every benchmark shares: warm up, repeat, check, print a table, write the same facts as JSON.

A benchmark yields `Case`s and hands them to `main`. Times are wall clock; the CPU time beside them shows when a
busy machine, not the code, was measured: on two free cores it is close to twice the wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table.

    prepare  untimed, before every run: makes what `run` gets
    run      timed
    check    whether what `run` returned is right, against other code than the one measured; called once
    items    how many `unit`s a run works through, for the rate
    """

    name: str
    n: int
    prepare: Callable[[], Any]
    run: Callable[[Any], Any]
    check: Callable[[Any], bool]
    items: int
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    case: str
    n: int
    runs: int
    median_s: float
    p10_s: float
    p90_s: float
    best_cpu_s: float
    rate: float
    unit: str
    correct: bool


def measure(case: Case, warm_up: int, runs: int) -> Result:
    correct = case.check(case.run(case.prepare()))
    for _ in range(warm_up - 1):
        case.run(case.prepare())
    wall, cpu = [], []
    for _ in range(runs):
        given = case.prepare()
        cpu_start, start = time.process_time(), time.perf_counter()
        case.run(given)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    p10, median, p90 = (float(q) for q in np.quantile(wall, [0.1, 0.5, 0.9]))
    return Result(
        case=case.name,
        n=case.n,
        runs=runs,
        median_s=median,
        p10_s=p10,
        p90_s=p90,
        best_cpu_s=min(cpu),
        rate=case.items / median,
        unit=f"{case.unit}/s",
        correct=correct,
    )


def machine() -> dict[str, str | int]:
    """Where and with what the numbers were made."""
    return {
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "commit": _git("rev-parse", "--short", "HEAD"),
        "tree": "modified" if _git("status", "--porcelain", "--untracked-files=no") else "clean",
    }


def _cpu_model() -> str:
    """The name alone says little of a virtual CPU: family and model are added."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    name = fields.get("model name", platform.machine())
    return f"{name}, family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def main(
    description: str,
    cases: Callable[[argparse.Namespace], Iterable[Case]],
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> None:
    """Run the cases that the options ask for. The exit code is 1 if any result was wrong."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--warm-up", type=int, default=2, metavar="RUNS")
    parser.add_argument("--runs", type=int, default=10, metavar="RUNS")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's facts here too")
    add_options(parser)
    options = parser.parse_args()

    facts, results = machine(), []
    print(f"{'case':<28}{'n':>8}{'median':>11}{'p10-p90':>20}{'best CPU':>11}{'rate':>24}   check")
    for case in cases(options):
        results.append(measure(case, options.warm_up, options.runs))
        print(_line(results[-1]), flush=True)
    print(
        f"{facts['cpu']}, {facts['cpus']} CPUs, load before {facts['load_before']}; "
        f"Python {facts['python']}, numba {facts['numba']}, commit {facts['commit']} {facts['tree']}; "
        f"{options.warm_up} warm-up + {options.runs} runs"
    )
    if options.json:
        report = {**facts, "warm_up": options.warm_up, "results": [asdict(result) for result in results]}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if all(result.correct for result in results) else 1)


def _line(result: Result) -> str:
    spread = f"{_seconds(result.p10_s)}-{_seconds(result.p90_s)}"
    return (
        f"{result.case:<28}{_size(result.n):>8}{_seconds(result.median_s):>11}{spread:>20}"
        f"{_seconds(result.best_cpu_s):>11}{_quantity(result.rate) + ' ' + result.unit:>24}"
        f"   {'ok' if result.correct else 'WRONG'}"
    )


def _size(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 < n else str(n)


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def _quantity(value: float) -> str:
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value:.3g} "
