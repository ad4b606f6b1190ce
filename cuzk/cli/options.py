"""Values, options and checks that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from cuzk.errors import InputError, ResourceError, UsageError
from cuzk.units import parse_size

if TYPE_CHECKING:
    from cuzk.config import Config

F = TypeVar("F", bound=Callable[..., Any])
HASH_BYTES = 32
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


class HashType(click.ParamType):  # type: ignore[type-arg]
    """32 bytes, as hexadecimal digits."""

    name = "hex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        try:
            decoded = value if isinstance(value, bytes) else bytes.fromhex(value)
        except ValueError:
            self.fail(f"{value!r} is not hexadecimal", param, ctx)
        if len(decoded) != HASH_BYTES:
            self.fail(f"{len(decoded)} bytes where {HASH_BYTES} are expected", param, ctx)
        return decoded


class CommitmentType(click.ParamType):  # type: ignore[type-arg]
    """A commitment of 32 bytes: hexadecimal digits, or its CID."""

    name = "hex|cid"

    def __init__(self, to: Literal["REPLICA", "DATA"]) -> None:
        self._to = to

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        from cuzk.sector.commitments import Committed, parse_commitment

        try:
            return (
                value if isinstance(value, bytes) else parse_commitment(value, Committed[self._to], where="")
            )
        except InputError as error:
            self.fail(error.what, param, ctx)


def load_config(ctx: click.Context, param: click.Parameter, path: Path | None) -> Config:
    """Of options that name a configuration file."""
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
    callback=load_config,
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
#: How commands are told a kind of proof: by our word, or by Curio's.
KIND = ("-t", "--kind", "--type", "kind")
kind_option = click.option(
    *KIND, default="porep", show_default=True,
    help="Kind of proof: porep, snap, wpost or winning.",
)  # fmt: skip
size_option = click.option("--sector-size", type=SizeType(), required=True, help="For example 2KiB or 32GiB.")


def with_options(function: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """The command with options that its help shows in this order."""
    for option in reversed(options):
        function = option(function)
    return function


#: Of a bare list of vanilla proofs, which says nothing else.
_BESIDE: tuple[Callable[[F], F], ...] = (
    click.option("--registered-proof", type=click.IntRange(min=0), metavar="N",
                 help="Of a bare list: its number, which says size and API version."),
    click.option("--sector-size", type=SizeType(), default=0, help="Of a bare list without a number."),
    click.option("--randomness", type=HashType(), help="Of a bare list, for wpost and winning."),
    click.option("--partition-index", type=click.IntRange(min=0), default=0,
                 help="Of a bare list, for wpost of API version 1.0.0; 0 without it."),
    click.option("--comm-r-old", type=CommitmentType("REPLICA"), help="Of a bare list, for snap."),
    click.option("--comm-r-new", type=CommitmentType("REPLICA"), help="Of a bare list, for snap."),
    click.option("--comm-d-new", type=CommitmentType("DATA"), help="Of a bare list, for snap."),
)  # fmt: skip


def beside_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All of them; the command, which has an option for the kind, gets them as `beside`."""

    @wraps(function)
    def call(*, kind: str | None, **given: Any) -> Any:
        from cuzk.sector.pieces import SideInputs

        said = {name: given.pop(name) for name in SideInputs.__dataclass_fields__ if name in given}
        said = {name: value for name, value in said.items() if value is not None}
        return function(beside=SideInputs(kind=kind or "", **said), **given)

    return with_options(call, _BESIDE)


def file_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """FILE, what is to be proven; of a bare list its kind and what belongs to it, as `beside`."""
    kind = click.option(
        *KIND, help="Of a bare list of vanilla proofs: snap, wpost or winning. All else says it itself."
    )
    return click.argument("file", type=PATH)(kind(beside_options(function)))


def command(group: click.Group, name: str) -> Callable[[F], click.Command]:
    """A command of `group` with the options that every command has."""
    return lambda function: group.command(name)(config_option(debug_option(function)))


def top_command(name: str) -> Callable[[F], click.Command]:
    """The same, of the root group, which adds it itself."""
    return lambda function: click.command(name)(config_option(debug_option(function)))


def require_destination(out: Path, *made_from: Path) -> None:
    """Finds out before the work, not after it, that its result could not be written, or would replace what it
    is made from."""
    if out.exists() and any(source.exists() and out.samefile(source) for source in made_from):
        raise UsageError(
            "the result would overwrite what it is made from", where=str(out), next="name another file"
        )
    if out.is_dir() or not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise ResourceError(
            "the result could not be written there",
            where=str(out),
            next="name a file in a folder that you may write to",
        )
