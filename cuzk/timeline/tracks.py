"""Spans laid out for the eye: tracks of GPU workers and of syntheses, and the depth of the queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate

from cuzk.timeline.analyze import Run
from cuzk.timeline.spans import Attempt, Kind, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Spans that follow one another, and those that lie within them: `label` says whose."""

    label: str
    spans: list[Span]
    inner: list[Span] = field(default_factory=list)


def gpu_tracks(run: Run) -> dict[int, list[Track]]:
    """By device, a track a worker; several where it began a call before the end of its last."""
    within: dict[Attempt, list[Span]] = {}
    for kind in (Kind.WAIT, Kind.LOCK, Kind.KERNEL):
        for span in all_spans(run, kind):
            within.setdefault(span.attempt, []).append(span)
    by_worker: dict[tuple[int, int], list[Span]] = {}  # a worker without a number comes first
    for span in all_spans(run, Kind.CALL):
        assert span.device is not None
        by_worker.setdefault((span.device, -1 if span.worker is None else span.worker), []).append(span)
    tracks: dict[int, list[Track]] = {}
    for (device, worker), calls in sorted(by_worker.items()):
        for lane in _spread(calls, run):
            inner = [
                span
                for call in lane
                for span in within.get(call.attempt, ())
                if call.start_ms <= span.start_ms <= end_of(call, run)
            ]
            label = "worker" if worker < 0 else f"worker {worker}"
            tracks.setdefault(device, []).append(Track(label=label, spans=lane, inner=inner))
    return tracks


def synthesis_tracks(run: Run) -> list[Track]:
    """As few tracks as hold all syntheses: the log does not say which thread did which."""
    lanes = _spread(all_spans(run, Kind.SYNTHESIS), run)
    return [Track(label=f"synthesis {k}", spans=lane) for k, lane in enumerate(lanes, 1)]


def queue_depth(run: Run) -> list[tuple[int, int]]:
    """(moment, how many partitions wait from then on); those that were never taken are left out."""
    change: dict[int, int] = {}
    for span in run.work.ended[Kind.QUEUE]:
        change[span.start_ms] = change.get(span.start_ms, 0) + 1
        change[end_of(span, run)] = change.get(end_of(span, run), 0) - 1
    moments = sorted(change)
    return list(zip(moments, accumulate(change[moment] for moment in moments), strict=True))


def all_spans(run: Run, kind: Kind) -> list[Span]:
    """Spans that ended and those that did not, by start."""
    left = [span for span in run.work.open if span.kind is kind]
    return sorted(run.work.ended[kind] + left, key=lambda span: span.start_ms)


def end_of(span: Span, run: Run) -> int:
    """Where a span ends in the picture: one that did not goes on to the end of the run."""
    return run.work.last_ms if span.end_ms is None else span.end_ms


def _spread(spans: Iterable[Span], run: Run) -> list[list[Span]]:
    """Spans, given by start, laid into as few lanes as they need, each in the first lane that is free."""
    lanes: list[list[Span]] = []
    free: list[int] = []
    running: list[tuple[int, int]] = []  # end, lane
    for span in spans:
        while running and running[0][0] <= span.start_ms:
            heappush(free, heappop(running)[1])
        if not free:
            heappush(free, len(lanes))
            lanes.append([])
        lane = heappop(free)
        lanes[lane].append(span)
        heappush(running, (end_of(span, run), lane))
    return lanes
