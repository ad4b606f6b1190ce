"""Sums over sections whose points do not stay on the card: slice by slice, one used, the next on its way.

Place      two arrays of a slice: `incoming`, which a thread of its own fills, and `points`, which all sums
           read; a copy within the card from one to the other takes a hundredth of the transfer
Padding    the last slice is short: the scalars of the rest are zero, its points left over from before
Full       where few points meet full scalars they are collected once, in a pass of their own, and stay
Cost       a section's bytes over the bus, each proof; 47 GB for sectors of 32 GiB
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.events import Progress
from cuzk.groth16.gpu.card_clock import CardClock
from cuzk.groth16.gpu.card_plan import SectionPlan
from cuzk.groth16.gpu.full_scalars import FullScalars
from cuzk.groth16.gpu.points_on_card import PointSource
from cuzk.groth16.gpu.synthesis import SectionScalars
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.device.keeper import Keeper
from cuzk.kernels.gpu.msm import GpuMsm
from cuzk.kernels.gpu.points import GpuPoints, gather_into
from cuzk.kernels.gpu.selected_sum import GpuSelectedSum
from cuzk.kernels.gpu.selection import THREADS, take_reversed
from cuzk.kernels.gpu.subset_sums import random_subset_sums
from cuzk.kernels.gpu.sum_schedule import selected_plan
from cuzk.kernels.xyzz import curve_of


class PassingPoints(Keeper):
    """A section's points, a slice of the plan at a time in `points`.

    clock  measures what the card does with them, and its copies
    """

    def __init__(self, device: CudaDevice, source: PointSource, plan: SectionPlan, clock: CardClock) -> None:
        super().__init__()
        assert plan.slice_points is not None
        self.device, self.plan, self._clock = device, plan, clock
        self.at_once = min(plan.slice_points, plan.points)
        try:
            self._reader = self.keep(source.reader(device, plan.section, self.at_once))
            self.points = self.keep(GpuPoints(device, plan.form, self.at_once))
            self._incoming = self.keep(GpuPoints(device, plan.form, self.at_once))
        except BaseException:
            self.close()
            raise

    def slices(self, progress: Progress | None = None) -> Iterator[tuple[int, int]]:
        """(first, count) of each slice while its points are there; sums must be over at the next step.

        Whoever takes no more of them waits for no more than a chunk of the next.
        """
        device, total = self.device, self.plan.points
        firsts, is_over = range(0, total, self.at_once), threading.Event()
        with ThreadPoolExecutor(1, "cuzk slices") as loader:
            try:
                coming = loader.submit(self._read, firsts[0], is_over)
                for number, first in enumerate(firsts):
                    count = coming.result()
                    with self.running():
                        device.copy(self._incoming.x, self.points.x)
                        device.copy(self._incoming.y, self.points.y)
                        device.stream.synchronise()
                        if number + 1 < len(firsts):
                            coming = loader.submit(self._read, firsts[number + 1], is_over)
                        yield first, count
                    if progress is not None:
                        progress(first + count, total)
            finally:
                is_over.set()

    def running(self) -> AbstractContextManager[None]:
        """Around what the card does for the section."""
        return self._clock.running(f"sum {self.plan.section}", self.device.stream)

    def _read(self, first: int, is_over: threading.Event) -> int:
        def advance(points: int) -> None:
            if is_over.is_set():
                raise CancelledError("nobody waits for the points")

        count = min(self.at_once, self.plan.points - first)
        self._reader.read(first, count, self._incoming, advance)
        return count

    def subset_sums(self, workspace: DeviceArray, progress: Progress) -> list[Any]:
        """Sums of random subsets of every slice: `gpu.subset_sums.random_subset_sums`."""
        sums = []
        for _, count in self.slices(progress):
            plan = selected_plan(self.plan.form, count)
            with GpuSelectedSum(
                self.device, self.plan.form, self.points.x, self.points.y, plan, workspace
            ) as selected:
                sums += random_subset_sums(self.device, selected, count)
        return sums


class StreamedSection(Keeper):
    """The sum over a section with bits and full scalars; resident twin: `sums.BitsAndFull`."""

    def __init__(
        self,
        device: CudaDevice,
        source: PointSource,
        plan: SectionPlan,
        workspace: DeviceArray,
        clock: CardClock,
    ) -> None:
        super().__init__()
        self._device, self._plan, self._workspace = device, plan, workspace
        self._scalars: SectionScalars | None = None
        try:
            self.passing = self.keep(PassingPoints(device, source, plan, clock))
            self._sums_of_slices()
        except BaseException:
            self.close()
            raise

    def _sums_of_slices(self) -> None:
        """Over the bits of a slice; and over its full scalars, unless they are few."""
        device, plan, passing = self._device, self._plan, self.passing
        assert plan.selected is not None
        axes = passing.points.x, passing.points.y
        self._bits = self.keep(device.allocate(passing.at_once, np.uint8))
        self._selected = self.keep(GpuSelectedSum(device, plan.form, *axes, plan.selected, self._workspace))
        if plan.all_full:
            self._full = self.keep(device.allocate((passing.at_once, 4), np.uint64))
            self._msm = self.keep(GpuMsm(device, plan.form, *axes, plan.msm, self._workspace))
        else:
            self._few = self.keep(FullScalars(device, plan, self._workspace, self._collected))

    def ready(self, scalars: SectionScalars) -> None:
        """Collect the points that meet few full scalars."""
        if scalars.full_index is not None:
            self._few.over(scalars.full_index)

    def begin(self, scalars: SectionScalars) -> None:
        """Nothing is submitted yet: slices need the host."""
        self._scalars = scalars

    def collect(self, progress: Progress) -> Callable[[], Any]:
        """Computes the sum. What comes back gives it: affine, plain integers, None for the identity."""
        assert self._scalars is not None, "begin comes first"
        curve, scalars, total = curve_of(self._plan.form), self._scalars, None
        few = None if scalars.full_index is None else self._few.over(scalars.full_index)
        for first, count in self.passing.slices(progress):
            self._pass(scalars.bits, first, count, self._bits)
            total = curve.add(total, self._selected.run(self._bits))
            if few is None:
                self._pass(scalars.full_scalars, first, count, self._full)
                total = curve.add(total, self._msm.run(self._full))
        if few is not None:
            with self.passing.running():
                total = curve.add(total, few.run(scalars.full_scalars))
        return lambda: total

    def _pass(self, scalars: DeviceArray, first: int, count: int, into: DeviceArray) -> None:
        """Those of a slice, and 0 behind the last."""
        self._device.copy(scalars.rows(first, first + count), into.rows(0, count))
        self._device.clear(into.rows(count, into.shape[0]))

    def _collected(self, index: NDArray[np.uint32]) -> GpuPoints:
        """The points of these numbers, by a pass over all."""
        chosen = GpuPoints(self._device, self._plan.form, len(index))
        try:
            for first, count in self.passing.slices():
                low, high = (int(place) for place in np.searchsorted(index, [first, first + count]))
                part = index[low:high] - np.uint32(first)
                gather_into(self._device, self.passing.points, part, chosen, low, self._workspace)
        except BaseException:
            chosen.close()
            raise
        return chosen


class StreamedMsm(Keeper):
    """The sum of h_i times point i of section h, whose coefficients lie in reversed digits; resident twin:
    `sums.ResidentMsm`.
    """

    def __init__(
        self,
        device: CudaDevice,
        source: PointSource,
        plan: SectionPlan,
        order: tuple[int, int, int],
        workspace: DeviceArray,
        clock: CardClock,
    ) -> None:
        super().__init__()
        self._device, self._plan, self._order = device, plan, order
        try:
            self.passing = self.keep(PassingPoints(device, source, plan, clock))
            self._scalars = self.keep(device.allocate((self.passing.at_once, 4), np.uint64))
            points = self.passing.points
            self._msm = self.keep(GpuMsm(device, plan.form, points.x, points.y, plan.msm, workspace))
        except BaseException:
            self.close()
            raise

    def run(self, h: DeviceArray, progress: Progress) -> Callable[[], Any]:
        """What comes back gives the sum: affine, plain integers, None for the identity.

        h  (m, 4), or without its last row
        """
        device, curve, room = self._device, curve_of(self._plan.form), self.passing.at_once
        values, scalars = (array.carve(8 * array.shape[0], np.uint32) for array in (h, self._scalars))
        total = None
        for first, count in self.passing.slices(progress):
            device.launch(
                take_reversed, -(-room // THREADS), THREADS,
                values, first, count, room, *self._order, scalars,
            )  # fmt: skip
            total = curve.add(total, self._msm.run(self._scalars))
        return lambda: total
