"""What `cuzk config` shows: the file in TOML, so that it can be kept as one, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from cuzk import view
from cuzk.config.keys import KEYS
from cuzk.events import Notice

if TYPE_CHECKING:
    from cuzk.config import Reading

_NO_FILE = "there is no configuration file: all is default"


def _rows(reading: Reading, effective: bool) -> Iterator[tuple[str, Any, str]]:
    """table.key, value, place; of an alias of something that is out of date only what it leads to."""
    if effective:
        yield from reading.effective()
    else:
        yield from ((name, given.value, given.where) for name, given in reading.given.items())


def facts(reading: Reading, *, effective: bool) -> dict[str, Any]:
    """As JSON has it; a value is null where the program decides."""
    return {
        "file": None if reading.path is None else str(reading.path),
        "warnings": reading.warnings,
        "keys": {
            name: {"value": value, "where": where or "default"}
            for name, value, where in _rows(reading, effective)
        },
    }


def show(reading: Reading, *, effective: bool) -> None:
    """TOML on stdout, with the origin of each line; warnings on stderr."""
    for text in reading.warnings:
        view.show_notice(Notice(level="warning", text=text))
    click.echo(f"# {reading.path or _NO_FILE}")
    rows = [(name, _line(name, value), _origin(where)) for name, value, where in _rows(reading, effective)]
    width = max((len(line) for _, line, _ in rows), default=0)
    last = ""
    for name, line, origin in rows:
        table = name.partition(".")[0]
        if table != last:
            click.secho(f"\n[{table}]", bold=True)
            last = table
        click.echo(f"{line:{width}}  # {origin}")


def _line(name: str, value: Any) -> str:
    key = name.partition(".")[2]
    return f"# {key} unset: {KEYS[name].silent}" if value is None else f"{key} = {_toml(value)}"


def _origin(where: str) -> str:
    return f"line {where.rpartition(':')[2]}" if ":" in where else where or "default"


def _toml(value: Any) -> str:
    """A string, number, boolean or list: what JSON and TOML write in the same way."""
    return json.dumps(value, ensure_ascii=False)


def show_check(reading: Reading, *, as_json: bool) -> None:
    """Mistakes and warnings, or that there are none."""
    if as_json:
        problems = [{"what": one.what, "where": one.where, "next": one.next} for one in reading.problems]
        view.show_json({
            "file": None if reading.path is None else str(reading.path),
            "problems": problems,
            "warnings": reading.warnings,
        })  # fmt: skip
        return
    for problem in reading.problems:
        view.show_error(problem)
    for text in reading.warnings:
        view.show_notice(Notice(level="warning", text=text))
    if reading.path is None:
        click.echo(_NO_FILE)
    elif not reading.problems:
        click.echo(f"{reading.path}: {len(reading.given)} keys, no mistake")
