"""Development parameters for 2 KiB sectors, stage by stage: `python -m bench.params`.

Each run is a fresh process that writes 1.1 GB to `.bench/`; kernels are compiled by the warm-up. Check: the
SHA-256 of what bellperson made from the same trapdoors.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from bench import peers
from bench.process import KEPT, SECTOR_BYTES, run_task, vectors
from bench.runner import Case, main
from cuzk.kernels.device.cpu import has_ifma

FOLDER = KEPT / "generated"


def options(parser: argparse.ArgumentParser) -> None:
    devices = ["cpu:ifma", "cpu:scalar"] if has_ifma() else ["cpu:scalar"]
    parser.add_argument("--device", nargs="+", default=devices, metavar="DEVICE")


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    yield from map(generation_case, chosen.device)
    shutil.rmtree(FOLDER, ignore_errors=True)


def generation_case(device: str) -> Case:
    expected = vectors()["params_2k"]
    return Case(
        name="parameters, 2 KiB",
        device=device,
        n=SECTOR_BYTES,
        prepare=lambda: shutil.rmtree(FOLDER, ignore_errors=True),
        run=lambda _: run_task("generate", {"device": device, "out": str(FOLDER)}),
        check=lambda done: sha256(Path(done.answer)) == expected["params_sha256"],
        items=sum(expected["points"].values()),
        unit="points",
        peer=peers.GENERATION,
        inside=lambda done: done.inside,
    )


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    main("Development parameters", cases, options, warm_up=1, runs=3)
