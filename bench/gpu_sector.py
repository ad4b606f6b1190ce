"""A whole sector of production size on a GPU: `python3 -m bench.gpu_sector --out FOLDER --params /dev/shm/p`.

Development parameters are generated and written to `--params`, a folder with room for them: for 32 GiB 47 GB,
in memory (/dev/shm) if they are to come from the page cache. Then one process proves a synthetic sector again
and again: the first time with the card empty, then with all points in place; and one partition within less
and less of the card's memory, whose bytes must not change. `cuzk.prove` verifies every proof.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import cuzk
from bench.runner import machine_of
from cuzk.events import Stopwatch
from cuzk.groth16.gpu.target import release
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import load_api
from cuzk.units import format_size, parse_size

TRAPDOORS = (2, 3, 5, 7, 11)
RANDOMIZERS = (13, 17)
WARM_RUNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sector-size", type=parse_size, default=parse_size("32GiB"))
    parser.add_argument("--params", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--vram-limits", type=parse_size, nargs="*", default=[48 << 30, 24 << 30, 16 << 30])
    options = parser.parse_args()
    facts: dict[str, Any] = {"machine": machine_of(find_card(load_api(), options.device))}
    c1 = options.out / "c1.json"
    c1.unlink(missing_ok=True)
    facts["synthesize"] = timed(lambda hear: cuzk.synthesize(options.sector_size, out=c1, on_event=hear))
    facts["generate"] = timed(
        lambda hear: cuzk.generate_parameters(
            options.sector_size, trapdoors=TRAPDOORS, out=options.params, device=options.device, on_event=hear
        )
    )
    whole = {"params": options.params, "device": options.device}
    facts["first"] = timed(lambda hear: cuzk.prove(c1, on_event=hear, **whole))
    facts["warm"] = [timed(lambda hear: cuzk.prove(c1, on_event=hear, **whole)) for _ in range(WARM_RUNS)]
    one = {**whole, "partitions": [0], "insecure_rs": RANDOMIZERS}
    proof = cuzk.prove(c1, **one).proof
    facts["limited"] = {}
    for limit in options.vram_limits:
        release()
        cuzk.prove(c1, vram_limit=limit, **one)  # loads what stays
        results: list[bytes] = []
        facts["limited"][format_size(limit)] = timed(
            lambda hear, limit=limit, results=results: results.append(
                cuzk.prove(c1, vram_limit=limit, on_event=hear, **one).proof
            )
        )
        assert results == [proof], f"other bytes within {format_size(limit)}"
    release()
    facts["loading"] = timed(lambda hear: cuzk.prove(c1, on_event=hear, **one))
    facts["process_peak"] = peak()
    c1.unlink()
    (options.out / "gpu_sector.json").write_text(json.dumps(facts, indent=1))


def timed(work: Any) -> dict[str, float]:
    """Seconds of all of it, and of its stages: those of all partitions added up."""
    clock, begin = Stopwatch(), time.perf_counter()
    work(clock.hear)
    found = {"whole": time.perf_counter() - begin, **clock.by_work()}
    print(", ".join(f"{name} {seconds:.3f} s" for name, seconds in found.items()), flush=True)
    return found


def peak() -> dict[str, int]:
    """Bytes that this process held at most, and what of it now is its own, not the file's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return {name: int(status.partition(f"{name}:")[2].split()[0]) << 10 for name in ("VmHWM", "RssAnon")}


if __name__ == "__main__":
    main()
