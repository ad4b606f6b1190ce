"""How long a card computes for a proof, by its own clock: waiting for the host is not counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_stream import Event, Stream


class CardClock:
    """Adds up spans of one stream or another that do not overlap. Its events go with the device."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._spans: list[tuple[Event, Event]] = []
        self._unused: list[Event] = []

    def restart(self) -> None:
        for span in self._spans:
            self._unused += span
        self._spans.clear()

    @contextmanager
    def running(self, stream: Stream) -> Iterator[None]:
        """Around what is submitted to a stream in which nothing else waits."""
        begin, end = (self._unused.pop() if self._unused else self._device.new_event() for _ in range(2))
        begin.record(stream)
        yield
        end.record(stream)
        self._spans.append((begin, end))

    def total_ms(self) -> float:
        """Since the restart. Waits for what is still under way."""
        return sum(end.elapsed_ms(begin) for begin, end in self._spans)
