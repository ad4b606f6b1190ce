"""The jobs of a run: what became of each partition and when, and which way a job's time went."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from cuzk.timeline.line import Event
from cuzk.timeline.spans import Kind, Span, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The last try of a partition; None where the log does not say. Offsets of the run's clock."""

    partition: int | None
    synthesis_start_ms: int | None
    synthesis_end_ms: int | None
    pickup_ms: int | None
    gpu_start_ms: int | None
    gpu_end_ms: int | None
    worker: int | None
    device: int | None
    proven: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job from its first event to its last. Sums run over partitions and tries, and may exceed wall time.

    `state` is proven, failed, cancelled or unfinished. `critical` is the way of the partition that ended
    last: before its synthesis, synthesis, before its call, call. Empty where something of it is missing.
    """

    job: str
    state: str
    partitions: tuple[Partition, ...]
    first_ms: int
    last_ms: int
    synthesis_ms: int
    queue_ms: int
    gpu_ms: int
    critical: tuple[int, ...]

    @property
    def wall_ms(self) -> int:
        return self.last_ms - self.first_ms


def jobs_of(work: Work) -> tuple[Job, ...]:
    """Every job, by its first event."""
    spans: dict[str, list[Span]] = {}
    for span in chain(*(work.ended[kind] for kind in Kind), work.open):
        spans.setdefault(span.job, []).append(span)
    endings: dict[str, Event] = {}
    for event in work.endings:  # a whole job's is the last word
        if event.partition is None or event.job not in endings:
            endings[event.job] = event
    jobs = [_job(job, own, endings.get(job)) for job, own in spans.items()]
    return tuple(sorted(jobs, key=lambda job: job.first_ms))


def _job(job: str, spans: list[Span], ending: Event | None) -> Job:
    by_partition: dict[int | None, dict[Kind, Span]] = {}
    for span in spans:  # of equal kinds the last try stays: ended spans come by start, open ones after them
        by_partition.setdefault(span.partition, {})[span.kind] = span
    numbers = sorted(by_partition, key=lambda number: -1 if number is None else number)
    partitions = tuple(_partition(number, by_partition[number]) for number in numbers)
    first = min(span.start_ms for span in spans)
    last = max(span.start_ms if span.end_ms is None else span.end_ms for span in spans)
    return Job(
        job=job,
        state=_state(partitions, ending),
        partitions=partitions,
        first_ms=first,
        last_ms=last,
        synthesis_ms=_sum(spans, Kind.SYNTHESIS),
        queue_ms=_sum(spans, Kind.QUEUE),
        gpu_ms=_sum(spans, Kind.CALL),
        critical=_critical(partitions, first),
    )


def _partition(number: int | None, last: dict[Kind, Span]) -> Partition:
    synthesis, call, taken = last.get(Kind.SYNTHESIS), last.get(Kind.CALL), last.get(Kind.TAKEN)
    return Partition(
        partition=number,
        synthesis_start_ms=synthesis.start_ms if synthesis else None,
        synthesis_end_ms=synthesis.end_ms if synthesis else None,
        pickup_ms=taken.start_ms if taken else None,
        gpu_start_ms=call.start_ms if call else None,
        gpu_end_ms=call.end_ms if call else None,
        worker=call.worker if call else None,
        device=call.device if call else None,
        proven=call is not None and call.end_ms is not None and not call.failed,
    )


def _state(partitions: Iterable[Partition], ending: Event | None) -> str:
    if (ending is None or ending.partition is not None) and all(one.proven for one in partitions):
        return "proven"  # a try that failed was followed by one that did not
    if ending is None:
        return "unfinished"
    return {"FAILED": "failed", "CANCELLED": "cancelled", "ASSEMBLED": "proven"}[ending.name]


def _sum(spans: Iterable[Span], kind: Kind) -> int:
    return sum(span.took_ms for span in spans if span.kind is kind and span.end_ms is not None)


def _critical(partitions: Iterable[Partition], first_ms: int) -> tuple[int, ...]:
    last = max(partitions, key=lambda one: -1 if one.gpu_end_ms is None else one.gpu_end_ms)
    moments = (
        first_ms,
        last.synthesis_start_ms,
        last.synthesis_end_ms,
        last.gpu_start_ms,
        last.gpu_end_ms,
    )
    known = [moment for moment in moments if moment is not None]
    if len(known) < len(moments):
        return ()
    return tuple(after - before for before, after in zip(known, known[1:], strict=False))
