"""All that a user sees: progress on stderr, results on stdout, JSON instead of both where it was asked for.

On a terminal, progress is drawn with rich: stage, bar, rate and ETA. In a pipe or beside --json it is plain
lines, one when a stage ends and one every ten seconds of a long one. Rich is imported only to draw with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from cuzk.errors import CuzkError
from cuzk.events import Event, Notice, OnEvent, StageAdvanced, StageDone, StageStarted
from cuzk.units import format_count, format_duration, format_size

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from cuzk.api import ProveResult, VerifyResult
    from cuzk.doctor import ParameterFacts
    from cuzk.explain import Explanation
    from cuzk.parameters import TriedParameters

#: Seconds between two plain lines about the same stage.
PLAIN_INTERVAL_S = 10.0
#: The result block shows a proof in full up to this many bytes, else the first half of them.
BLOCK_PROOF_BYTES = 256


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
    label, colour = _label(notice)
    click.secho(f"{label}: ", fg=colour, bold=True, nl=False, err=True)
    click.echo(notice.text, err=True)


def _label(notice: Notice) -> tuple[str, str]:
    """The word before a notice, and its colour."""
    return ("warning", "yellow") if notice.level == "warning" else ("note", "cyan")


def show_json(value: Any) -> None:
    """The one thing on stdout of a command that was asked for --json."""
    click.echo(json.dumps(value, indent=2))


def show_facts(title: str, facts: Mapping[str, object]) -> None:
    """A heading and aligned `name: value` lines; of a list, each text has a line of its own."""
    click.secho(title, bold=True)
    width = max((len(name) for name in facts), default=0) + 1
    for name, value in facts.items():
        first, *others = _lines(value)
        click.echo(f"  {name + ':':{width}} {first}")
        for line in others:
            click.echo(f"  {'':{width}} {line}")


def _lines(value: object) -> list[str]:
    if value is None:
        return ["none"]
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


def show_proof(result: ProveResult, *, out: Path | None, as_json: bool) -> None:
    """What `prove` made: the result block, or the same facts and the whole proof as JSON."""
    facts = {
        "status": result.status,
        "job_id": result.job_id,
        "timings_ms": asdict(result.timings),
        "wall_ms": result.wall_ms,
        "partitions": list(result.partitions),
        "proof": result.proof.hex(),
        "out": str(out) if out else None,
    }
    if as_json:
        show_json(facts)
        return
    click.echo(proof_block(result))
    if out is not None:
        click.echo(f"written:   {out}")
    elif len(result.proof) > BLOCK_PROOF_BYTES:
        show_notice(
            Notice(level="info", text="the proof is shown in part; --out FILE or --json gives all of it")
        )


def show_verdict(result: VerifyResult, *, as_json: bool) -> None:
    """What `verify` found, when it found the proof good; a bad one is a ProofError."""
    if as_json:
        show_json({"verified": True, "partitions": result.partitions, "wall_ms": result.wall_ms})
    else:
        click.echo(f"verified:  {result.partitions} partition(s) in {result.wall_ms} ms")


def show_parameters(files: Sequence[ParameterFacts], *, as_json: bool) -> None:
    """A table of parameter files, or where one could come from."""
    if as_json:
        show_json([asdict(facts) for facts in files])
    elif files:
        rows = [(f.kind, f.sector_size, f.origin, format_size(f.size_bytes), f.path) for f in files]
        show_table(("proof", "sector", "origin", "size", "file"), rows)
    else:
        click.echo("no parameters found; `cuzk params fetch` downloads, `cuzk params generate` makes them")


def show_paths(verb: str, paths: Sequence[Path], *, as_json: bool) -> None:
    """The files that a command dealt with."""
    if as_json:
        show_json({verb: [str(path) for path in paths]})
    else:
        for path in paths:
            click.echo(f"{verb}: {path}")


def show_tried(tried: TriedParameters, *, as_json: bool) -> None:
    """Parameters that were made in a GPU's memory, found good and given up."""
    if as_json:
        show_json({**asdict(tried), "written": [str(path) for path in tried.written]})
        return
    seconds = {name: format_duration(s) for name, s in tried.seconds.items()}
    title = f"good, on {tried.device}: every point is of order r, a proof was made and verified"
    show_facts(title, {**seconds, "all of it": format_duration(tried.total_s)})
    for path in tried.written:
        click.echo(f"written: {path}")


def show_sections(sections: Mapping[str, Mapping[str, object]], *, as_json: bool) -> None:
    """Facts under headings."""
    if as_json:
        show_json(sections)
        return
    for title, facts in sections.items():
        show_facts(title, facts)


def show_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """The plan of a proof: facts, then tables of the GPU's memory and of the sums."""
    facts, tables = explanation.facts(), [explanation.memory_rows(), explanation.sum_rows()]
    if as_json:
        show_json({**facts, "parts": tables[0], "sums": tables[1]})
        return
    for title, section in facts.items():
        show_facts(title, dict(_readable(name, value) for name, value in section.items()))
    for rows in filter(None, tables):
        _show_rows(rows)


def show_plans(explanations: Sequence[Explanation], *, as_json: bool) -> None:
    """A line for each sector size."""
    rows = [explanation.summary() for explanation in explanations]
    if as_json:
        show_json(rows)
    else:
        _show_rows(rows)


def _show_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """A table of rows with the same names."""
    columns = [_readable(name, "")[0] for name in rows[0]]
    show_table(columns, [[_readable(name, value)[1] for name, value in row.items()] for row in rows])


def _readable(name: str, value: object) -> tuple[str, object]:
    """A fact whose name ends in _bytes as people write sizes."""
    if not name.endswith("_bytes"):
        return name, value
    return name.removesuffix("_bytes"), format_size(value) if isinstance(value, int) else value


def show_circuit(
    sections: Mapping[str, Mapping[str, object]], templates: Sequence[Mapping[str, object]], *, as_json: bool
) -> None:
    """Facts about a circuit, then the templates that it is made of."""
    if as_json:
        show_json({**sections, "templates": templates})
        return
    show_sections(sections, as_json=False)
    click.secho("templates", bold=True)
    show_table(list(templates[0]), [list(template.values()) for template in templates])


def proof_block(result: ProveResult) -> str:
    """The result block, to the letter as storage providers' scripts know it."""
    proof, took = result.proof, result.timings
    shown = proof.hex() if len(proof) <= BLOCK_PROOF_BYTES else proof[: BLOCK_PROOF_BYTES // 2].hex() + "..."
    parts = f"queue={took.queue_ms} ms, srs={took.srs_ms} ms, synth={took.synth_ms} ms, gpu={took.gpu_ms} ms"
    return (
        "\n=== Proof Result ===\n"
        f"status:    {result.status}\n"
        f"job_id:    {result.job_id}\n"
        f"timings:   total={took.total_ms} ms ({parts})\n"
        f"wall time: {result.wall_ms} ms\n"
        f"proof:     {len(proof)} bytes (hex: {shown})"
    )


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
            label, colour = _label(event)
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
