"""What the commands about parameters show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cuzk.units import format_duration, format_size
from cuzk.view.text import show_facts, show_json, show_table

if TYPE_CHECKING:
    from cuzk.parameters import TriedParameters
    from cuzk.reports.parameters import ParameterFacts


def show_parameters(files: Sequence[ParameterFacts], *, as_json: bool) -> None:
    """A table of parameter files, or where one could come from."""
    if as_json:
        show_json([asdict(facts) for facts in files])
    elif files:
        rows = [(f.kind, f.sector_size, f.origin, format_size(f.size_bytes), f.path) for f in files]
        show_table(("proof", "sector", "origin", "size", "file"), rows)
    else:
        click.echo("no parameters found; `cuzk params fetch` downloads, `cuzk params generate` makes them")


def show_tried(tried: TriedParameters, *, as_json: bool) -> None:
    """Parameters that were made in a GPU's memory, found good and given up."""
    if as_json:
        show_json({**asdict(tried), "written": [str(path) for path in tried.written]})
        return
    seconds = {name: format_duration(s) for name, s in tried.seconds.items()}
    title = f"good, on {tried.device}: every point is of order r, a proof was made and verified"
    show_facts(title, {**seconds, "all of it": format_duration(tried.total_s)})
    for path in tried.written:
        click.echo(f"written: {path}")
