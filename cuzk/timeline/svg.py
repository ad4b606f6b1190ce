"""A picture of a log: one self-contained SVG, light or dark as its viewer is, with tooltips by <title>."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import count
from pathlib import PurePath

from cuzk.timeline.analyze import Report, Run
from cuzk.timeline.devices import Cause
from cuzk.timeline.lanes import CAUSE_WORDS, Bar, Depth, Lane, Row, groups_of

WIDTH, LEFT, RIGHT, MARGIN = 1200, 132, 20, 16
_HEIGHTS = {"small": 11, "middle": 13, "large": 20}
_DEPTH_HEIGHT, _ROW_GAP, _GROUP_GAP, _TITLE_HEIGHT, _AXIS_HEIGHT, _LEGEND_HEIGHT = 28, 3, 14, 40, 34, 24
_TICKS = 10
_THIN_PX = 1.0  # bars narrower than this, side by side, are drawn as one
_CHARACTER_PX = 7.0

_JOBS_LIGHT = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#d4a72c", "#9c755f", "#e583a0")
_JOBS_DARK = ("#6b9bd1", "#f5a04f", "#74bd6a", "#c99bbd", "#8acdc8", "#e6c35c", "#bc9a85", "#f2a0b8")
_STYLE = """
text { font: 11px system-ui, "DejaVu Sans", sans-serif; fill: #24292f; }
.title { font-size: 14px; font-weight: 600; }
.quiet { fill: #57606a; }
.inside { fill: #ffffff; pointer-events: none; }
.right { text-anchor: end; }
.middle { text-anchor: middle; }
.ground { fill: #ffffff; }
.track { fill: #f3f5f7; }
.grid { stroke: #d8dee4; stroke-width: 1; }
.busy { fill: #2da44e; }
.no_work { fill: #afb8c1; }
.synthesis { fill: #f0b429; }
.overhead { fill: #d1242f; }
.unknown { fill: #8250df; }
.wait { fill: #ffffff; fill-opacity: 0.65; }
.kernel { fill: #24292f; }
.depth { fill: #8c959f; }
.open { opacity: 0.45; }
.failed { stroke: #d1242f; stroke-width: 2; }
"""
_STYLE_DARK = """
text { fill: #e6edf3; }
.quiet { fill: #9198a1; }
.inside { fill: #0d1117; }
.ground { fill: #0d1117; }
.track { fill: #161b22; }
.grid { stroke: #30363d; }
.busy { fill: #3fb950; }
.no_work { fill: #545d68; }
.overhead { fill: #f85149; }
.unknown { fill: #a371f7; }
.wait { fill: #0d1117; }
.kernel { fill: #d0d7de; }
.depth { fill: #6e7681; }
.failed { stroke: #f85149; }
"""


def style() -> str:
    """The rules of all pictures."""
    light = "".join(f".j{k} {{ fill: {colour}; }}\n" for k, colour in enumerate(_JOBS_LIGHT))
    dark = "".join(f".j{k} {{ fill: {colour}; }}\n" for k, colour in enumerate(_JOBS_DARK))
    return f"{_STYLE}{light}@media (prefers-color-scheme: dark) {{{_STYLE_DARK}{dark}}}\n"


def svg(report: Report) -> str:
    """The picture of all runs, one below the other, each with its own clock."""
    parts: list[str] = []
    y = float(MARGIN)
    for number, run in enumerate(report.runs, 1):
        title = PurePath(report.name).name
        if len(report.runs) > 1:
            title += f", run {number} of {len(report.runs)}"
        panel, y = _panel(run, title, y)
        parts += panel
    parts += _legend(report, y)
    height = y + _LEGEND_HEIGHT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img" aria-label="Timeline of GPUs, queue and syntheses">'
    )
    ground = f'<rect class="ground" width="{WIDTH}" height="{height:.0f}"/>'
    return "\n".join([head, f"<style>{style()}</style>", ground, *parts, "</svg>", ""])


class _Scale:
    """Moments of a run to pixels."""

    def __init__(self, run: Run) -> None:
        first, last = run.work.first_ms, max(run.work.last_ms, run.work.first_ms + 1)
        self.first_ms = 0 if first < 0.1 * last else first
        self.last_ms = last
        self._px_per_ms = (WIDTH - LEFT - RIGHT) / (last - self.first_ms)

    def x(self, moment_ms: float) -> float:
        return LEFT + (moment_ms - self.first_ms) * self._px_per_ms

    def ticks_s(self) -> list[float]:
        """Round numbers of seconds, at most _TICKS between the ends."""
        first_us, last_us = 1000 * self.first_ms, 1000 * self.last_ms
        steps = (digit * 10**power for power in count(2) for digit in (1, 2, 5))
        step = next(step for step in steps if last_us - first_us <= _TICKS * step)
        begin = -(-first_us // step) * step
        return [tick / 1e6 for tick in range(begin, last_us + 1, step)]


def _panel(run: Run, title: str, y: float) -> tuple[list[str], float]:
    """Title, axis and rows of a run from `y` down, and where it ends."""
    scale = _Scale(run)
    calls = sum(device.calls for device in run.devices)
    words = f"{len(run.jobs)} jobs, {calls} GPU calls, {(run.work.last_ms - run.work.first_ms) / 1000:.1f} s"
    texts = [
        f'<text class="title" x="{MARGIN}" y="{y + 14:.0f}">{escape(title)}</text>',
        f'<text class="quiet right" x="{WIDTH - RIGHT}" y="{y + 14:.0f}">{words}</text>',
    ]
    top = y = y + _TITLE_HEIGHT
    tracks: list[str] = []
    rows: list[str] = []
    for group in groups_of(run):
        for row in group:
            height = _DEPTH_HEIGHT if isinstance(row, Depth) else _HEIGHTS[row.size]
            tracks += _track(row, y, height)
            rows += _area(row, y, height, scale) if isinstance(row, Depth) else _bars(row, y, height, scale)
            y += height + _ROW_GAP
        y += _GROUP_GAP - _ROW_GAP
    bottom = y - _GROUP_GAP + _ROW_GAP
    return [*texts, *tracks, *_axis(scale, top - 6, bottom), *rows], bottom + _AXIS_HEIGHT


def _axis(scale: _Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in scale.ticks_s():
        x = scale.x(1000 * tick)
        yield f'<path class="grid" d="M{x:.1f} {top:.0f}V{bottom:.0f}"/>'
        yield f'<text class="quiet middle" x="{x:.1f}" y="{bottom + 14:.0f}">{tick:g}</text>'
    yield f'<text class="quiet right" x="{LEFT - 8}" y="{bottom + 14:.0f}">seconds</text>'


def _track(row: Row, y: float, height: int) -> Iterator[str]:
    yield f'<text class="right" x="{LEFT - 8}" y="{y + height / 2 + 4:.1f}">{escape(row.label)}</text>'
    yield f'<rect class="track" x="{LEFT}" y="{y:.1f}" width="{WIDTH - LEFT - RIGHT}" height="{height}"/>'


def _bars(row: Lane, y: float, height: int, scale: _Scale) -> Iterator[str]:
    for bar in _joined(row.bars, scale):
        yield _rect(bar, y, height, scale)
    for bar in _joined(row.inner, scale):
        if bar.look == "kernel":
            yield _rect(bar, y + height - 4, 4, scale)
        else:
            yield _rect(bar, y, height, scale)
    for bar in row.bars if row.size == "large" else ():
        end, width = scale.x(bar.end_ms), scale.x(bar.end_ms) - scale.x(bar.start_ms)
        if bar.label and width > _CHARACTER_PX * len(bar.label) + 6:  # at the end, as waiting comes first
            place = f'x="{end - 4:.1f}" y="{y + height / 2 + 3:.1f}"'
            yield f'<text class="inside right" {place}>{escape(bar.label)}</text>'


def _rect(bar: Bar, y: float, height: int, scale: _Scale) -> str:
    x = scale.x(bar.start_ms)
    width = max(scale.x(bar.end_ms) - x, 0.1)
    return (
        f'<rect class="{bar.look}" x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{height}">'
        f"<title>{escape(bar.tip)}</title></rect>"
    )


def _joined(bars: Iterable[Bar], scale: _Scale) -> Iterator[Bar]:
    """The bars, but neighbours too thin to be seen as one: a long log makes no longer picture."""
    group: list[Bar] = []

    def joined() -> Iterator[Bar]:
        if len(group) == 1:
            yield group[0]
        elif group:
            start, end = group[0].start_ms, max(bar.end_ms for bar in group)
            tip = (
                f"{len(group)} too short to be told apart here, from {start / 1000:.3f} to {end / 1000:.3f} s"
            )
            longest = max(group, key=lambda bar: bar.end_ms - bar.start_ms)
            yield Bar(start_ms=start, end_ms=end, look=longest.look, tip=tip)

    for bar in bars:
        thin = scale.x(bar.end_ms) - scale.x(bar.start_ms) < _THIN_PX
        if group and (not thin or scale.x(bar.end_ms) - scale.x(group[0].start_ms) >= _THIN_PX):
            yield from joined()
            group = []
        if thin:
            group.append(bar)
        else:
            yield bar
    yield from joined()


def _area(row: Depth, y: float, height: int, scale: _Scale) -> Iterator[str]:
    """Steps as a filled area; of what falls on one pixel the highest."""
    highest: dict[int, int] = {}
    depth = 0
    for moment, after in row.steps:
        column = int(scale.x(moment))
        highest[column] = max(highest.get(column, depth), after)
        depth = after
        highest[column + 1] = after
    most = max((depth for _, depth in row.steps), default=0) or 1
    path = [f"M{LEFT} {y + height:.1f}"]
    for column in sorted(highest):
        path.append(f"H{column}V{y + height - (height - 2) * highest[column] / most:.1f}")
    tip = f"<title>partitions in the queue, at most {most}</title>"
    yield f'<path class="depth" d="{"".join(path)}V{y + height:.1f}Z">{tip}</path>'
    yield f'<text class="quiet" x="{WIDTH - RIGHT + 3}" y="{y + 9:.1f}">{most}</text>'


def _legend(report: Report, y: float) -> Iterator[str]:
    """What the colours mean, as far as they occur."""
    devices = [device for run in report.runs for device in run.devices]
    causes = {cause for device in devices for gap in device.gaps for cause in Cause if gap.parts_ms[cause]}
    entries = [("busy", "busy")] + [(cause.value, CAUSE_WORDS[cause]) for cause in Cause if cause in causes]
    if any(device.wait_ms is not None for device in devices):
        entries.append(("busy wait", "paler: waiting for the lock"))
    if any(device.kernel_ms is not None for device in devices):
        entries.append(("kernel", "kernels"))
    x = float(LEFT)
    for look, words in entries:
        for layer in look.split():
            yield f'<rect class="{layer}" x="{x:.0f}" y="{y:.0f}" width="11" height="11"/>'
        yield f'<text class="quiet" x="{x + 16:.0f}" y="{y + 10:.0f}">{words}</text>'
        x += 16 + 6.4 * len(words) + 18
    right = f'x="{WIDTH - RIGHT}" y="{y + 10:.0f}"'
    yield f'<text class="quiet right" {right}>calls and syntheses: a colour a job</text>'
