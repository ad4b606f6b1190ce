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
from cuzk.timeline.devices import ends_of, percent
from cuzk.timeline.intervals import Cover
from cuzk.timeline.spans import Kind, Span

#: A part is what its spans cover and those before it do not. Of a device the first two, of all the others.
_PARTS: Mapping[str, tuple[Kind, ...]] = {
    "kernels": (Kind.KERNEL,),
    "call": (Kind.CALL,),
    "ready": (Kind.QUEUE, Kind.TAKEN),
    "synthesis": (Kind.SYNTHESIS,),
}
_OF_A_DEVICE = frozenset({Kind.KERNEL, Kind.CALL})
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


def gpu_time(recent: Recent, device: int, window_ms: int, *, has_clock: bool) -> GpuTime | None:
    """Of the last `window_ms` milliseconds of which all is known, or of as many as there were; None of none.

    What kernels took is told when a proof leaves the device. So the time ends where one that is there now
    began: were it counted as time without kernels, long proofs would make the figure jump.

    has_clock  whether the device ever told what its kernels took
    """
    end = min((span.start_ms for span in _under_way(recent, device)), default=recent.now_ms)
    begin = max(0, end - window_ms)
    if begin == end:
        return None
    spans = recent.ended + [span._replace(end_ms=recent.now_ms) for span in recent.open]
    covered, before, parts = [], 0, {}
    for part, kinds in _PARTS.items():
        covered += ends_of(
            span
            for span in spans
            if span.kind in kinds and (span.device == device or kinds[0] not in _OF_A_DEVICE)
        )
        so_far = Cover(covered).within(begin, end)
        parts[part], before = so_far - before, so_far
    parts["nothing"] = end - begin - before
    return GpuTime(parts_ms=parts, kernels_known=has_clock)


def _under_way(recent: Recent, device: int) -> list[Span]:
    """Spans in which kernels run of which nothing is known yet: locks held, or calls where nothing locks."""
    own = [span for span in recent.open if span.device == device]
    locks = any(span.kind is Kind.LOCK and span.device == device for span in (*own, *recent.ended))
    return [span for span in own if span.kind is (Kind.LOCK if locks else Kind.CALL)]


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
