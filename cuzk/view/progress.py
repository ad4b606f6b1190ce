"""Events of work under way, on stderr: drawn with rich on a terminal, else as plain lines.

The drawing has stage, bar, rate and ETA. In a pipe or beside --json there is one line when a stage ends, and
one every ten seconds of a long one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import click

from cuzk.events import Event, Notice, OnEvent, StageAdvanced, StageDone, StageStarted
from cuzk.units import format_count, format_duration
from cuzk.view.text import label_of, show_notice

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

#: Seconds between two plain lines about the same stage.
PLAIN_INTERVAL_S = 10.0


@contextmanager
def live(*, as_json: bool = False) -> Iterator[OnEvent]:
    """Shows the events of the work inside `with`, as a drawing where stderr is a terminal, else as lines."""
    if as_json or not sys.stderr.isatty():
        yield _PlainProgress()
        return
    from rich.console import Console

    with drawing(Console(stderr=True)) as on_event:
        yield on_event


class _Stage:
    """What is known of a running stage, and how to say it."""

    def __init__(self, started: StageStarted) -> None:
        self.name = started.name
        self.total = started.total
        self.unit = started.unit
        self.done = 0
        self.begin = self.said = monotonic()

    def advance(self, event: StageAdvanced) -> None:
        self.done = event.done
        self.total = event.total if event.total is not None else self.total

    def amount(self) -> str:
        """ "1.2 M / 10.2 M points", or nothing while nothing can be said."""
        if self.total is None:
            return format_count(self.done, self.unit) if self.done else ""
        if self.unit == "bytes":
            return f"{format_count(self.done, 'bytes')} / {format_count(self.total, 'bytes')}"
        return f"{format_count(self.done)} / {format_count(self.total, self.unit)}"

    def pace(self) -> str:
        """ "1.3 M/s, ETA 7.1 s"; no rate below one a second."""
        elapsed = monotonic() - self.begin
        if not self.done or elapsed <= 0:
            return ""
        rate = self.done / elapsed
        parts = [f"{format_count(rate, 'bytes' if self.unit == 'bytes' else '')}/s"] if rate >= 1 else []
        if self.total is not None and self.done < self.total:
            parts.append(f"ETA {format_duration((self.total - self.done) / rate)}")
        return ", ".join(parts)


class _PlainProgress:
    """Events as lines on stderr. Called by one thread at a time."""

    def __init__(self) -> None:
        self._stages: dict[str, _Stage] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            show_notice(event)
        elif isinstance(event, StageStarted):
            self._stages[event.name] = _Stage(event)
        elif isinstance(event, StageAdvanced):
            stage = self._stages[event.name]
            stage.advance(event)
            if monotonic() - stage.said >= PLAIN_INTERVAL_S:
                stage.said = monotonic()
                click.echo(
                    f"{stage.name}: {', '.join(filter(None, (stage.amount(), stage.pace())))}", err=True
                )
        else:
            stage = self._stages.pop(event.name)
            click.echo(f"{stage.name}: {format_duration(event.seconds)}", err=True)


@contextmanager
def drawing(console: Console) -> Iterator[OnEvent]:
    """Events as a rich drawing on `console`: a line a stage, the running one with bar, rate and ETA."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    with Progress(
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[amount]}", markup=False),
        TextColumn("{task.fields[pace]}", style="cyan", markup=False),
        console=console,
    ) as progress:
        yield _draw_on(progress)


def _draw_on(progress: Progress) -> OnEvent:
    from rich.text import Text

    stages: dict[str, tuple[_Stage, TaskID]] = {}

    def on_event(event: Event) -> None:
        if isinstance(event, Notice):
            label, colour = label_of(event)
            line = Text.assemble((f"{label}: ", f"bold {colour}"), event.text)
            progress.console.print(line, soft_wrap=True)
        elif isinstance(event, StageStarted):
            task = progress.add_task(event.name, total=event.total, amount="", pace="")
            stages[event.name] = (_Stage(event), task)
        elif isinstance(event, StageAdvanced):
            stage, task = stages[event.name]
            stage.advance(event)
            progress.update(
                task, total=stage.total, completed=stage.done, amount=stage.amount(), pace=stage.pace()
            )
        else:
            stage, task = stages.pop(event.name)
            stage.done = stage.total = stage.total or stage.done or 1
            _finish(progress, task, stage, event)

    return on_event


def _finish(progress: Progress, task: TaskID, stage: _Stage, event: StageDone) -> None:
    """The line of a stage that is over: full bar, how much, how long."""
    amount = format_count(stage.done, stage.unit) if stage.unit and stage.done > 1 else ""
    progress.update(
        task, total=stage.total, completed=stage.total, amount=amount, pace=format_duration(event.seconds)
    )
