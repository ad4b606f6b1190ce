"""What the time of a GPU went to: kernels first, then what stood in their way.

    kernels    a kernel ran, by the device's own clock: this alone is efficiency
    call       a worker was at a partition, and none did: host work, waiting for the lock
    ready      a partition was ready, and nobody was at it here
    synthesis  partitions were being synthesised, none was ready
    nothing    there was nothing to prove

A moment counts for the first that is true of it, so the five add up to the whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from cuzk.server.recent import Recent
from cuzk.timeline.devices import percent
from cuzk.timeline.intervals import Cover, merged
from cuzk.timeline.spans import Kind, Span

_OF_A_DEVICE = frozenset({Kind.KERNEL, Kind.CALL, Kind.LOCK})
_PIECES_KEPT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTime:
    """Milliseconds of a stretch of time by part.

    kernels_known  whether the device tells how long it computed: a CPU does not
    """

    parts_ms: Mapping[str, int]
    kernels_known: bool

    @property
    def total_ms(self) -> int:
        return sum(self.parts_ms.values())

    @property
    def efficiency_percent(self) -> float | None:
        """Kernels of the whole; None where nobody knows."""
        return percent(self.parts_ms["kernels"], self.total_ms) if self.kernels_known else None


class GpuTimes:
    """Of all devices, from the spans that are remembered. Of 20,000 it takes 20 ms, most of it here.

    A part is what its spans cover and those before it do not: of a device the first two, of all the others.
    """

    def __init__(self, recent: Recent) -> None:
        self._now_ms = recent.now_ms
        self._own: dict[tuple[Kind, int | None], list[tuple[int, int]]] = {}
        shared: dict[Kind, list[tuple[int, int]]] = {kind: [] for kind in Kind}
        self._calls = [_UnderWay(span) for span in recent.open if span.kind is Kind.CALL]
        under_way = {one.span.attempt: one for one in self._calls}
        for spans in (recent.ended, recent.open):
            for span in spans:
                end = recent.now_ms if span.end_ms is None else span.end_ms
                if span.kind not in _OF_A_DEVICE:
                    shared[span.kind].append((span.start_ms, end))
                    continue
                self._own.setdefault((span.kind, span.device), []).append((span.start_ms, end))
                if span.kind is not Kind.CALL and (one := under_way.get(span.attempt)) is not None:
                    one.hear(span)
        self._ready = merged(shared[Kind.QUEUE] + shared[Kind.TAKEN])
        self._synthesis = merged(shared[Kind.SYNTHESIS])
        self._covers: dict[int, dict[str, Cover]] = {}

    def of(self, device: int, window_ms: int, *, has_clock: bool) -> GpuTime | None:
        """Of the last milliseconds of which all is known, or of as many as there were; None of none.

        What kernels took is told when a proof leaves the device. So the time ends where one that is there now
        began: were it counted as time without kernels, long proofs would make the figure jump.

        has_clock  whether the device ever told what its kernels took
        """
        end = self._known_until(device)
        begin = max(0, end - window_ms)
        if begin == end:
            return None
        before, parts = 0, {}
        for part, cover in self._covers_of(device).items():
            so_far = cover.within(begin, end)
            parts[part], before = so_far - before, so_far
        parts["nothing"] = end - begin - before
        return GpuTime(parts_ms=parts, kernels_known=has_clock)

    def _covers_of(self, device: int) -> dict[str, Cover]:
        """By part, what it and those before it cover."""
        if device not in self._covers:
            layers = {
                "kernels": self._own.get((Kind.KERNEL, device), []),
                "call": self._own.get((Kind.CALL, device), []),
                "ready": self._ready,
                "synthesis": self._synthesis,
            }
            so_far: list[tuple[int, int]] = []
            self._covers[device] = {}
            for part, pieces in layers.items():
                cover = self._covers[device][part] = Cover(so_far + pieces)
                so_far = cover.pieces
        return self._covers[device]

    def _known_until(self, device: int) -> int:
        """The moment from which on kernels may have run that nobody has told of."""
        locks = (Kind.LOCK, device) in self._own
        unknown = [one.unknown_from(locks) for one in self._calls if one.span.device == device]
        return min((start for start in unknown if start is not None), default=self._now_ms)


class _UnderWay:
    """A call that goes on. It tells of its kernels when it leaves the device, and may come there again."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._locked_ms: list[int] = []
        self._told_ms = 0

    def hear(self, span: Span) -> None:
        """A lock that was had or kernels that were told of, maybe by an attempt before this one."""
        if span.start_ms >= self.span.start_ms:
            if span.kind is Kind.LOCK:
                self._locked_ms.append(span.start_ms)
            elif span.end_ms is not None:
                self._told_ms = max(self._told_ms, span.end_ms)

    def unknown_from(self, locks: bool) -> int | None:
        """Where it first had a lock of which it has not told, or None; its begin where nothing locks."""
        if not locks:
            return self.span.start_ms
        return min((start for start in self._locked_ms if start >= self._told_ms), default=None)


class KernelClock:
    """Adds up how long the kernels of a device ran, ever; those that ran at once count once. Not locked.

    Only the last pieces are compared: kernels are heard of in about the order of their ends.
    """

    def __init__(self) -> None:
        self.total_ms = 0
        self._pieces: deque[tuple[int, int]] = deque(maxlen=_PIECES_KEPT)

    def add(self, start_ms: int, end_ms: int) -> None:
        self.total_ms += end_ms - start_ms - Cover(self._pieces).within(start_ms, end_ms)
        self._pieces.append((start_ms, end_ms))
