"""Many sectors through an engine: `python3 -m bench.gpu_engine --out FOLDER [--devices cuda:0,cuda:1]`.

The same synthetic input again and again, some at once: on the first card under either lock, then on two,
four, ... and all cards together, with as many more. Then one sector after another on all of them: all its
partitions, and as many as give each card two. Parameters are made in the memory of the cards, and every proof
is verified. What kernels took is told by the cards' own clocks; figures are those of `cuzk bench multi`.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import cuzk
from bench.gpu_urgent import proven
from bench.runner import machine_of
from bench.tables import markdown
from cuzk.benchmarks.jobs import bench_jobs
from cuzk.benchmarks.peak_memory import peak_host_bytes, reset_peak
from cuzk.events import Event, StageDone
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import load_api
from cuzk.timeline.record import Timeline
from cuzk.units import format_size, parse_size

#: What was wanted before anything was measured: a share of the time, parts of one, a ratio; of several cards
#: each one's share, what a round of partitions may take against their kernels, bytes of the host a card.
KERNELS_PERCENT, MORE_THAN_KERNELS, TWICE = 99.0, 0.03, 1.95
EACH_PERCENT, ROUND, HOST_A_CARD = 97.0, 1.10, 4 << 30
#: Sectors one at a time.
ALONE = 5
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
    runs += [(options.devices[:cards], "narrow") for cards in card_numbers(len(options.devices))]
    for devices, lock in runs:
        facts["runs"].append(measured(source, devices, lock, options))
        (options.out / "gpu_engine.json").write_text(json.dumps(facts, indent=1))
        print(engine_table(facts), flush=True)
    partitions = facts["runs"][0]["partitions"]
    facts["alone"] = alone(source, options, partitions)
    (options.out / "gpu_engine.json").write_text(json.dumps(facts, indent=1))
    print(alone_table(facts))
    for text in [*verdicts(facts["runs"]), *verdicts_alone(facts)]:
        print(text)


def card_numbers(cards: int) -> list[int]:
    """Two, four, ... and all."""
    return sorted({*(1 << k for k in range(1, cards.bit_length()) if 1 << k <= cards), cards} - {0, 1})


def measured(source: Any, devices: list[str], lock: Any, options: argparse.Namespace) -> Fact:
    cpu_s = 0.0

    def hear_warmth(event: Event) -> None:
        nonlocal cpu_s
        hear(event)
        if isinstance(event, StageDone) and event.name.startswith("warm-up"):
            reset_peak()
            cpu_s = time.process_time()

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
        on_event=hear_warmth,
    )
    assert len(result.completed) == result.count, [job.error for job in result.jobs if job.error]
    return {
        "cards": len(devices),
        "lock": lock,
        "partitions": result.partitions,
        "process": {"cpu_s": time.process_time() - cpu_s, "peak_bytes": peak_host_bytes()},
        **result.facts(),
    }


def hear(event: Event) -> None:
    if isinstance(event, StageDone) and event.seconds >= 1:
        print(f"{event.name}: {event.seconds:.1f} s", flush=True)


def alone(source: Any, options: argparse.Namespace, partitions: int) -> list[Fact]:
    """Milliseconds from handing in to the verified proof, of a sector after another on all cards.

    rounds  how many partitions the busiest card proves, one after another
    """
    cards, log = len(options.devices), io.BytesIO()
    facts: list[Fact] = []
    with cuzk.Engine(
        devices=options.devices, synthetic=True, recorder=Timeline(log), on_event=hear
    ) as engine:
        engine.preload(options.sector_size, kind=options.kind)
        for number in sorted({partitions, min(partitions, 2 * cards)}):
            walls = []
            for k in range(ALONE + 1):
                begin = time.perf_counter()
                name = f"{number} partitions {k}"
                proven(engine.submit(source, request_id=name, partitions=range(number)))
                walls.append((time.perf_counter() - begin) * 1000)
            rounds = -(-number // cards)
            facts.append({"cards": cards, "partitions": number, "rounds": rounds, "wall_ms": walls[1:]})
            print(facts[-1], flush=True)
    (options.out / "gpu_engine_alone.log").write_bytes(log.getvalue())
    return facts


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


def tables(facts: Fact) -> str:
    return f"{engine_table(facts)}\n\n{alone_table(facts)}"


def alone_table(facts: Fact) -> str:
    rows = [
        [
            str(fact["cards"]),
            str(fact["partitions"]),
            f"{median(fact['wall_ms']) / 1000:.2f} s ({min(fact['wall_ms']) / 1000:.2f} to"
            f" {max(fact['wall_ms']) / 1000:.2f})",
            f"{rounds_ms(facts, fact) / 1000:.2f} s",
            f"{median(fact['wall_ms']) / rounds_ms(facts, fact) - 1:+.1%}",
        ]
        for fact in facts["alone"]
    ]
    return markdown(
        ["cards", "partitions", "from handing in to the proof", "kernels of a card", "more"], rows
    )


def rounds_ms(facts: Fact, alone: Fact) -> float:
    """What the kernels of the busiest card take, by those of a partition on the first."""
    kernels = facts["runs"][0]["kernels"].values()
    return float(alone["rounds"] * median(one["partition_ms"] for one in kernels))


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
        ratio, cards = narrow["proof_s"] / run["proof_s"], run["cards"]
        wanted = TWICE * cards / 2
        least = min(one["efficiency_percent"] for one in run["kernels"].values())
        a_card = (run["process"]["peak_bytes"] - narrow["process"]["peak_bytes"]) / (cards - 1)
        found += [
            (f"{cards} cards prove {ratio:.2f} times as fast, wanted {wanted:.2f}", ratio >= wanted),
            (f"of {cards} cards each runs {least:.1f} %, wanted {EACH_PERCENT} %", least >= EACH_PERCENT),
            (
                f"the host takes {a_card / (1 << 30):.2f} GiB a card more, wanted {HOST_A_CARD >> 30}",
                a_card < HOST_A_CARD,
            ),
        ]
    return told(found)


def verdicts_alone(facts: Fact) -> list[str]:
    found = []
    for fact in facts["alone"]:
        ratio = median(fact["wall_ms"]) / rounds_ms(facts, fact)
        text = f"{fact['partitions']} partitions on {fact['cards']} cards take {ratio:.2f} times the kernels"
        found.append((f"{text} of {fact['rounds']}, wanted {ROUND:.2f}", ratio <= ROUND))
    return told(found)


def told(found: list[tuple[str, bool]]) -> list[str]:
    return [f"{'reached' if is_reached else 'MISSED'}: {text}" for text, is_reached in found]


if __name__ == "__main__":
    main()
