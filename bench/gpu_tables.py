"""Fills the GPU's tables of docs/performance.md: `python -m bench.gpu_tables [FOLDER]`.

FOLDER holds what `gpu_field`, `gpu_curve`, `gpu_ntt`, `gpu_msm` and `gpu_sector` wrote, maybe `gpu_engine`,
`gpu_load` and `gpu_urgent`; without one, the results kept in the repository. Shares of the limit are worked
out here, see `gpu_limits`: of a transform by its schedule, of a sum by its affine additions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench import peers
from bench.gpu_engine import tables as engine_tables
from bench.gpu_limits import addition_products, multiplier_rate, transform_products
from bench.gpu_urgent import urgent_table
from bench.runner import ROOT, quantity, size
from bench.tables import markdown, replace_block
from cuzk.kernels.gpu.sum_schedule import DECODED_AT_ONCE, additions
from cuzk.kernels.modulus import FR, FR_GENERATOR
from cuzk.kernels.ntt import Transform

KEPT = ROOT / "bench/results/h200"
PAGE = ROOT / "docs/performance.md"
#: Milliseconds that were set as the target before the kernels were written.
MSM_TARGETS_MS: dict[str, dict[int, float]] = {
    "G1": {1 << 16: 2.5, 1 << 18: 3.5, 1 << 20: 7.5, 1 << 22: 22, 1 << 24: 74, 1 << 26: 265, 1 << 27: 530},
    "G2": {1 << 16: 6, 1 << 18: 12, 1 << 20: 30},
}
SELECTED_TARGETS_MS = {1 << 22: 1.5, 1 << 24: 3.7, 1 << 27: 20}
_NEEDED = ("gpu_field", "gpu_curve", "gpu_ntt", "gpu_msm", "gpu_sector")
_TRANSFORMS = ("inverse", "forward", "coset inverse", "coset forward")
_PASS_BYTES = 64  # of memory traffic a value: read once, written once
_DEGREES = {"G1": 1, "G2": 2}
_STAGES = ("sort and scans", "round 1", "lists", "later rounds", "groups", "bits")
Fact = dict[str, Any]


def main() -> None:
    for name, content in blocks(Path(sys.argv[1]) if sys.argv[1:] else KEPT).items():
        replace_block(PAGE, name, content)


def blocks(folder: Path) -> dict[str, str]:
    """Every table by the name of its place. Ends with what is missing, if a file is."""
    missing = [f"{name}.json" for name in _NEEDED if not (folder / f"{name}.json").is_file()]
    if missing:
        raise SystemExit(
            f"{folder} lacks {', '.join(missing)}: python -m bench.NAME --out {folder} writes it"
        )
    fields, curve, transforms, sums, sector = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in _NEEDED
    )
    ntt_machine = next(fact for fact in transforms if fact["what"] == "machine")
    msm_machine = next(fact for fact in sums if fact["part"] == "machine")
    whole = [fact for fact in sums if fact["part"] == "msm" and not fact["note"]]
    return {
        **of_engine(folder),
        "gpu-sector": f"{sector_table(sector)}\n\n{where(sector['machine'])}",
        "gpu-field": f"{field_table(fields)}\n\n{where(fields)}",
        "gpu-curve": f"{curve_table(curve)}\n\n{where(curve)}",
        "gpu-ntt": f"{transform_table(transforms, ntt_machine)}\n\n{where(ntt_machine)}",
        "gpu-six": six_table(transforms),
        "gpu-msm": f"{msm_table(whole, msm_machine)}\n\n{where(msm_machine)}",
        "gpu-stages": stage_table(sums),
        "gpu-skewed": skewed_table(whole),
        "gpu-selected": selected_table(sums, msm_machine),
        "gpu-pairs": pair_table(sums, msm_machine),
    }


def of_engine(folder: Path) -> dict[str, str]:
    """The tables of those results that are there."""
    tables = {"gpu-engine": engine_tables, "gpu-load": cards_table, "gpu-urgent": urgent_table}
    files = {name: folder / f"{name.replace('-', '_')}.json" for name in tables}
    facts = {
        name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items() if path.exists()
    }
    return {name: f"{tables[name](one)}\n\n{where(one['machine'])}" for name, one in facts.items()}


def where(machine: Fact) -> str:
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", "numba", "numba-cuda", "numpy"))
    return (
        f"{machine['gpu']}, {machine['multiprocessors']} multiprocessors, {machine['clock_mhz']} MHz, driver "
        f"{machine['driver']}; {versions}; commit {machine['commit']}, tree {machine['tree']}."
    )


def field_table(report: Fact) -> str:
    rows = [
        [
            result["case"],
            f"{quantity(result['rate'])}/s".replace(" /", "/"),
            f"{result['limit_share']:.0%}",
            result["device"].split(", ")[1].removesuffix(" regs"),
            result["peer"]["times"]["0"] if result["peer"] else "",
        ]
        for result in report["results"]
    ]
    return markdown(["operation", "rate", "limit", "registers", "sppark"], rows)


SECTOR_STAGES = ("read", "check", "load points", "witness", "rows", "transforms", "verify")
#: What the host does before or for a stage, which belongs to it here.
_OF_HOST = {"witness": "pre-pass", "verify": "finish"}


def cards_table(facts: Fact) -> str:
    """Of chunks as they are; the last card's time."""
    runs = [
        fact
        for fact in facts["results"]
        if fact["part"] == "cards" and 1 << fact["chunk_log2"] == DECODED_AT_ONCE
    ]
    alone = median(max(times) for times in runs[0]["seconds"])
    rows = []
    for run in runs:
        seconds = median(max(times) for times in run["seconds"])
        how = "one reads, others copy" if run["together"] else "each reads by itself"
        rows.append(
            [
                f"{run['cards']}, {how}" if run["cards"] > 1 else "1",
                f"{seconds:.2f} s",
                f"{seconds / alone:.2f}",
                f"{run['read_gb']:.1f} GB",
                f"{run['cards'] * run['gb'] / seconds:.1f} GB/s",
                f"{run['peak_bytes'] / (1 << 30):.2f} GiB",
            ]
        )
    heads = ["cards", "until the last has all", "of one card's", "read", "brought", "process at most"]
    return markdown(heads, rows)


