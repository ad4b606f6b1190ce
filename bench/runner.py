"""What every benchmark shares: warm up, repeat, check, print a table, write the same facts as JSON.

A benchmark yields `Case`s and hands them to `main`. Times are wall clock; the CPU time beside it, child
processes included, shows when a busy machine, not the code, was measured: on two free cores it is close to
twice the wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.peers import Peer
from cuzk.kernels.device.cuda_card import Card, driver_release
from cuzk.reports.machine import cpu_model
from cuzk.units import format_size

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("numba", "llvmlite", "numpy")
TOLD_VERSION = "CUZK_BENCH_VERSION"
"""Environment variable for a tree without its history: commit and "clean" or "modified"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What a run tells of itself: seconds by stage, the most memory that it held."""

    stages: Mapping[str, float]
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table.

    prepare  untimed, before every run: makes what `run` gets
    run      timed
    check    whether what `run` returned is right, against other code than the one measured; called once
    items    how many `unit`s a run works through, for the rate
    limit    the rate in items/s that hardware allows, for the share of it that was reached; see `limit_of`
    inside   the stages and the memory of a run, from what it returned
    """

    name: str
    device: str
    n: int
    prepare: Callable[[], Any]
    run: Callable[[Any], Any]
    check: Callable[[Any], bool]
    items: int
    unit: str
    limit: float | None = None
    limit_of: str = ""
    peer: Peer | None = None
    inside: Callable[[Any], Inside] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    case: str
    device: str
    n: int
    runs: int
    median_s: float
    p10_s: float
    p90_s: float
    best_cpu_s: float
    rate: float
    unit: str
    correct: bool
    limit_share: float | None = None
    limit_of: str = ""
    peer: Peer | None = None
    stages_s: Mapping[str, float] = field(default_factory=dict)
    peak_bytes: int | None = None


def label(device: CpuDevice) -> str:
    """Kernels and threads: "cpu:ifma x2"."""
    return f"{device.name} x{device.threads}"


def measure(case: Case, warm_up: int, runs: int) -> Result:
    """The first run is the checked one: a warm-up, unless there are none."""
    wall, cpu, inside, correct = [], [], [], None
    for number in range(-warm_up, runs):
        given = case.prepare()
        cpu_start, start = _cpu_seconds(), time.perf_counter()
        returned = case.run(given)
        took, took_cpu = time.perf_counter() - start, _cpu_seconds() - cpu_start
        correct = case.check(returned) if correct is None else correct
        if number >= 0:
            wall.append(took)
            cpu.append(took_cpu)
            inside += [case.inside(returned)] if case.inside else []
    p10, median, p90 = _quantiles(wall)
    rate = case.items / median
    return Result(
        case=case.name,
        device=case.device,
        n=case.n,
        runs=runs,
        median_s=median,
        p10_s=p10,
        p90_s=p90,
        best_cpu_s=min(cpu),
        rate=rate,
        unit=f"{case.unit}/s",
        correct=bool(correct),
        limit_share=rate / case.limit if case.limit else None,
        limit_of=case.limit_of,
        peer=case.peer,
        stages_s=_stage_medians(inside),
        peak_bytes=max((one.peak_bytes for one in inside), default=None),
    )


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _quantiles(values: list[float]) -> tuple[float, float, float]:
    """10 %, 50 % and 90 %, between neighbours by proportion."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return tenths[0], tenths[4], tenths[8]


def _stage_medians(inside: list[Inside]) -> dict[str, float]:
    names = dict.fromkeys(name for one in inside for name in one.stages)
    return {name: statistics.median(one.stages.get(name, 0.0) for one in inside) for name in names}


def machine() -> dict[str, str | int | float]:
    """Where and with what the numbers were made."""
    return {
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
        **_version(),
    }


def machine_of(card: Card) -> dict[str, object]:
    """The same with a GPU."""
    return {
        **machine(),
        "gpu": card.name,
        "multiprocessors": card.multiprocessors,
        "clock_mhz": card.clock_mhz,
        "driver": driver_release(),
        "numba-cuda": metadata.version("numba-cuda"),
    }


def _cpu() -> str:
    """The name alone says little of a virtual CPU: family and model are added."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = cpu_model(lines) or platform.machine()
    return f"{name}, family {facts.get('cpu family', '?')} model {facts.get('model', '?')}"


def _version() -> dict[str, str]:
    """The commit and whether the tree is as it was committed; a copy without history is told both."""
    told = os.environ.get(TOLD_VERSION, "").split()
    if len(told) == 2:
        return {"commit": told[0], "tree": told[1]}
    return {
        "commit": _git("rev-parse", "--short", "HEAD"),
        "tree": "modified" if _git("status", "--porcelain", "--untracked-files=no") else "clean",
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def main(
    description: str,
    cases: Callable[[argparse.Namespace], Iterable[Case]],
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
    *,
    warm_up: int = 2,
    runs: int = 10,
    facts_of: Callable[[argparse.Namespace], Mapping[str, object]] = lambda options: machine(),
) -> None:
    """Run the cases that the options ask for. The exit code is 1 if any result was wrong."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--warm-up", type=int, default=warm_up, metavar="RUNS")
    parser.add_argument("--runs", type=int, default=runs, metavar="RUNS")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's facts here too")
    add_options(parser)
    options = parser.parse_args()

    facts, results = facts_of(options), []
    print(_HEAD)
    for case in cases(options):
        results.append(measure(case, options.warm_up, options.runs))
        print(_lines(results[-1]), flush=True)
    print(_foot(facts, results, options))
    if options.json:
        report = {**facts, "warm_up": options.warm_up, "results": [asdict(result) for result in results]}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if all(result.correct for result in results) else 1)


_HEAD = (
    f"{'case':<26}{'device':<14}{'n':>8}{'median':>10}{'p10-p90':>18}{'CPU':>10}{'rate':>22}{'limit':>7}"
    f"{'peer':>22}  check"
)


def _lines(result: Result) -> str:
    spread = f"{seconds(result.p10_s)}-{seconds(result.p90_s)}"
    limit = f"{result.limit_share:.0%}" if result.limit_share else ""
    peer = f"{result.peer.name} {result.peer.time(result.n)}" if result.peer else ""
    line = (
        f"{result.case:<26}{result.device:<14}{size(result.n):>8}{seconds(result.median_s):>10}{spread:>18}"
        f"{seconds(result.best_cpu_s):>10}{quantity(result.rate) + result.unit:>22}{limit:>7}{peer:>22}"
        f"  {'ok' if result.correct else 'WRONG'}"
    )
    stages = [f"  {name:<46}{seconds(took):>10}" for name, took in result.stages_s.items()]
    memory = [f"  {'peak memory':<46}{format_size(result.peak_bytes):>10}"] if result.peak_bytes else []
    return "\n".join([line, *stages, *memory])


def _foot(facts: Mapping[str, object], results: list[Result], options: argparse.Namespace) -> str:
    versions = ", ".join(f"{name} {facts[name]}" for name in ("python", *PACKAGES))
    notes = {f"limit: {result.limit_of}": None for result in results if result.limit_of}
    notes |= {f"{result.peer.name}: {result.peer.source}": None for result in results if result.peer}
    machine_line = f"{facts['cpu']}, {facts['cpus']} CPUs, load before {facts['load_before']}; {versions}"
    runs_line = f"commit {facts['commit']} {facts['tree']}, {options.warm_up} warm-up + {options.runs} runs"
    return "\n".join([machine_line, runs_line, *notes])


def size(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 < n and n > 8 else str(n)


def seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def quantity(value: float) -> str:
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {prefix} "
    return f"{value:.3g} "
