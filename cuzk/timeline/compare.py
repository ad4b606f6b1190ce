"""Two logs side by side: the same figures of both, and which of them got better."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cuzk.timeline.analyze import Report
from cuzk.timeline.facts import device_facts
from cuzk.timeline.spans import Kind

Wish = Literal["less", "more", "neither"]
#: A change by a smaller share of the figure before is none.
NOTEWORTHY = 0.01

_STAGES = (
    (Kind.SYNTHESIS, "synthesis"),
    (Kind.QUEUE, "in the queue"),
    (Kind.WAIT, "waiting for the lock"),
    (Kind.CALL, "call"),
    (Kind.KERNEL, "kernels"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of both logs; None where a log does not tell. `unit` is s, ms, %, or nothing for a count."""

    name: str
    unit: str
    wish: Wish
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    @property
    def share(self) -> float | None:
        """The difference as a part of what was before."""
        if self.difference is None or not self.before:
            return None
        return self.difference / self.before

    @property
    def verdict(self) -> str:
        """better, worse or same; nothing where neither can be said."""
        difference = self.difference
        if difference is None or self.wish == "neither":
            return ""
        if abs(difference) <= NOTEWORTHY * abs(self.before or 0):
            return "same"
        return "better" if (difference < 0) is (self.wish == "less") else "worse"


def compare(before: Report, after: Report) -> list[Figure]:
    """Every figure that at least one of the logs has."""
    pairs = zip(_figures(before), _figures(after), strict=True)
    found = [
        Figure(name=name, unit=unit, wish=wish, before=old, after=new)
        for (name, unit, wish, old), (_, _, _, new) in pairs
    ]
    return [figure for figure in found if (figure.before, figure.after) != (None, None)]


def _figures(report: Report) -> Iterator[tuple[str, str, Wish, float | None]]:
    """Name, unit, what is wished, and the figure, in the same order for every report."""
    jobs = [job for run in report.runs for job in run.jobs]
    proven = sum(job.state == "proven" for job in jobs)
    wall_s = sum(run.work.last_ms - run.work.first_ms for run in report.runs) / 1000
    devices = [device for run in report.runs for device in run.devices]
    facts = device_facts(devices)
    yield "jobs proven", "", "neither", proven
    yield "jobs not proven", "", "less", len(jobs) - proven
    yield "from the first event to the last", "s", "neither", wall_s
    yield "a proof", "s", "less", wall_s / proven if proven else None
    yield "a job from its first event to its last", "s", "less", _mean([job.wall_ms / 1000 for job in jobs])
    yield "GPUs", "", "neither", len({device.device for device in devices})
    yield "GPUs busy", "s", "neither", facts["gpu_busy_ms"] / 1000
    yield "GPUs idle", "s", "less", facts["gap_total_ms"] / 1000
    yield "efficiency", "%", "more", facts["efficiency_percent"]
    yield "efficiency by kernels", "%", "more", facts["kernel_efficiency_percent"]
    yield "gaps", "", "less", facts["gaps"]
    yield "average gap", "ms", "less", facts["gap_average_ms"]
    for kind, words in _STAGES:
        yield f"a partition: {words}", "ms", "less", _mean([span.took_ms for span in report.ended(kind)])


def _mean(values: list[float] | list[int]) -> float | None:
    return statistics.fmean(values) if values else None
