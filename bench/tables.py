"""Fills the measured tables of docs/performance.md and README.md: `python -m bench.tables FOLDER`.

FOLDER holds what the benchmarks wrote with --json, named by subject (`field.json`, `prove.json`). Tables
stand between `<!-- measured:NAME:begin -->` and `<!-- measured:NAME:end -->`; without a file they stay.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from bench.runner import ROOT, quantity, seconds, size
from cuzk.units import format_size

SUBJECTS = ("field", "ntt", "msm", "params", "prove", "server")
Report = dict[str, Any]

#: README: the case as its benchmark names it, and as a reader does.
HIGHLIGHTS = (
    ("prove", "proof, second start", 2048, "one 2 KiB proof, from file to verified proof"),
    ("prove", "proof, first start", 2048, "the same, first start: kernels compile, parameters are checked"),
    ("params", "parameters, 2 KiB", 2048, "parameters for 2 KiB (1.1 GB)"),
    ("msm", "G1 random", 1 << 22, "multi-scalar multiplication, 2^22 points of G1"),
    ("ntt", "quotient", 1 << 22, "six transforms of 2^22 values of Fr"),
)


def main() -> None:
    folder = Path(sys.argv[1])
    reports = {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in SUBJECTS
        if (folder / f"{name}.json").exists()
    }
    for name, report in reports.items():
        replace_block(ROOT / "docs/performance.md", name, table(report))
    if set(reports) == set(SUBJECTS):
        replace_block(ROOT / "README.md", "highlights", highlights(reports))


def replace_block(path: Path, name: str, content: str) -> None:
    begin, end = f"<!-- measured:{name}:begin -->", f"<!-- measured:{name}:end -->"
    text = path.read_text(encoding="utf-8")
    replaced, count = re.subn(
        f"{begin}.*?{end}", lambda _: f"{begin}\n{content}\n{end}", text, flags=re.DOTALL
    )
    assert count == 1, f"{path} has {count} blocks {name}"
    path.write_text(replaced, encoding="utf-8")


def table(report: Report) -> str:
    rows = [
        (
            result["case"],
            result["device"],
            size(result["n"]),
            seconds(result["median_s"]),
            f"{seconds(result['p10_s'])}-{seconds(result['p90_s'])}",
            seconds(result["best_cpu_s"]),
            quantity(result["rate"]) + result["unit"],
            f"{result['limit_share']:.0%}" if result["limit_share"] else "",
            peer(result),
            format_size(result["peak_bytes"]) if result["peak_bytes"] else "",
        )
        for result in report["results"]
    ]
    heads = ("case", "device", "n", "median", "p10-p90", "CPU", "rate", "limit", "peer", "peak memory")
    kept = [k for k in range(len(heads)) if any(row[k] for row in rows)]
    parts = [markdown([heads[k] for k in kept], [[row[k] for k in kept] for row in rows])]
    stages = stage_table(report)
    return "\n\n".join([*parts, *([stages] if stages else []), where(report), *notes(report)])


def stage_table(report: Report) -> str:
    """Stages down, cases across; nothing where no case has stages."""
    staged = [result for result in report["results"] if result["stages_s"]]
    names = list(dict.fromkeys(name for result in staged for name in result["stages_s"]))
    if not staged:
        return ""
    heads = ["stage", *(f"{result['case']}, {result['device']}" for result in staged)]
    times = [
        [seconds(result["stages_s"][name]) if name in result["stages_s"] else "" for result in staged]
        for name in names
    ]
    return markdown(heads, [[name, *row] for name, row in zip(names, times, strict=True)])


def where(report: Report) -> str:
    versions = ", ".join(f"{name} {report[name]}" for name in ("python", "numba", "llvmlite", "numpy"))
    runs = {result["runs"] for result in report["results"]}
    return (
        f"{report['cpu']}, {report['cpus']} CPUs, load before {report['load_before']}; {versions}; commit "
        f"{report['commit']}, tree {report['tree']}; {report['warm_up']} warm-up + {max(runs)} runs."
    )


def notes(report: Report) -> list[str]:
    """What the limit is, and where the peer's times come from, each once."""
    limits = {f"Limit {result['limit_of']}." for result in report["results"] if result["limit_of"]}
    sources = {
        f"{result['peer']['name']}: {result['peer']['source']}."
        for result in report["results"]
        if result["peer"]
    }
    return sorted(limits) + sorted(sources)


def highlights(reports: dict[str, Report]) -> str:
    devices = ("cpu:ifma", "cpu:scalar")
    rows = []
    for subject, case, n, words in HIGHLIGHTS:
        found = [r for r in reports[subject]["results"] if (r["case"], r["n"]) == (case, n)]
        if not found:  # left out of the run
            continue
        times = [
            next((seconds(r["median_s"]) for r in found if r["device"].startswith(device)), "")
            for device in devices
        ]
        rows.append([words, *times, next(iter(map(peer, found)), "")])
    heads = ["two cores", "AVX-512 IFMA", "without", "others, on a similar machine"]
    return f"{markdown(heads, rows)}\n\n{where(reports['prove'])}"


def peer(result: Report) -> str:
    given = result["peer"]
    time = given and (given["times"].get(str(result["n"])) or given["times"].get("0"))
    return f"{given['name']} {time}" if time else ""


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
