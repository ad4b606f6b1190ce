"""A page of a log: figures, picture and long gaps in one HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import PurePath

from cuzk.timeline.analyze import Report
from cuzk.timeline.devices import percent_text
from cuzk.timeline.facts import device_facts, long_gaps
from cuzk.timeline.lanes import CAUSE_WORDS
from cuzk.timeline.svg import svg

_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px system-ui, sans-serif; margin: 2rem auto; max-width: 1240px; padding: 0 1rem; }
h1 { font-size: 1.3rem; }
h2 { font-size: 1rem; margin-top: 2rem; }
.picture { overflow-x: auto; border: 1px solid #8886; border-radius: 6px; }
.picture svg { display: block; width: 100%; min-width: 900px; height: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.25rem 0.8rem; text-align: right; font-variant-numeric: tabular-nums; }
th { font-weight: 600; border-bottom: 1px solid #8886; }
.words td:last-child, .words th:last-child { text-align: left; }
body { background: #ffffff; color: #24292f; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #e6edf3; } }
"""
_GPU_COLUMNS = (
    "run",
    "GPU",
    "calls",
    "busy, s",
    "idle, s",
    "efficiency",
    "by kernels",
    "gaps",
    "average gap, ms",
)
_GAP_COLUMNS = ("run", "GPU", "from, s", "to, s", "gap, s", "what was happening")


def page(report: Report, gap_ms: int) -> str:
    """The HTML of a report; gaps of at least `gap_ms` are listed."""
    title = escape(PurePath(report.name).name)
    gaps = _table(_GAP_COLUMNS, _gap_rows(report, gap_ms), "words")
    notes = "".join(f"<li>{escape(text)}</li>" for text in (*report.notices, *report.advice))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f"{_table(_GPU_COLUMNS, _gpu_rows(report))}\n<ul>{notes}</ul>\n"
        f'<div class="picture">\n{svg(report)}</div>\n'
        f"<h2>Gaps of at least {gap_ms} ms</h2>\n{gaps}\n"
        "</body>\n</html>\n"
    )


def _gpu_rows(report: Report) -> Iterable[Sequence[object]]:
    for number, run in enumerate(report.runs, 1):
        for device in run.devices:
            facts = device_facts([device])
            yield (
                number,
                device.device,
                facts["gpu_calls"],
                f"{facts['gpu_busy_ms'] / 1000:.1f}",
                f"{facts['gap_total_ms'] / 1000:.1f}",
                percent_text(facts["efficiency_percent"]),
                percent_text(facts["kernel_efficiency_percent"]),
                facts["gaps"],
                facts["gap_average_ms"] or "-",
            )


def _gap_rows(report: Report, gap_ms: int) -> Iterable[Sequence[object]]:
    for number, run in enumerate(report.runs, 1):
        for gap in long_gaps(run, gap_ms):
            times = (f"{time / 1000:.3f}" for time in (gap.end_ms, gap.start_ms, gap.gap_ms))
            yield number, gap.device, *times, CAUSE_WORDS[gap.cause]


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]], style: str = "figures") -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return f'<table class="{style}">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>'
