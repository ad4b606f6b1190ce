"""What `timeline follow` shows: a drawing that moves on a terminal, a line now and then in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import click

from cuzk.timeline.devices import percent_text
from cuzk.timeline.live import Live, LiveDevice, LiveJob, Moment
from cuzk.timeline.spans import Kind, Span

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

#: Seconds between two lines in a pipe, and between two drawings.
PLAIN_INTERVAL_S, DRAWN_INTERVAL_S = 10.0, 0.25
JOBS_SHOWN = 12
#: Cells of a worker's lane: kernels or the lock, the rest of a call, nothing.
_COMPUTES, _CALL, _IDLE = "█", "░", "·"
_COLOURS = ("blue", "dark_orange", "green", "magenta", "cyan", "yellow", "red", "bright_black")
#: What of a line is not the lane: its label and the figures behind it.
_BESIDE_A_LANE = 46


def plain(live: Live) -> Callable[[list[LiveJob]], None]:
    """Called after each look at the log: says which jobs ended, and how things stand."""
    said_s = monotonic()

    def show(over: list[LiveJob]) -> None:
        nonlocal said_s
        for job in over:
            took = (job.last_ms - job.first_ms) / 1000
            click.echo(f"{job.last_ms / 1000:.1f} s: {job.job} {job.state}, after {took:.1f} s")
        if monotonic() - said_s >= PLAIN_INTERVAL_S:
            said_s = monotonic()
            click.echo(status_line(live.moment()))

    return show


def status_line(now: Moment) -> str:
    """ "12.3 s: GPU 0 93.1 % busy, 88.0 % by kernels; 3 jobs, 2 partitions queued, 4 being synthesised"."""
    gpus = [f"GPU {one.device} {_shares(one)}" for one in now.devices]
    counts = (
        f"{len(now.jobs)} jobs, {now.queued} partitions queued, {now.synthesising} being synthesised,"
        f" {now.counts['proven']} jobs proven"
    )
    return f"{now.now_ms / 1000:.1f} s: " + "; ".join([*gpus, counts])


@contextmanager
def drawn(live: Live, name: str, console: Console) -> Iterator[Callable[[list[LiveJob]], None]]:
    """The same as a drawing on a terminal, which stays when it ends."""
    from rich.live import Live as Drawing

    with Drawing(console=console, auto_refresh=False, vertical_overflow="crop") as drawing:
        drawn_s = 0.0

        def show(over: list[LiveJob], *, last: bool = False) -> None:
            nonlocal drawn_s
            if last or monotonic() - drawn_s >= DRAWN_INTERVAL_S:
                drawn_s = monotonic()
                drawing.update(picture(live.moment(), name, console.width), refresh=True)

        try:
            yield show
        finally:
            show([], last=True)


def picture(now: Moment, name: str, width: int) -> RenderableType:
    """Lanes of the last minute, and the jobs."""
    from rich.console import Group
    from rich.text import Text

    ended = ", ".join(f"{count} {state}" for state, count in now.counts.items())
    head = (
        f"{now.now_ms / 1000:.1f} s; jobs: {len(now.jobs)} under way, {ended};"
        f" partitions: {now.queued} queued, {now.synthesising} being synthesised"
    )
    lines = [Text(name, style="bold"), Text(head)]
    lines += _lanes(now, max(10, width - _BESIDE_A_LANE))
    if not now.devices:
        lines.append(Text("no GPU call in the last minute", style="dim"))
    lines += [Text(), *_jobs(now)]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)


def _lanes(now: Moment, cells: int) -> Iterator[Text]:
    from rich.text import Text

    for device in now.devices:
        yield Text()
        yield Text.assemble((f"GPU {device.device}", "bold"), f"  {_shares(device)}")
        for number, spans in device.workers.items():
            lane = Text(f"  worker {'' if number is None else number}".ljust(14))
            for character, job in lane_of(spans, now, cells):
                lane.append(character, style=_colour(now.numbers.get(job, 0)) if job else "dim")
            at = next((span for span in reversed(spans) if span.end_ms == now.now_ms), None)
            lane.append(f"  {_at_words(at)}" if at else "  idle", style="" if at else "dim")
            yield lane


def lane_of(spans: Sequence[Span], now: Moment, cells: int) -> list[tuple[str, str]]:
    """A cell for each part of the window: its character, and the job. What computes covers what does not."""
    found = [(_IDLE, "")] * cells
    scale = cells / max(1, now.now_ms - now.begin_ms)
    locks = any(span.kind is Kind.LOCK for span in spans)
    for kind in (Kind.CALL, Kind.LOCK) if locks else (Kind.CALL,):
        character = _COMPUTES if kind is Kind.LOCK or not locks else _CALL
        for span in spans:
            if span.kind is kind and span.end_ms is not None and span.end_ms > now.begin_ms:
                first = max(0, int((span.start_ms - now.begin_ms) * scale))
                last = min(cells - 1, max(first, round((span.end_ms - now.begin_ms) * scale) - 1))
                found[first : last + 1] = [(character, span.job)] * (last + 1 - first)
    return found


def _jobs(now: Moment) -> Iterator[Text]:
    from rich.text import Text

    shown = [*now.jobs[:JOBS_SHOWN], *reversed(now.ended)]
    if not shown:
        yield Text("no job yet", style="dim")
    for job in shown:
        done = f"{len(job.proven)}/{len(job.partitions)} partitions".ljust(18)
        took = ((job.last_ms if job.state else now.now_ms) - job.first_ms) / 1000
        state = job.state or "under way"
        style = {"failed": "red", "cancelled": "yellow", "": "bold"}.get(job.state, "dim")
        mark = ("█ ", _colour(job.number))
        yield Text.assemble(mark, (f"{state:10} {done} {took:8.1f} s  ", style), job.job)
    if len(now.jobs) > JOBS_SHOWN:
        yield Text(f"and {len(now.jobs) - JOBS_SHOWN} more under way", style="dim")


def _shares(device: LiveDevice) -> str:
    return f"{percent_text(device.busy_percent)} busy, {percent_text(device.kernel_percent)} by kernels"


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _at_words(span: Span) -> str:
    return span.job if span.partition is None else f"{span.partition} of {span.job}"
