"""`cuzk sector`: what a prover is given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import cuzk
from cuzk import view
from cuzk.cli.options import (
    PATH,
    command,
    file_argument,
    json_option,
    kind_option,
    require_destination,
    size_option,
    threads_option,
)
from cuzk.events import stage

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.sector.pieces import SideInputs


@click.group()
def sector() -> None:
    """What a prover is given: look at it, or make it up."""


@command(sector, "inspect")
@file_argument
@click.option(
    "--miner",
    type=click.IntRange(min=0),
    help="Of a Commit 1 output: check that it is this miner's (1000 for t01000).",
)
@json_option
def sector_inspect(
    file: Path, beside: SideInputs, miner: int | None, settings: Config, as_json: bool
) -> None:
    """Read FILE, check all that can be checked without proving, and show what it says; see `cuzk prove`."""
    from cuzk.kernels.device.choose import choose_host
    from cuzk.proofs.sources import check_input, read_input
    from cuzk.proofs.warm_up import TO_CHECK, warm_up
    from cuzk.reports.circuit import input_facts

    machine = choose_host(settings.device, settings.threads)
    with view.live(as_json=as_json) as on_event:
        with stage(on_event, "read"):
            given = read_input(file, beside)
        warm_up(machine, TO_CHECK, on_event)
        with stage(on_event, "check"):
            check_input(given, machine, miner=miner)
    view.show_sections(input_facts(given), as_json=as_json)


@command(sector, "synthesize")
@kind_option
@size_option
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another seed, another sector."
)
@click.option("--registered-proof", metavar="NAME",
              help="Of PoRep, for example StackedDrg32GiBV1; without it V1_1.")  # fmt: skip
@click.option("--out", type=PATH, help="File to write; without it one here whose name says what it is.")
@threads_option
@json_option
def sector_synthesize(
    kind: str,
    sector_size: int,
    seed: int,
    registered_proof: str | None,
    out: Path | None,
    settings: Config,
    threads: int | None,
    as_json: bool,
) -> None:
    """Make what is proven of sectors that nobody sealed, for tests and benchmarks. It passes every check."""
    from cuzk.api import synthetic_name

    out = out or Path(synthetic_name(kind, sector_size, registered_proof, seed))
    require_destination(out)
    with view.live(as_json=as_json) as on_event:
        cuzk.synthesize(
            sector_size,
            kind=kind,
            seed=seed,
            registered_proof=registered_proof,
            out=out,
            threads=threads or settings.threads,
            on_event=on_event,
        )
    view.show_paths("written", [out], as_json=as_json)
