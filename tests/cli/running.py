"""`cuzk` with some arguments, in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from cuzk.cli import main


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
