"""Sections of points that several cards hold in the same rows: one loads them, the others copy them from it.

Reading is bound by the host's memory, some 20 GB/s for all cards together; between two cards NVLink moves ten
times that. A card gives a section to one other at a time, and whoever has it gives it on: eight cards have it
after three rounds. Each section goes its own way, so that one is copied while the next is loaded.

On some hosts cards reach each other by what the driver says, and something else arrives than was sent (an
IOMMU translates what goes from card to card). So some rows of each copy are compared; where they differ, the
card loads the section itself, and copies from that card no more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from cuzk.errors import DeviceFault
from cuzk.events import Notice, OnEvent, ignore
from cuzk.groth16.parameters.params_file import SectionName
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu.points import Advance, GpuPoints

#: Points of one copy, the unit of progress and of giving up: 1.6 GB in G1.
COPIED_AT_ONCE = 1 << 24
#: Of each copy, evenly spread: some 25 us for a row and card.
_COMPARED_ROWS = 3
_IOMMU = "see PCI access control and IOMMU in NVIDIA's documentation of peer-to-peer copies"
_Key = tuple[SectionName, tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class _Holder:
    """is_giving  another card copies from this one"""

    device: CudaDevice
    points: GpuPoints
    is_giving: bool = False


@dataclass(slots=True, eq=False)
class _Section:
    """is_coming  a card loads it; of those that hold it not yet, the others wait"""

    holders: list[_Holder] = field(default_factory=list)
    is_coming: bool = False


class HeldSections:
    """Of one source of points, on the cards that have them. All state is guarded by `_changed`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sections: dict[_Key, _Section] = {}
        self._apart: set[tuple[CudaDevice, CudaDevice]] = set()  # who does not get what the other sends

    def on_card(
        self,
        device: CudaDevice,
        section: SectionName,
        order: tuple[int, int, int],
        load: Callable[[], GpuPoints],
        advance: Advance,
        on_event: OnEvent = ignore,
    ) -> GpuPoints:
        """The points of a section in rows of that order, copied from a card that has them, or else loaded.

        load      raises what it likes; then the next card that wants them tries
        advance   is told of points that are copied, of none while the card waits, of so many less where it
                  was in vain; may raise, which ends it
        on_event  hears of copies that are not what was sent
        The points must not change until `leave`.
        """
        while True:
            at = self._claim(device, section, order, advance)
            points = None
            try:
                points = load() if at is None else _copied(device, at, advance)
            finally:
                with self._changed:
                    of_key = self._sections[section, order]
                    if at is None:
                        of_key.is_coming = False
                    else:
                        at.is_giving = False
                    if points is not None:
                        of_key.holders.append(_Holder(device, points))
                    self._changed.notify_all()
            if points is not None:
                return points
            if at is not None and at.device.is_usable:
                self._set_apart(device, at.device, on_event)

    def _set_apart(self, device: CudaDevice, other: CudaDevice, on_event: OnEvent) -> None:
        with self._changed:
            self._apart.add((device, other))
        text = f"what {device.name} copies from {other.name} is not what was sent: it loads its points itself"
        on_event(Notice(level="warning", text=f"{text} (an IOMMU between cards does this: {_IOMMU})"))

    def _claim(
        self, device: CudaDevice, section: SectionName, order: tuple[int, int, int], advance: Advance
    ) -> _Holder | None:
        """A card to copy from, which gives to nobody else meanwhile; None where this one has to load."""
        with self._changed:
            of_key = self._sections.setdefault((section, order), _Section())
            while True:
                advance(0)
                usable = [
                    holder
                    for holder in of_key.holders
                    if holder.device.is_usable and (device, holder.device) not in self._apart
                ]
                for holder in usable:
                    if not holder.is_giving:
                        holder.is_giving = True
                        return holder
                if not usable and not of_key.is_coming:
                    of_key.is_coming = True
                    return None
                self._changed.wait()

    def wake(self) -> None:
        """Whoever waits asks `advance` whether to go on."""
        with self._changed:
            self._changed.notify_all()

    def leave(self, device: CudaDevice) -> None:
        """Nobody copies from that card any more; waits for copies that are under way."""
        with self._changed:
            leaving = [
                holder
                for of_key in self._sections.values()
                for holder in of_key.holders
                if holder.device is device
            ]
            for of_key in self._sections.values():
                of_key.holders = [holder for holder in of_key.holders if holder not in leaving]
            self._apart = {pair for pair in self._apart if device not in pair}
            self._changed.wait_for(lambda: not any(holder.is_giving for holder in leaving))
            self._changed.notify_all()


def _copied(device: CudaDevice, holder: _Holder, advance: Advance) -> GpuPoints | None:
    """None when the holder's card fails meanwhile, and when something else arrives than was sent."""
    points, copied = GpuPoints(device, holder.points.form, holder.points.count), 0
    try:
        try:
            with closing(_copy_in_parts(device, holder, points)) as parts:
                for rows in parts:
                    copied += len(rows)
                    advance(len(rows))
        except DeviceFault:
            if holder.device.is_usable:
                raise
        if copied == points.count and holder.device.is_usable:
            return points
        advance(-copied)
    except BaseException:
        points.close()
        raise
    points.close()
    return None


def _copy_in_parts(device: CudaDevice, holder: _Holder, points: GpuPoints) -> Generator[range, None, None]:
    """The rows of each part that is there, until one is not what was sent."""
    pairs = ((holder.points.x, points.x), (holder.points.y, points.y))
    with device.new_stream() as stream, holder.device.new_stream() as of_holder:  # cards may be at work

        def arrived(row: int) -> bool:
            return all(
                np.array_equal(
                    holder.device.download(given.rows(row, row + 1), stream=of_holder),
                    device.download(taken.rows(row, row + 1), stream=stream),
                )
                for given, taken in pairs
            )

        for first in range(0, points.count, COPIED_AT_ONCE):
            rows = range(first, min(first + COPIED_AT_ONCE, points.count))
            for given, taken in pairs:
                part = taken.rows(rows.start, rows.stop)
                device.copy_from(holder.device, given.rows(rows.start, rows.stop), part, stream=stream)
            stream.synchronise()
            last = len(rows) - 1
            if not all(arrived(rows[k * last // (_COMPARED_ROWS - 1)]) for k in range(_COMPARED_ROWS)):
                return
            yield rows
