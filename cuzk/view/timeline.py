"""What `timeline analyze` and `compare` show: tables, drawn with rich on a terminal, plain in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import click

from cuzk import view
from cuzk.events import Notice
from cuzk.timeline.analyze import Report, Run
from cuzk.timeline.compare import Figure
from cuzk.timeline.devices import Cause, percent_text
from cuzk.timeline.facts import CRITICAL, device_facts, job_facts, long_gaps
from cuzk.timeline.lanes import CAUSE_WORDS

#: Of more jobs than these only the longest are shown.
JOBS_SHOWN = 20
#: Characters: a narrower terminal breaks the lines, rather than that figures are cut.
NARROWEST = 92
#: Columns of words; all others are figures and go to the right.
_WORDS = {"job", "state", "what was happening", "figure", "verdict"}

Row = Sequence[object]


def show_report(report: Report, gap_ms: int) -> None:
    """Figures of GPUs, gaps and jobs on stdout; what they rest on as notes on stderr."""
    for text in report.notices:
        view.show_notice(Notice(level="info", text=text))
    click.echo(f"{report.name}: {report.counts.timeline} TIMELINE lines, {report.counts.other} others")
    several = len(report.runs) > 1
    _show(
        "GPUs, in seconds",
        (
            "GPU",
            "calls",
            "busy",
            "idle",
            "efficiency",
            "gaps",
            "< 50 ms",
            "50-500 ms",
            "> 500 ms",
            "average gap",
        ),
        _of_runs(report, _gpu_rows),
        several,
    )
    _show(
        "within calls, in seconds",
        ("GPU", "kernels", "efficiency by kernels", "lock held", "waited for the lock"),
        _of_runs(report, _kernel_rows),
        several,
    )
    _show(
        "idle time went to, in seconds",
        ("GPU", *(CAUSE_WORDS[cause] for cause in Cause)),
        _of_runs(report, _cause_rows),
        several,
    )
    _show(
        f"gaps of at least {gap_ms} ms",
        ("GPU", "GPU_END ms", "GPU_START ms", "gap ms", "what was happening"),
        _of_runs(report, lambda run: _gap_rows(run, gap_ms)),
        several,
    )
    _show_jobs(report, several)
    if report.advice:
        click.secho("what would help", bold=True)
        for text in report.advice:
            click.echo(f"  {text}")


def show_comparison(before: Report, after: Report, figures: Sequence[Figure]) -> None:
    """Both logs' figures with their differences; what changed for better and worse in a sentence each."""
    for report in (before, after):
        for text in report.notices:
            view.show_notice(Notice(level="info", text=f"{report.name}: {text}"))
    click.echo(f"before: {before.name}\nafter:  {after.name}")
    rows = [
        (
            f"{one.name}{one.unit and f', {one.unit}'}",
            _number(one.before, one),
            _number(one.after, one),
            "-" if one.difference is None else _number(one.difference, one, sign="+"),
            "-" if one.share is None else f"{100 * one.share:+.1f} %",
            one.verdict,
        )
        for one in figures
    ]
    _show_table("", ("figure", "before", "after", "difference", "of before", "verdict"), rows)
    for verdict in ("better", "worse"):
        names = [one.name for one in figures if one.verdict == verdict]
        click.echo(f"{verdict}: {', '.join(names) or 'nothing'}")


def comparison_facts(before: Report, after: Report, figures: Sequence[Figure]) -> dict[str, Any]:
    """The same as JSON has it."""
    names = ("name", "unit", "wish", "before", "after", "difference", "share", "verdict")
    return {
        "before": before.name,
        "after": after.name,
        "figures": [{name: getattr(one, name) for name in names} for one in figures],
    }


def _number(value: float | None, figure: Figure, sign: str = "") -> str:
    if value is None:
        return "-"
    digits = {"": 0, "ms": 0, "%": 1, "s": 3}[figure.unit]
    return f"{value:{sign}.{digits}f}"


