"""`cuzk bench`: how fast this machine proves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuzk import view
from cuzk.options import (
    PATH,
    command,
    device_option,
    json_option,
    size_option,
    threads_option,
    vram_option,
)
from cuzk.units import format_duration, format_size

if TYPE_CHECKING:
    from cuzk.config import Config


@click.group()
def bench() -> None:
    """Measure how fast this machine proves."""


@command(bench, "partition")
@size_option
@click.option(
    "--synthetic", is_flag=True, required=True,
    help="The sector is synthetic and the parameters are made for it, in memory: say that you know.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the sector.")
@click.option("--registered-proof", metavar="NAME", help="For example StackedDrg32GiBV1; without it V1_1.")
@click.option("--partitions", type=click.IntRange(min=1), help="Only the first so many; without it all.")
@click.option("--out", type=PATH, help="Folder for c1.json, verifying key and proof, for other software.")
@device_option
@vram_option
@threads_option
@json_option
def bench_partition(
    sector_size: int,
    synthetic: bool,
    seed: int,
    registered_proof: str | None,
    partitions: int | None,
    out: Path | None,
    settings: Config,
    device: str | None,
    vram_limit: int | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Sector, parameters and partitions of a size in one process on a GPU, each stage timed."""
    from cuzk.benchmark import bench_partitions

    with view.live(as_json=as_json) as on_event:
        result = bench_partitions(
            sector_size,
            registered_proof=registered_proof,
            seed=seed,
            partitions=partitions,
            device=device or settings.device,
            threads=threads or settings.threads,
            vram_limit=vram_limit,
            out=out,
            on_event=on_event,
        )
    if as_json:
        view.show_json(result.facts())
        return
    view.show_facts(
        f"{result.registered_proof}, {len(result.partitions)} partitions, verified",
        {
            "device": result.device,
            "all partitions": format_duration(result.proving_s),
            "host memory, setup": format_size(result.peak_host["setup"]),
            "host memory, proving": format_size(result.peak_host["proving"]),
        },
    )
    view.show_facts("setup", {name: format_duration(s) for name, s in result.setup.items()})
    view.show_table(
        ("stage", "first", "median of the others"),
        [(name, format_duration(a), format_duration(b)) for name, a, b in result.stage_table()],
    )
