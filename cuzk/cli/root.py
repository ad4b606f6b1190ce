"""The group of all commands: whatever goes wrong in one becomes what, where, next, and an exit code."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
import traceback
import warnings
from typing import Any, NoReturn

import click

from cuzk import view
from cuzk.cli import signals
from cuzk.cli.options import DEBUG, JSON
from cuzk.errors import CuzkError, ResourceError
from cuzk.events import Notice

_ENDED_BY_SIGNAL = 128  # plus the signal's number: what a shell reports for it


class Cli(click.Group):
    """Turns what goes wrong into what, where and what to do next, and into the exit code of its class."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        atexit.register(gc.freeze)  # the interpreter's end looks for no garbage in what is left: 0.1 s
        try:
            return super().main(*args, **kwargs)
        except OSError as error:  # of what click itself prints, as help is
            failure = explain(error)
            _show_failure(failure, as_json=False)
            sys.exit(failure.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings(), signals.as_exceptions():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise
            except KeyboardInterrupt as interrupt:
                click.echo("\ninterrupted", err=True)
                ctx.exit(_ENDED_BY_SIGNAL + next(iter(interrupt.args), signal.SIGINT))
            except BrokenPipeError:  # click ends quietly when nobody reads on
                raise
            except Exception as error:
                _fail(ctx, explain(error))


def explain(error: Exception) -> CuzkError:
    """The error that users see for any exception; one that is none of theirs is owned up to."""
    if isinstance(error, CuzkError):
        return error
    if isinstance(error, MemoryError):
        return ResourceError(
            f"the memory does not suffice{f': {error}' if str(error) else ''}",
            next="close other programs, or use a machine with more; `cuzk doctor` shows what there is",
        )
    if isinstance(error, OSError) and error.errno is not None:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return ResourceError(
            "the disk is full" if full else (error.strerror or str(error)),
            where=str(error.filename) if error.filename else None,
            next="free some space or choose another folder" if full else "check the path and its permissions",
        )
    return CuzkError(
        f"this is a mistake in cuzk: {type(error).__name__}: {error}",
        next="run the command again with --debug and report what it prints",
    )


def _fail(ctx: click.Context, error: CuzkError) -> NoReturn:
    if ctx.meta.get(DEBUG):
        traceback.print_exc()
    _show_failure(error, as_json=bool(ctx.meta.get(JSON)))
    ctx.exit(error.exit_code)


def _show_failure(error: CuzkError, *, as_json: bool) -> None:
    """Where stdout takes nothing, on stderr alone."""
    try:
        if as_json:
            view.show_json({"error": {"what": error.what, "where": error.where, "next": error.next}})
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)  # or Python tries again at its end, and complains
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    view.show_error(error)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    view.show_notice(Notice(level="warning", text=str(message)))
