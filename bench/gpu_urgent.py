"""Urgent proofs among a sector's ten partitions: `python3 -m bench.gpu_urgent --out FOLDER`.

Sectors are proven one after another, so that the card always computes one of their partitions; meanwhile
WinningPoSt proofs arrive, one after another, at moments that have nothing to do with the partitions. What
each waits for is read from the engine's timeline. Before, the same urgent proofs alone, as what to compare
with. Parameters are made in the card's memory, and every proof is verified.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import cuzk
from bench.runner import machine_of
from bench.tables import markdown
from cuzk.engine.jobs import Job, Priority
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import load_api
from cuzk.sector.claim import WINNING
from cuzk.timeline.analyze import Run, analyze
from cuzk.timeline.read import parse_log
from cuzk.timeline.record import Timeline
from cuzk.timeline.spans import Kind
from cuzk.units import parse_size

SECTORS, MOST_PAUSE_S = 3, 1.5
Fact = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sector-size", type=parse_size, default=parse_size("32GiB"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--count", type=int, default=20, help="urgent proofs, alone and among others")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    log, size = io.BytesIO(), options.sector_size
    sector, election = cuzk.synthesize(size), cuzk.synthesize(size, kind=WINNING)
    with cuzk.Engine(devices=[options.device], synthetic=True, recorder=Timeline(log)) as engine:
        for k, source in enumerate((sector, election, sector, election)):
            proven(engine.submit(source, request_id=f"warm-up {k}"))
        walls = {"alone": list(urgent_proofs(engine, election, "alone", options.count))}
        usual = [engine.submit(sector, request_id=f"usual {k}") for k in range(SECTORS)]
        time.sleep(MOST_PAUSE_S)
        walls["among"] = list(urgent_proofs(engine, election, "among", options.count))
        left = sum(job.wait(0) is None for job in usual)
        assert left, "the sectors were proven before the last urgent proof: fewer of these, or more of those"
        for job in usual:
            proven(job)
    [run] = analyze(parse_log(io.TextIOWrapper(io.BytesIO(log.getvalue())), name="log")).runs
    facts: Fact = {
        "machine": machine_of(find_card(load_api(), options.device)),
        "sector_bytes": size,
        "urgent": {
            name: [urgent_fact(run, f"{name} {k}", wall) for k, wall in enumerate(walls[name])]
            for name in walls
        },
    }
    (options.out / "gpu_urgent.log").write_bytes(log.getvalue())
    (options.out / "gpu_urgent.json").write_text(json.dumps(facts, indent=1))
    print(urgent_table(facts))


def proven(job: Job) -> None:
    result = job.wait()
    assert result is not None
    result.require_proof()


def urgent_proofs(engine: cuzk.Engine, election: Any, name: str, count: int) -> Iterator[float]:
    """Milliseconds of each from handing in to the verified proof. Pauses are drawn, the same in every run."""
    draw = random.Random(1)
    for k in range(count):
        time.sleep(draw.uniform(0, MOST_PAUSE_S) if name == "among" else 0)
        begin = time.perf_counter()
        proven(engine.submit(election, request_id=f"{name} {k}", priority=Priority.CRITICAL))
        yield (time.perf_counter() - begin) * 1000


def urgent_fact(run: Run, job: str, wall_ms: float) -> Fact:
    """Of one urgent proof: what it waited for, and how many other partitions were done meanwhile."""
    [queue], [wait], [lock] = (
        [span for span in run.work.ended[kind] if span.job == job]
        for kind in (Kind.QUEUE, Kind.WAIT, Kind.LOCK)
    )
    ends = [span.start_ms + span.took_ms for span in run.work.ended[Kind.CALL] if span.job != job]
    return {
        "wall_ms": wall_ms,
        "waits_ms": lock.start_ms - queue.start_ms,
        "waits_for_the_lock_ms": wait.took_ms,
        "computes_ms": lock.took_ms,
        "ended_before": sum(queue.start_ms < end <= lock.start_ms for end in ends),
    }


def urgent_table(facts: Fact) -> str:
    rows = []
    for name, ones in facts["urgent"].items():
        columns = {key: [one[key] for one in ones] for key in ones[0]}
        rows.append(
            [
                {"alone": "alone", "among": "among PoRep partitions"}[name],
                str(len(ones)),
                *(
                    f"{median(columns[key]):.0f} ms, {max(columns[key]):.0f}"
                    for key in ("waits_ms", "computes_ms", "wall_ms")
                ),
                str(sum(columns["ended_before"])),
            ]
        )
    heads = ["urgent proofs", "of them", "waits, most", "computes, most", "proof, most"]
    return markdown([*heads, "others that ended first"], rows)


if __name__ == "__main__":
    main()
