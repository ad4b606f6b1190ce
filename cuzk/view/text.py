"""What every command shows with: an error or a notice on stderr; JSON, facts and tables on stdout."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cuzk.errors import CuzkError
from cuzk.events import Notice
from cuzk.units import format_size


def show_error(error: CuzkError) -> None:
    """What is wrong, where, and what to do next: on stderr, a line each."""
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(error.what, err=True)
    for label, text in (("where", error.where), ("next", error.next)):
        if text:
            click.secho(f"  {label + ':':6} ", dim=True, nl=False, err=True)
            click.echo(text, err=True)


def show_notice(notice: Notice) -> None:
    """A sentence on stderr; a warning stands out."""
    label, colour = label_of(notice)
    click.secho(f"{label}: ", fg=colour, bold=True, nl=False, err=True)
    click.echo(notice.text, err=True)


def label_of(notice: Notice) -> tuple[str, str]:
    """The word before a notice, and its colour."""
    return ("warning", "yellow") if notice.level == "warning" else ("note", "cyan")


def show_json(value: Any) -> None:
    """The one thing on stdout of a command that was asked for --json."""
    click.echo(json.dumps(value, indent=2))


def show_facts(title: str, facts: Mapping[str, object]) -> None:
    """A heading and aligned `name: value` lines, what ends in _bytes as people write sizes; of a list, each
    text has a line of its own."""
    click.secho(title.replace("_", " "), bold=True)
    facts = dict(readable(name, value) for name, value in facts.items())
    width = max((len(name) for name in facts), default=0) + 1
    for name, value in facts.items():
        first, *others = _lines(value)
        click.echo(f"  {name + ':':{width}} {first}")
        for line in others:
            click.echo(f"  {'':{width}} {line}")


def readable(name: str, value: object) -> tuple[str, object]:
    """A fact whose name ends in _bytes as people write sizes."""
    if not name.endswith("_bytes"):
        return name, value
    return name.removesuffix("_bytes"), format_size(value) if isinstance(value, int) else value


def _lines(value: object) -> list[str]:
    if value is None:
        return ["none"]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, list):
        texts = [str(entry) for entry in value]
        return texts if any(isinstance(entry, str) for entry in value) else [", ".join(texts)]
    return [str(value)]


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, left: Collection[str] | None = None
) -> None:
    """Columns padded to their widest entry. To the right go numbers, or all columns but those of `left`."""
    cells = [list(columns), *([str(entry) for entry in row] for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    right = [
        bool(rows) and all(isinstance(row[k], (int, float)) for row in rows)
        if left is None
        else column not in left
        for k, column in enumerate(columns)
    ]
    for number, line in enumerate(cells):
        padded = [f"{text:{'>' if right[k] else '<'}{widths[k]}}" for k, text in enumerate(line)]
        click.secho("  " + "  ".join(padded).rstrip(), bold=number == 0)


def show_paths(verb: str, paths: Sequence[Path], *, as_json: bool) -> None:
    """The files that a command dealt with."""
    if as_json:
        show_json({verb: [str(path) for path in paths]})
    else:
        for path in paths:
            click.echo(f"{verb}: {path}")


def show_sections(sections: Mapping[str, Mapping[str, object]], *, as_json: bool) -> None:
    """Facts under headings."""
    if as_json:
        show_json(sections)
        return
    for title, facts in sections.items():
        show_facts(title, facts)