def sector_table(facts: Fact) -> str:
    """Seconds of whole runs, and of their stages; all sums together."""
    warm = {name: median(run[name] for run in facts["warm"]) for name in facts["warm"][0]}
    runs = {
        "ten partitions, points in place": warm,
        "one partition, points not yet on the card": facts["loading"],
        **{f"one partition, {limit} of the card": run for limit, run in facts["limited"].items()},
    }
    rows = []
    for name, run in runs.items():
        sums = sum(seconds for stage, seconds in run.items() if stage.startswith("sum "))
        stages = [run.get(stage, 0.0) + run.get(_OF_HOST.get(stage, ""), 0.0) for stage in SECTOR_STAGES]
        rows.append(
            [name, *(f"{seconds:.2f} s" for seconds in (run["whole"], *stages[:-1], sums, stages[-1]))]
        )
    return markdown(["proof", "whole", *SECTOR_STAGES[:-1], "sums", "verify"], rows)


def curve_table(report: Fact) -> str:
    rows = [
        [
            result["case"],
            f"{quantity(result['rate'])}/s".replace(" /", "/"),
            f"{result['limit_share']:.0%}",
            *result["device"].split(", ")[1:],
            result["peer"]["times"]["0"],
        ]
        for result in report["results"]
    ]
    return markdown(["case", "rate", "limit", "registers", "spilled", "sppark"], rows)


# Transforms


def kinds(log2_n: int) -> list[Transform]:
    """Those that `gpu_ntt` times, in the order of `_TRANSFORMS`."""
    back = pow(FR_GENERATOR, -1, FR.p)
    return [
        Transform(log2_n, inverse=True),
        Transform(log2_n, inverse=False),
        Transform(log2_n, inverse=True, scale=5, shift=back),
        Transform(log2_n, inverse=False, shift=FR_GENERATOR),
    ]


def first_measured(facts: list[Fact], what: str) -> Iterator[tuple[int, str, Fact]]:
    """log2 of n, the sizes of the passes and the first fact of each n; later ones are variants."""
    seen = set()
    for fact in facts:
        if fact["what"] == what:
            exponent, _, passes = fact["n"].removeprefix("2^").partition(" ")
            if exponent not in seen:
                seen.add(exponent)
                yield int(exponent), passes.split(")")[0].strip("("), fact


def transform_table(facts: list[Fact], machine: Fact) -> str:
    rate = multiplier_rate(machine["multiprocessors"], machine["clock_mhz"])
    by_kind = {
        name: {log2_n: fact for log2_n, _, fact in first_measured(facts, f"{name}, ms")}
        for name in _TRANSFORMS
    }
    rows = []
    for log2_n, passes, fact in first_measured(facts, "inverse, ms"):
        medians = [by_kind[name][log2_n]["median"] for name in _TRANSFORMS]
        shares = [
            1e3 * transform_products(kind) / rate / median
            for kind, median in zip(kinds(log2_n), medians, strict=True)
        ]
        traffic = len(passes.split(",")) * _PASS_BYTES * (1 << log2_n) / medians[0] / 1e9
        rows.append(
            [
                f"2^{log2_n}",
                passes,
                *map(milliseconds, medians),
                f"{min(shares):.0%}-{max(shares):.0%}",
                f"{traffic:.2f} TB/s",
                milliseconds(fact["target"]),
                peers.SPPARK_NTT.time(1 << log2_n),
            ]
        )
    return markdown(["n", "passes", *_TRANSFORMS, "limit", "memory traffic", "target", "sppark"], rows)


