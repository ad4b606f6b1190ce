"""Values, options and checks that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cuzk.errors import ResourceError
from cuzk.units import parse_size

if TYPE_CHECKING:
    from cuzk.config import Config

F = TypeVar("F", bound=Callable[..., Any])
#: Keys of what an option tells the root group, in click's context.
DEBUG, JSON = "cuzk.debug", "cuzk.json"


class SizeType(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Integers(click.ParamType):  # type: ignore[type-arg]
    """Comma-separated non-negative integers, as many as `names`; decimal or 0x..."""

    def __init__(self, *names: str) -> None:
        self.name = ",".join(names)
        self._count = len(names)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        try:
            numbers = value if isinstance(value, tuple) else tuple(int(part, 0) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not {self.name}: write integers with commas between them", param, ctx)
        if len(numbers) != self._count or min(numbers) < 0:
            self.fail(f"{value!r} is not {self.name}: {self._count} integers, none negative", param, ctx)
        return numbers


def _load_config(ctx: click.Context, param: click.Parameter, path: Path | None) -> Config:
    from cuzk import config

    return config.load(path)


def _remember(key: str) -> Callable[[click.Context, click.Parameter, bool], bool]:
    def callback(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
        ctx.meta[key] = ctx.meta.get(key, False) or value
        return value

    return callback


PATH = click.Path(path_type=Path)
debug_option = click.option(
    "--debug", is_flag=True, is_eager=True, expose_value=False, callback=_remember(DEBUG),
    help="Show a traceback with an error.",
)  # fmt: skip
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    callback=_remember(JSON),
    help="Print JSON and nothing else.",
)
config_option = click.option(
    "--config",
    "settings",
    type=PATH,
    callback=_load_config,
    help="Configuration file instead of the user's own.",
)
params_option = click.option("--params", type=PATH, help="Folder of parameters, searched before all others.")
threads_option = click.option(
    "--threads", type=click.IntRange(min=1), help="Threads; without it: every core."
)
device_option = click.option(
    "--device", metavar="auto|cpu|cuda:N|UUID", help="Where to compute; auto is a GPU if there is one."
)
vram_option = click.option(
    "--vram-limit", type=SizeType(), metavar="SIZE", help="Of a GPU's memory take no more, for example 16GiB."
)
kind_option = click.option(
    "--kind", default="porep", show_default=True,
    help="Kind of proof: porep, snap, wpost or winning.",
)  # fmt: skip
size_option = click.option("--sector-size", type=SizeType(), required=True, help="For example 2KiB or 32GiB.")


def command(group: click.Group, name: str) -> Callable[[F], click.Command]:
    """A command of `group` with the options that every command has."""

    def wrap(function: F) -> click.Command:
        return group.command(name)(config_option(debug_option(function)))

    return wrap


def require_destination(out: Path) -> None:
    """Finds out before the work, not after it, that its result could not be written."""
    if out.is_dir() or not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise ResourceError(
            "the result could not be written there",
            where=str(out),
            next="name a file in a folder that you may write to",
        )
