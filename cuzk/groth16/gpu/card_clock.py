"""How long a card computes for a proof, by its own clock: waiting for the host is not counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from cuzk.events import Progress
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_stream import Event, Stream


class CardClock:
    """Spans of one stream or another that do not overlap, by name. Its events go with the device."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._spans: list[tuple[str, Event, Event]] = []
        self._unused: list[Event] = []

    def restart(self) -> None:
        for _, *events in self._spans:
            self._unused += events
        self._spans.clear()

    @contextmanager
    def running(self, name: str, stream: Stream) -> Iterator[None]:
        """Around what is submitted to a stream in which nothing else waits."""
        begin, end = (self._unused.pop() if self._unused else self._device.new_event() for _ in range(2))
        begin.record(stream)
        yield
        end.record(stream)
        self._spans.append((name, begin, end))

    def in_parts(
        self, stream: Stream, progress: Progress, *, parts: int, total: int
    ) -> Callable[[str], AbstractContextManager[None]]:
        """`running` for work in so many parts. After each the card is waited for, and progress told.

        Whoever hears that may let others use the card meanwhile: their time is not counted.
        """
        done = 0

        @contextmanager
        def part(name: str) -> Iterator[None]:
            nonlocal done
            with self.running(name, stream):
                yield
            stream.synchronise()
            done += 1
            progress(total * done // parts, total)

        return part

    def stages_ms(self) -> dict[str, float]:
        """Of each name since the restart, in the order of their beginnings; waits for what is under way."""
        stages: dict[str, float] = {}
        for name, begin, end in self._spans:
            stages[name] = stages.get(name, 0.0) + end.elapsed_ms(begin)
        return stages

    def total_ms(self) -> float:
        return sum(self.stages_ms().values())
