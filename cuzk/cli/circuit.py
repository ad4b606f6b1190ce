"""`cuzk circuit`: the circuit that is proven."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuzk import view
from cuzk.cli.options import (
    command,
    device_option,
    file_argument,
    json_option,
    kind_option,
    size_option,
    threads_option,
)
from cuzk.events import stage

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.sector.pieces import SideInputs


@click.group()
def circuit() -> None:
    """Look at the circuit that is proven."""


@command(circuit, "info")
@kind_option
@size_option
@json_option
def circuit_info(kind: str, sector_size: int, settings: Config, as_json: bool) -> None:
    """Show the counts of a sector size's circuit, and what its parameters take."""
    from cuzk.proofs.kinds import circuit_of, kind_named
    from cuzk.reports.circuit import circuit_facts, template_facts
    from cuzk.view.reports import show_circuit

    with view.live(as_json=as_json) as on_event, stage(on_event, "build the circuit"):
        shape = kind_named(kind).shape(sector_size)
        built = circuit_of(shape)
    show_circuit(circuit_facts(shape, built), template_facts(built), as_json=as_json)


@command(circuit, "digest")
@file_argument
@click.option("--partition", "partitions", multiple=True, type=click.IntRange(min=0), metavar="K",
              help="This partition only; may be repeated.")  # fmt: skip
@click.option("--check", is_flag=True, help="Also find the first row that is not satisfied.")
@device_option
@threads_option
@json_option
@click.pass_context
def circuit_digest(
    ctx: click.Context,
    file: Path,
    beside: SideInputs,
    partitions: tuple[int, ...],
    check: bool,
    settings: Config,
    device: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Print digests of the circuit and of the assignment that FILE gives it, to compare with other provers.

    FILE is as for `cuzk prove`.
    """
    from cuzk.proofs.sources import read_input
    from cuzk.reports.circuit import digests

    with view.live(as_json=as_json) as on_event:
        with stage(on_event, "read"):
            given = read_input(file, beside)
        facts = digests(
            given,
            partitions=partitions,
            check=check,
            device=device or settings.device,
            threads=threads or settings.threads,
            on_event=on_event,
        )
    view.show_sections(facts, as_json=as_json)
    if any(section.get("unsatisfied") for section in facts.values()):
        ctx.exit(1)