def six_table(facts: list[Fact]) -> str:
    rows = [
        [
            f"2^{log2_n}",
            milliseconds(fact["median"]),
            milliseconds(fact["median"] / 6),
            f"{fact['tables_mb']:.0f} MB",
            milliseconds(fact["target"]) if fact["target"] else "",
        ]
        for log2_n, _, fact in first_measured(facts, "six transforms, ms")
    ]
    return markdown(["n", "six transforms", "each", "tables of factors", "target"], rows)


# Sums


def additions_rate(machine: Fact, group: str) -> float:
    """Affine additions a second that the multipliers allow."""
    products = addition_products(_DEGREES[group])
    return multiplier_rate(machine["multiprocessors"], machine["clock_mhz"]) / products


def msm_table(facts: list[Fact], machine: Fact) -> str:
    peer_of = {"G1": peers.SPPARK_MSM_G1, "G2": peers.SPPARK_MSM_G2}
    rows = []
    for fact in facts:
        if fact["scalars"] == "random":
            n, group = fact["n"], fact["group"]
            rate = additions(n, fact["windows"]) / fact["ms"] * 1e3
            a_pass = "" if fact["a_pass"] == fact["windows"] else f", {fact['a_pass']} a pass"
            target = MSM_TARGETS_MS[group].get(n)
            rows.append(
                [
                    f"{group}, {size(n)}",
                    f"{fact['c']}, {fact['windows']}{a_pass}",
                    milliseconds(fact["ms"]),
                    milliseconds(fact["card_ms"]),
                    f"{rate / additions_rate(machine, group):.0%}",
                    f"{fact['GB']:.1f} GB",
                    milliseconds(target) if target else "",
                    peer_of[group].time(n),
                ]
            )
    heads = ["points", "bits, windows", "median", "on the card", "limit", "workspace", "target", "sppark"]
    return markdown(heads, rows)


def stage_table(facts: list[Fact]) -> str:
    """Stages down, MSMs across; the kernels of a stage are added up."""
    columns: dict[str, dict[str, float]] = {}
    group = ""
    for fact in facts:
        group = fact.get("group", group)
        head = f"{group}, {size(fact.get('n', 0))}"
        if fact["part"] == "stages" and head not in columns:
            columns[head] = dict.fromkeys(_STAGES, 0.0)
            for name, took in fact.items():
                if name not in ("part", "n", "sum"):
                    columns[head][stage_of(name)] += took
    rows = [[stage, *(milliseconds(column[stage]) for column in columns.values())] for stage in _STAGES]
    return markdown(["stage", *columns], rows)


def stage_of(name: str) -> str:
    if name == "round_1":
        return "round 1"
    prefixes = {"round": "later rounds", "lists": "lists", "group": "groups", "bit": "bits"}
    return next((stage for prefix, stage in prefixes.items() if name.startswith(prefix)), "sort and scans")


def skewed_table(facts: list[Fact]) -> str:
    by_scalars: dict[str, dict[str, Fact]] = {}
    for fact in facts:
        if fact["n"] == 1 << 20:
            by_scalars.setdefault(fact["scalars"], {})[fact["group"]] = fact
    rows = [
        [name, *(milliseconds(found[group]["ms"]) for group in _DEGREES)]
        for name, found in by_scalars.items()
    ]
    return markdown(["scalars", *(f"{group}, 2^20" for group in _DEGREES)], rows)


def selected_table(facts: list[Fact], machine: Fact) -> str:
    rows = [
        [
            f"{fact['group']}, {size(fact['n'])}",
            milliseconds(fact["ms"]),
            milliseconds(fact["card_ms"]),
            f"{quantity(1e9 * fact['G'])}/s".replace(" /", "/"),
            f"{1e9 * fact['G'] / additions_rate(machine, fact['group']):.0%}",
            milliseconds(SELECTED_TARGETS_MS[fact["n"]]) if fact["n"] in SELECTED_TARGETS_MS else "",
            peers.SPPARK_SELECTED.time(fact["n"]),
        ]
        for fact in facts
        if fact["part"] == "selected" and fact["variant"] == "{}"
    ]
    heads = ["points", "median", "on the card", "additions", "limit", "target", "sppark, large n"]
    return markdown(heads, rows)


def pair_table(facts: list[Fact], machine: Fact) -> str:
    rows = []
    for fact in facts:
        if fact["part"] == "pairs":
            best = max(fact["random_G"], fact["sequential_G"])
            rows.append(
                [
                    f"{fact['group']}, {fact['shape'].strip('()').replace('=', ' ')}",
                    f"{fact['registers']}, {fact['local']}",
                    f"{fact['random_G']:.2f} G/s",
                    f"{fact['sequential_G']:.2f} G/s",
                    f"{1e9 * best / additions_rate(machine, fact['group']):.0%}",
                    f"{fact['us_4096']:.0f} us",
                ]
            )
    heads = ["shape", "registers, local bytes", "random rows", "neighbours", "limit", "4096 pairs"]
    return markdown(heads, rows)


def milliseconds(value: float) -> str:
    return f"{value:.3g} ms"


if __name__ == "__main__":
    main()
