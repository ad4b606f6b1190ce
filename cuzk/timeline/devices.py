"""The figures of a GPU: when it was busy, and of each gap what it waited for.

The intervals of all workers of a GPU are merged: two calls at once are no more than one. The bracket of a
call holds waiting for the lock and host work, so the efficiency by brackets flatters where workers take
turns; the one by kernels does not, and stands beside it where the log has kernels.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from cuzk.timeline.intervals import Cover
from cuzk.timeline.spans import Kind, Span, Work


class Cause(str, Enum):
    """What a GPU waited for."""

    NO_WORK = "no_work"  # nothing was being synthesised, nothing was ready
    SYNTHESIS = "synthesis"  # the queue was empty, something was being synthesised
    OVERHEAD = "overhead"  # a partition was ready
    UNKNOWN = "unknown"  # a call began that never ended, or the log has calls only


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Between the end of one call and the start of the next, with what the time went to."""

    device: int
    end_ms: int  # of the call before
    start_ms: int  # of the call after
    parts_ms: Mapping[Cause, int]

    @property
    def gap_ms(self) -> int:
        return self.start_ms - self.end_ms

    @property
    def cause(self) -> Cause:
        """What most of the time went to."""
        return max(self.parts_ms, key=lambda cause: self.parts_ms[cause])


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU from its first call to the end of its last. What a log does not tell is None.

    `busy` are merged brackets, `kernels` merged kernels; `wait_ms` and `lock_ms` are sums over calls.
    """

    device: int
    workers: tuple[int | None, ...]
    calls: int
    busy: Cover
    gaps: tuple[Gap, ...]
    kernels: Cover | None
    wait_ms: int | None
    lock_ms: int | None

    @property
    def gap_total_ms(self) -> int:
        return sum(gap.gap_ms for gap in self.gaps)

    @property
    def kernel_ms(self) -> int | None:
        """Between the first call and the end of the last: a log may stop in the middle of one."""
        if self.kernels is None:
            return None
        return self.kernels.within(self.busy.pieces[0][0], self.busy.pieces[-1][1])

    def percent(self, part_ms: int) -> float | None:
        """Of the time from the first call to the end of the last."""
        return percent(part_ms, self.busy.total + self.gap_total_ms)


def percent(part: float, whole: float) -> float | None:
    """To a tenth; None of nothing."""
    return round(100 * part / whole, 1) if whole else None


def percent_text(value: float | None) -> str:
    """ "64.3 %", or a dash."""
    return "-" if value is None else f"{value} %"


def devices_of(work: Work) -> tuple[Device, ...]:
    """Every GPU that ended a call, by number."""
    kinds = (Kind.CALL, Kind.KERNEL, Kind.WAIT, Kind.LOCK)
    spans: dict[int, dict[Kind, list[Span]]] = {}
    for kind in kinds:
        for span in work.ended[kind]:
            assert span.device is not None
            spans.setdefault(span.device, {kind: [] for kind in kinds})[kind].append(span)
    causes = _Causes(work)
    return tuple(_device(device, own, causes) for device, own in sorted(spans.items()) if own[Kind.CALL])


def _device(device: int, spans: Mapping[Kind, list[Span]], causes: _Causes) -> Device:
    calls, kernels = spans[Kind.CALL], spans[Kind.KERNEL]
    busy = Cover(ends_of(calls))
    workers = {span.worker for span in calls}
    return Device(
        device=device,
        workers=tuple(sorted(workers, key=lambda worker: -1 if worker is None else worker)),
        calls=len(calls),
        busy=busy,
        gaps=tuple(causes.gap(device, end, start) for end, start in busy.between()),
        kernels=Cover(ends_of(kernels)) if kernels else None,
        wait_ms=sum(span.took_ms for span in spans[Kind.WAIT]) if spans[Kind.LOCK] else None,
        lock_ms=sum(span.took_ms for span in spans[Kind.LOCK]) if spans[Kind.LOCK] else None,
    )


def ends_of(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Start and end of spans that ended."""
    return [(span.start_ms, span.end_ms) for span in spans if span.end_ms is not None]


class _Causes:
    """Tells what the time of a gap went to."""

    def __init__(self, work: Work) -> None:
        ready = ends_of(work.ended[Kind.QUEUE]) + ends_of(work.ended[Kind.TAKEN])
        synthesis = ends_of(work.ended[Kind.SYNTHESIS])
        self._tells = bool(work.ended[Kind.QUEUE] or synthesis)
        self._ready = Cover(ready)
        self._any = Cover(ready + synthesis)
        self._lost: dict[int, list[int]] = {}  # by device: starts of calls whose end is missing, in order
        for span in work.open:
            if span.kind is Kind.CALL and span.device is not None:
                self._lost.setdefault(span.device, []).append(span.start_ms)

    def gap(self, device: int, end_ms: int, start_ms: int) -> Gap:
        lost = self._lost.get(device, [])
        k = bisect_left(lost, end_ms)
        told = min(lost[k], start_ms) if k < len(lost) else start_ms
        if not self._tells:
            told = end_ms
        ready, any_work = self._ready.within(end_ms, told), self._any.within(end_ms, told)
        parts = {
            Cause.NO_WORK: told - end_ms - any_work,
            Cause.SYNTHESIS: any_work - ready,
            Cause.OVERHEAD: ready,
            Cause.UNKNOWN: start_ms - told,
        }
        return Gap(device=device, end_ms=end_ms, start_ms=start_ms, parts_ms=parts)
