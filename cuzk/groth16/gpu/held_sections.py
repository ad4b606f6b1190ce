"""Sections of points that several cards hold in the same rows: one loads them, the others copy them from it.

Reading is bound by the host's memory, some 20 GB/s for all cards together; between two cards NVLink moves ten
times that. A card gives a section to one other at a time, and whoever has it gives it on: eight cards have it
after three rounds. Each section goes its own way, so that one is copied while the next is loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from cuzk.groth16.parameters.params_file import SectionName
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu.points import Advance, GpuPoints

#: Points of one copy, the unit of progress and of giving up: 1.6 GB in G1.
COPIED_AT_ONCE = 1 << 24
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

    def on_card(
        self,
        device: CudaDevice,
        section: SectionName,
        order: tuple[int, int, int],
        load: Callable[[], GpuPoints],
        advance: Advance,
    ) -> GpuPoints:
        """The points of a section in rows of that order, copied from a card that has them, or else loaded.

        load     raises what it likes; then the next card that wants them tries
        advance  is told of points that are copied, of none while the card waits, of so many less where it was
                 in vain; may raise, which ends it
        The points must not change until `leave`.
        """
        while True:
            at = self._claim(section, order, advance)
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

    def _claim(self, section: SectionName, order: tuple[int, int, int], advance: Advance) -> _Holder | None:
        """A card to copy from, which gives to nobody else meanwhile; None where this one has to load."""
        with self._changed:
            of_key = self._sections.setdefault((section, order), _Section())
            while True:
                advance(0)
                usable = [holder for holder in of_key.holders if holder.device.is_usable]
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
            self._changed.wait_for(lambda: not any(holder.is_giving for holder in leaving))
            self._changed.notify_all()


def _copied(device: CudaDevice, holder: _Holder, advance: Advance) -> GpuPoints | None:
    """None when the holder's card fails meanwhile: what it gave may be anything."""
    source, done = holder.points, 0
    points = GpuPoints(device, source.form, source.count)
    try:
        with device.new_stream() as stream:
            while holder.device.is_usable and done < source.count:
                end = min(done + COPIED_AT_ONCE, source.count)
                for given, taken in ((source.x, points.x), (source.y, points.y)):
                    device.copy_from(
                        holder.device, given.rows(done, end), taken.rows(done, end), stream=stream
                    )
                stream.synchronise()
                advance(end - done)
                done = end
        if holder.device.is_usable:
            return points
        advance(-done)
    except BaseException:
        points.close()
        raise
    points.close()
    return None
