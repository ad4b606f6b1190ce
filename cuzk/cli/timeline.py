"""`cuzk timeline`: the commands that read the TIMELINE lines of a log."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuzk import view
from cuzk.cli.options import PATH, F, command, json_option, require_destination
from cuzk.errors import UsageError
from cuzk.events import Notice

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.timeline.analyze import Report

workers_option = click.option(
    "--workers-per-gpu", type=click.IntRange(min=1),
    help="GPU workers of each device, where the log does not say it; without it: 2.",
)  # fmt: skip
gap_option = click.option(
    "--gap-ms", type=click.IntRange(min=0), default=200, show_default=True, help="List gaps of at least this."
)


@click.group()
def timeline() -> None:
    """What GPUs did and when: the TIMELINE lines of an engine's log, counted and drawn."""


def log_command(name: str) -> Callable[[F], click.Command]:
    """A command of this group on a log, `-` for standard input."""

    def wrap(function: F) -> click.Command:
        return command(timeline, name)(click.argument("log", type=PATH)(workers_option(function)))

    return wrap


def _report(log: Path, workers_per_gpu: int | None) -> Report:
    from cuzk.timeline.analyze import analyze
    from cuzk.timeline.read import read_log

    return analyze(read_log(log), workers_per_gpu=workers_per_gpu)


@log_command("analyze")
@gap_option
@json_option
def analyze_(log: Path, workers_per_gpu: int | None, settings: Config, gap_ms: int, as_json: bool) -> None:
    """Show how busy each GPU was, its gaps and what they waited for, and every job, from LOG."""
    from cuzk.timeline.facts import report_facts
    from cuzk.view.timeline import show_report

    report = _report(log, workers_per_gpu)
    if as_json:
        view.show_json(report_facts(report, gap_ms))
    else:
        show_report(report, gap_ms)


@log_command("plot")
@click.option("--out", type=PATH, required=True, help="File to write: .svg, .png, or .html for a page.")
@gap_option
@json_option
def plot(
    log: Path, workers_per_gpu: int | None, settings: Config, out: Path, gap_ms: int, as_json: bool
) -> None:
    """Draw LOG: what GPUs, their workers, the queue and the syntheses did, over seconds."""
    from cuzk.whole_files import replace_whole

    if out.suffix not in _PICTURES:
        known = ", ".join(_PICTURES)
        raise UsageError(f"no picture is written as {out.name!r}", next=f"end the name in one of {known}")
    require_destination(out, log)
    replace_whole(out, [_PICTURES[out.suffix](_report(log, workers_per_gpu), gap_ms)])
    view.show_paths("written", [out], as_json=as_json)


def _svg(report: Report, gap_ms: int) -> bytes:
    from cuzk.timeline.svg import svg

    return svg(report).encode()


def _html(report: Report, gap_ms: int) -> bytes:
    from cuzk.timeline.page import page

    return page(report, gap_ms).encode()


def _png(report: Report, gap_ms: int) -> bytes:
    from cuzk.timeline.png import has_fonts, png
    from cuzk.timeline.svg import svg

    pixels = png(svg(report))
    if not has_fonts():
        text = (
            "this machine has no fonts, so the picture has no words; install some, for example fonts-dejavu"
        )
        view.show_notice(Notice(level="warning", text=text))
    return pixels


_PICTURES = {".svg": _svg, ".png": _png, ".html": _html}


@command(timeline, "compare")
@click.argument("before", type=PATH)
@click.argument("after", type=PATH)
@workers_option
@json_option
def compare_(before: Path, after: Path, workers_per_gpu: int | None, settings: Config, as_json: bool) -> None:
    """Show the figures of two logs side by side, and what got better from BEFORE to AFTER."""
    from cuzk.timeline.compare import compare
    from cuzk.view.timeline import comparison_facts, show_comparison

    old, new = _report(before, workers_per_gpu), _report(after, workers_per_gpu)
    figures = compare(old, new)
    if as_json:
        view.show_json(comparison_facts(old, new, figures))
    else:
        show_comparison(old, new, figures)


@log_command("follow")
def follow(log: Path, workers_per_gpu: int | None, settings: Config) -> None:
    """Show what an engine does while it writes LOG, until Ctrl-C: GPUs, workers, queue, jobs."""
    from cuzk.timeline.live import Live
    from cuzk.timeline.tail import lines_as_they_come
    from cuzk.view import follow as drawing

    live = Live(workers_per_gpu)
    try:
        if sys.stdout.isatty():
            from rich.console import Console

            with drawing.drawn(live, str(log), Console()) as show:
                for lines in lines_as_they_come(log):
                    show(live.hear(lines))
        else:
            show_plain = drawing.plain(live)
            for lines in lines_as_they_come(log):
                show_plain(live.hear(lines))
    except KeyboardInterrupt as interrupt:
        if interrupt.args:  # another signal than that of Ctrl-C, which is how one leaves
            raise
    if not sys.stdout.isatty() and live.has_heard:
        click.echo(drawing.status_line(live.moment()))


@log_command("export")
@click.option(
    "--format", "form", type=click.Choice(["chrome"]), required=True,
    help="chrome: trace events, for Perfetto and chrome://tracing.",
)  # fmt: skip
@click.option("--out", type=PATH, help="File to write; without it: stdout.")
def export(log: Path, workers_per_gpu: int | None, settings: Config, form: str, out: Path | None) -> None:
    """Write LOG in a form that other programs open."""
    from cuzk.timeline.chrome import chrome
    from cuzk.whole_files import replace_whole

    if out is not None:
        require_destination(out, log)
    document = json.dumps(chrome(_report(log, workers_per_gpu)))
    if out is None:
        click.echo(document)
    else:
        replace_whole(out, [document.encode()])
        view.show_paths("written", [out], as_json=False)