def _of_runs(report: Report, rows: Callable[[Run], Iterator[Row]]) -> list[Row]:
    """Rows of all runs, the run's number in front."""
    return [(number, *row) for number, run in enumerate(report.runs, 1) for row in rows(run)]


def _gpu_rows(run: Run) -> Iterator[Row]:
    for device in run.devices:
        facts = device_facts([device])
        counts = [facts[name] for name in facts if name.startswith("gaps")]
        times = [_seconds(facts[name]) for name in ("gpu_busy_ms", "gap_total_ms")]
        share = percent_text(facts["efficiency_percent"])
        yield device.device, device.calls, *times, share, *counts, _seconds(facts["gap_average_ms"])


def _kernel_rows(run: Run) -> Iterator[Row]:
    for device in run.devices:
        if device.kernels is not None or device.wait_ms is not None:
            facts = device_facts([device])
            share = percent_text(facts["kernel_efficiency_percent"])
            held, waited = _seconds(facts["lock_held_ms"]), _seconds(facts["lock_wait_ms"])
            yield device.device, _seconds(facts["kernel_ms"]), share, held, waited


def _cause_rows(run: Run) -> Iterator[Row]:
    for device in run.devices:
        if device.gaps:
            idle = device_facts([device])["idle_by_cause_ms"]
            yield device.device, *(_seconds(idle[cause.value]) for cause in Cause)


def _gap_rows(run: Run, gap_ms: int) -> Iterator[Row]:
    for gap in long_gaps(run, gap_ms):
        yield gap.device, gap.end_ms, gap.start_ms, gap.gap_ms, CAUSE_WORDS[gap.cause]


def _job_rows(run: Run) -> Iterator[Row]:
    for job in run.jobs:
        facts = job_facts(job)
        proven = f"{facts['proven_partitions']}/{len(job.partitions)}"
        sums = (facts[f"{name}_ms"] for name in ("wall", "synthesis_sum", "gpu_sum"))
        critical: dict[str, int] = facts["critical_path_ms"] or {}
        way = (critical.get(name) for name in CRITICAL)
        yield job.job, job.state, proven, *map(_seconds, (*sums, *way))


def _show_jobs(report: Report, several: bool) -> None:
    rows = _of_runs(report, _job_rows)
    title = "jobs, in seconds: sums over partitions, then the way of the partition that ended last"
    if len(rows) > JOBS_SHOWN:
        title = f"the {JOBS_SHOWN} longest of {len(rows)} " + title
        rows = sorted(rows, key=lambda row: -float(str(row[4])))[:JOBS_SHOWN]
    sums, way = ("wall", "syntheses", "calls"), ("before", "synthesis", "queue", "call")
    _show(title, ("job", "state", "proven", *sums, *way), rows, several)


def _show(title: str, columns: Sequence[str], rows: Sequence[Row], several: bool) -> None:
    """A table, if it has rows; the number of the run only where there are several."""
    if not rows:
        return
    if several:
        columns = ("run", *columns)
    else:
        rows = [row[1:] for row in rows]
    _show_table(title, columns, rows)


def _show_table(title: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    if title:
        click.secho(title, bold=True)
    if sys.stdout.isatty():
        _draw(columns, rows)
    else:
        view.show_table(columns, rows, left=_WORDS)


def _draw(columns: Sequence[str], rows: Sequence[Row]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[str(cell) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for k, column in enumerate(columns):  # a figure is never cut: ids and headings give way
        widest = max(len(row[k]) for row in cells)
        justify: Literal["left", "right"] = "left" if column in _WORDS else "right"
        table.add_column(column, justify=justify, min_width=None if column == "job" else widest)
    for row in cells:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    console = Console(width=max(Console().width, NARROWEST))
    console.print(table)
    console.print()


def _seconds(milliseconds: Any) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.3f}"
