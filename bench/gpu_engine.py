"""Many sectors through an engine: `python3 -m bench.gpu_engine --out FOLDER [--devices cuda:0,cuda:1]`.

The same synthetic input again and again, some at once: on the first card under either lock, then on all cards
together, with as many more. Parameters are made in the memory of the cards, and every proof is verified. What
kernels took is told by the cards' own clocks; figures are those of `cuzk bench multi`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import cuzk
from bench.runner import machine_of
from bench.tables import markdown
from cuzk.benchmarks.jobs import bench_jobs
from cuzk.events import Event, StageDone
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import load_api
from cuzk.units import format_size, parse_size

#: What was wanted before anything was measured: a share of the time, parts of one, and a ratio.
KERNELS_PERCENT, MORE_THAN_KERNELS, TWICE = 99.0, 0.03, 1.95
Fact = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="porep")
    parser.add_argument("--sector-size", type=parse_size, default=parse_size("32GiB"))
    parser.add_argument("--devices", type=lambda text: text.split(","), default=["cuda:0"])
    parser.add_argument("-c", "--count", type=int, default=5, help="proofs for each card")
    parser.add_argument("-j", "--concurrency", type=int, default=3, help="at once for each card")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    source = cuzk.synthesize(options.sector_size, kind=options.kind)
    facts: Fact = {
        "machine": machine_of(find_card(load_api(), options.devices[0])),
        "sector_bytes": options.sector_size,
        "kind": options.kind,
        "runs": [],
    }
    runs = [(options.devices[:1], "narrow"), (options.devices[:1], "coarse")]
    runs += [(options.devices, "narrow")] if len(options.devices) > 1 else []
    for devices, lock in runs:
        facts["runs"].append(measured(source, devices, lock, options))
        (options.out / "gpu_engine.json").write_text(json.dumps(facts, indent=1))
        print(engine_table(facts), flush=True)
    for text in verdicts(facts["runs"]):
        print(text)


def measured(source: Any, devices: list[str], lock: Any, options: argparse.Namespace) -> Fact:
    result = bench_jobs(
        source,
        lambda recorder: cuzk.Engine(
            devices=devices,
            synthetic=True,
            settings=cuzk.EngineSettings(gpu_lock=lock),
            recorder=recorder,
            on_event=hear,
        ),
        count=options.count * len(devices),
        concurrency=options.concurrency * len(devices),
        warm_up=len(devices),
        timeline=options.out / f"gpu_engine_{len(devices)}_{lock}.log",
        on_event=hear,
    )
    assert len(result.completed) == result.count, [job.error for job in result.jobs if job.error]
    return {"cards": len(devices), "lock": lock, "partitions": result.partitions, **result.facts()}


def hear(event: Event) -> None:
    if isinstance(event, StageDone) and event.seconds >= 1:
        print(f"{event.name}: {event.seconds:.1f} s", flush=True)


def host_ms(run: Fact) -> float:
    """Of a partition, what its worker does before and after the device: mean."""
    stages = run["stages_ms"]
    on_device = stages["waiting for its lock"]["total"] + stages["on the device"]["total"]
    outside = stages["both, and the host's part"]["total"] - on_device
    return float(outside / (run["count"] * run["partitions"]))


def engine_table(facts: Fact) -> str:
    rows = [
        [
            f"{run['cards']}, {run['lock']}",
            f"{run['count']}, {run['concurrency']} at once",
            f"{run['proof_s']:.2f} s",
            f"{run['kernels_s']:.2f} s",
            f"{run['proof_s'] / run['kernels_s'] - 1:+.1%}",
            ", ".join(f"{one['efficiency_percent']:.1f} %" for one in run["kernels"].values()),
            f"{host_ms(run):.0f} ms",
            f"{run['wall_ms']['median'] / 1000:.1f} s",
            ", ".join(
                format_size(nbytes) for name, nbytes in run["peak_bytes"].items() if "host" not in name
            ),
        ]
        for run in facts["runs"]
    ]
    heads = ["cards, lock", "proofs", "a proof", "its kernels", "more", "kernels ran", "host, a partition"]
    return markdown([*heads, "latency", "memory of the cards"], rows)


def verdicts(runs: list[Fact]) -> list[str]:
    """What was wanted, and what came out; of runs in the order of `main`."""
    narrow, coarse, *both = runs
    share = min(one["efficiency_percent"] for one in narrow["kernels"].values())
    more = narrow["proof_s"] / narrow["kernels_s"] - 1
    gain, host = 1000 * (coarse["proof_s"] - narrow["proof_s"]) / narrow["partitions"], host_ms(narrow)
    found = [
        (
            f"kernels run {share:.1f} % after the first partition, wanted {KERNELS_PERCENT} %",
            share >= KERNELS_PERCENT,
        ),
        (
            f"a proof takes {more:+.1%} against its kernels, wanted {MORE_THAN_KERNELS:.0%}",
            more <= MORE_THAN_KERNELS,
        ),
        (f"the narrow lock gains {gain:.0f} ms a partition, its host part takes {host:.0f} ms", gain >= host),
    ]
    for run in both:
        ratio = narrow["proof_s"] / run["proof_s"]
        wanted = TWICE * run["cards"] / 2
        found.append(
            (f"{run['cards']} cards prove {ratio:.2f} times as fast, wanted {wanted:.2f}", ratio >= wanted)
        )
    return [f"{'reached' if is_reached else 'MISSED'}: {text}" for text, is_reached in found]


if __name__ == "__main__":
    main()
