"""Figures of a benchmark of many jobs, from the TIMELINE lines of its engine."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.timeline.analyze import analyze
from cuzk.timeline.devices import ends_of, percent
from cuzk.timeline.facts import device_facts
from cuzk.timeline.intervals import Cover
from cuzk.timeline.line import MARK
from cuzk.timeline.read import parse_log
from cuzk.timeline.spans import Kind, Span

#: Spans of a partition's way, in its order, as the table of stages names them.
STAGES = {
    Kind.SYNTHESIS: "preparation",
    Kind.QUEUE: "waiting for a device",
    Kind.WAIT: "waiting for its lock",
    Kind.LOCK: "on the device",
    Kind.CALL: "both, and the host's part",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of some figures."""

    total: float
    mean: float
    median: float
    p95: float
    least: float
    most: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Of at least one."""
        in_order = sorted(figures)
        return cls(
            total=sum(in_order),
            mean=statistics.fmean(in_order),
            median=statistics.median(in_order),
            p95=in_order[-(-95 * len(in_order) // 100) - 1],
            least=in_order[0],
            most=in_order[-1],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFigures:
    """Of a device's kernels, by its own clock, after its first partition: before that there was no queue yet.

    efficiency_percent  how much of that time they ran, until the end of the last
    partition_ms        of all partitions there, the median
    """

    efficiency_percent: float | None
    partition_ms: float

    @classmethod
    def of(cls, kernels: Sequence[Span]) -> KernelFigures:
        """Of at least one."""
        pieces = ends_of(kernels)
        begin, end = min(end for _, end in pieces), max(end for _, end in pieces)
        return cls(
            efficiency_percent=percent(Cover(pieces).within(begin, end), end - begin),
            partition_ms=statistics.median(end - start for start, end in pieces),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a timeline says of the measured jobs.

    stages   milliseconds of each stage of a partition: the sums may exceed the total
    devices  figures of each GPU, by name
    kernels  by name, of those that have a clock
    """

    stages: Mapping[str, Spread]
    devices: Mapping[str, dict[str, Any]]
    kernels: Mapping[str, KernelFigures]

    @classmethod
    def of(cls, lines: Sequence[str], names: Mapping[int, str]) -> Figures:
        """Empty where no job came so far. `names` of devices by number."""
        if not any(line.startswith(MARK) for line in lines):
            return cls(stages={}, devices={}, kernels={})
        report = analyze(parse_log(iter(lines), name="this run"))
        kernels = {
            name: [span for span in report.ended(Kind.KERNEL) if span.device == number]
            for number, name in names.items()
        }
        return cls(
            stages={
                name: Spread.of([span.took_ms for span in spans])
                for kind, name in STAGES.items()
                if (spans := report.ended(kind))
            },
            devices={names[one.device]: device_facts([one]) for run in report.runs for one in run.devices},
            kernels={name: KernelFigures.of(of_device) for name, of_device in kernels.items() if of_device},
        )

    @property
    def partition_ms(self) -> float | None:
        """What a partition's kernels take at the devices' mean speed; None where none has a clock."""
        if not self.kernels:
            return None
        return statistics.harmonic_mean([one.partition_ms for one in self.kernels.values()])
