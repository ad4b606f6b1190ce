"""`cuzk config`: what the configuration file says, and whether it is right."""

from __future__ import annotations

from pathlib import Path

import click

from cuzk import view
from cuzk.cli.options import PATH, debug_option, json_option


@click.group("config")
def config_group() -> None:
    """The configuration file: show it, check it."""


@config_group.command("show")
@click.option("--config", "path", type=PATH, help="Configuration file instead of the user's own.")
@click.option("--effective", is_flag=True, help="Every key, with what holds and where it was said.")
@json_option
@debug_option
def show(path: Path | None, effective: bool, as_json: bool) -> None:
    """Show the keys that the file has, as a file of the same meaning."""
    from cuzk import config
    from cuzk.view import config as view_config

    reading = config.read(path)
    reading.require_right()
    if as_json:
        view.show_json(view_config.facts(reading, effective=effective))
    else:
        view_config.show(reading, effective=effective)


@config_group.command("check")
@click.argument("file", type=PATH, required=False)
@json_option
@debug_option
@click.pass_context
def check(ctx: click.Context, file: Path | None, as_json: bool) -> None:
    """Name every mistake in FILE, or in the file that other commands would read. 1 if there is one."""
    from cuzk import config
    from cuzk.config.machine import missing
    from cuzk.view import config as view_config

    reading = config.read(file)
    reading.warnings.extend(missing(reading))
    view_config.show_check(reading, as_json=as_json)
    if reading.problems:
        ctx.exit(1)
