"""From a c1 file to a verified proof, 2 KiB: `python -m bench.prove`.

Each run is a fresh process. *first start* has an empty cache folder: it compiles the kernels and checks the
points of the parameters; *second start* is what every later proof takes. Check: upstream's proof of the same
sector with the same parameters and randomness, byte for byte. Parameters are made once and kept in
`.bench/parameters`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import peers
from bench.params import options as device_options
from bench.process import KEPT, SECTOR_BYTES, as_users_have_it, run_task, vectors
from bench.runner import ROOT, Case, main

EMPTY_CACHE = KEPT / "empty-cache"


def options(parser: argparse.ArgumentParser) -> None:
    device_options(parser)
    parser.add_argument("--params", type=Path, default=KEPT / "parameters", metavar="DIR")
    parser.add_argument(
        "--no-first-start", action="store_true", help="leave out the runs with an empty cache"
    )


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    yield help_case()
    if not list(chosen.params.glob("*.params")):
        print(f"making parameters in {chosen.params}", file=sys.stderr)
        run_task("generate", {"device": "cpu", "out": str(chosen.params)})
    for device in chosen.device:
        yield proof_case("second start", device, chosen.params)
        if not chosen.no_first_start:
            yield proof_case("first start", device, chosen.params, cache=EMPTY_CACHE)
    shutil.rmtree(EMPTY_CACHE, ignore_errors=True)


def help_case() -> Case:
    command = [sys.executable, str(ROOT / "cli.py"), "--help"]
    return Case(
        name="cuzk --help",
        device="",
        n=1,
        prepare=lambda: None,
        run=lambda _: (
            subprocess.run(command, capture_output=True, text=True, check=True, env=as_users_have_it()).stdout
        ),
        check=lambda shown: "prove" in shown,
        items=1,
        unit="starts",
    )


def proof_case(name: str, device: str, params: Path, cache: Path | None = None) -> Case:
    of_sector = vectors()["cases"][0]
    arguments = {"device": device, "params": str(params.resolve()), "c1": of_sector["file"]}

    def prepare() -> None:
        if cache is not None:
            shutil.rmtree(cache, ignore_errors=True)

    return Case(
        name=f"proof, {name}",
        device=device,
        n=SECTOR_BYTES,
        prepare=prepare,
        run=lambda _: run_task("prove", arguments, cache),
        check=lambda done: done.answer == of_sector["proof_r13_s17"],
        items=1,
        unit="proofs",
        peer=peers.PROOF,
        inside=lambda done: done.inside,
    )


if __name__ == "__main__":
    main("A proof, from the file to its verification", cases, options, warm_up=1, runs=3)
