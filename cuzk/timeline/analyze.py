"""From a log to its figures: for each run its spans, its GPUs and its jobs, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cuzk.garbage import without_garbage_collection
from cuzk.timeline.devices import Cause, Device, Gap, devices_of
from cuzk.timeline.jobs import Job, jobs_of
from cuzk.timeline.read import Counts, Log
from cuzk.timeline.spans import WORKERS_PER_GPU, Kind, Span, Work, match

#: A loss below this share of the GPUs' time is not worth a sentence.
WORTH_SAYING = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One life of an engine. Offsets are of its own clock."""

    work: Work
    devices: tuple[Device, ...]
    jobs: tuple[Job, ...]

    @property
    def gaps(self) -> Iterator[Gap]:
        """All gaps of all GPUs."""
        for device in self.devices:
            yield from device.gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that is known of a log. `notices` say what the figures rest on, `advice` what would help."""

    name: str
    counts: Counts
    runs: tuple[Run, ...]
    notices: tuple[str, ...]
    advice: tuple[str, ...]

    def ended(self, kind: Kind) -> list[Span]:
        """The spans of a kind that ended and did not fail, of all runs."""
        return [span for run in self.runs for span in run.work.ended[kind] if not span.failed]


def analyze(log: Log, *, workers_per_gpu: int | None = None) -> Report:
    """The figures of a log; `workers_per_gpu` goes before what the log says. 4 us an event."""
    runs = []
    with without_garbage_collection():
        for events in log.runs:
            work = match(events, workers_per_gpu or log.workers_per_gpu)
            runs.append(Run(work=work, devices=devices_of(work), jobs=jobs_of(work)))
    return Report(
        name=log.name,
        counts=log.counts,
        runs=tuple(runs),
        notices=tuple(_notices(log.counts, runs)),
        advice=tuple(advice(runs)),
    )


def _notices(counts: Counts, runs: list[Run]) -> Iterator[str]:
    if len(runs) > 1:
        yield f"the engine was started {len(runs)} times: each run has a clock of its own"
    if counts.garbled:
        yield f"garbled TIMELINE lines, left out: {counts.garbled}"
    if counts.unknown:
        names = ", ".join(f"{name} ({count})" for name, count in sorted(counts.unknown.items()))
        yield f"unknown events, left out: {names}"
    if unmatched := sum(run.work.unmatched for run in runs):
        yield f"ends without a start in the log: {unmatched}"
    left = Counter(span.kind for run in runs for span in run.work.open)
    for kind, words in ((Kind.SYNTHESIS, "syntheses"), (Kind.CALL, "GPU calls")):
        if left[kind]:
            yield f"{words} without an end in the log, failed or cut off: {left[kind]}"
    if any(run.work.guessed > WORKERS_PER_GPU for run in runs):
        yield (
            f"no line names a device: {WORKERS_PER_GPU} workers are taken to share one; "
            "--workers-per-gpu says otherwise"
        )
    if not any(run.devices for run in runs):
        yield "no GPU call ended: there is nothing to say about a GPU"


def advice(runs: list[Run]) -> Iterator[str]:
    """What would help, the greatest loss first; nothing where nothing is lost."""
    losses: Counter[str] = Counter()
    span_ms = 0
    for run in runs:
        for device in run.devices:
            span_ms += device.busy.total + device.gap_total_ms
            for gap in device.gaps:
                losses.update({cause.value: took for cause, took in gap.parts_ms.items()})
            if device.kernel_ms is not None:
                losses["no kernel"] += device.busy.total - device.kernel_ms
    for loss, lost_ms in losses.most_common():
        if loss in _ADVICE and lost_ms >= WORTH_SAYING * span_ms and lost_ms:
            yield f"{lost_ms / 1000:.1f} s ({100 * lost_ms / span_ms:.1f} %) " + _ADVICE[loss]


_ADVICE: Mapping[str, str] = {
    Cause.NO_WORK.value: "passed without work: hand jobs in earlier, or let their synthesis begin earlier "
    "(synthesis_lookahead)",
    Cause.SYNTHESIS.value: "were waited for synthesis: more of it at a time (partition_workers), as far as "
    "cores and memory allow",
    Cause.OVERHEAD.value: "passed while a partition was ready: of two workers a GPU (gpu_workers_per_device) "
    "one prepares while the other computes",
    "no kernel": "of the calls ran no kernel: host work inside the lock, or too few workers to hide it",
}
