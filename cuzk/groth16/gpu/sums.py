"""The sums over sections of points on a GPU, those that stay on the card and those that only pass over it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cuzk.events import Progress
from cuzk.groth16.gpu.card_clock import CardClock
from cuzk.groth16.gpu.card_plan import CardPlan, SectionPlan
from cuzk.groth16.gpu.full_scalars import FullScalars
from cuzk.groth16.gpu.points_on_card import PointSource
from cuzk.groth16.gpu.streamed import PassingPoints, StreamedMsm, StreamedSection
from cuzk.groth16.gpu.synthesis import SectionScalars
from cuzk.groth16.parameters.params_file import SECTIONS, SectionName
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.device.keeper import Keeper
from cuzk.kernels.field_type import FQ_GPU
from cuzk.kernels.gpu.msm import GpuMsm
from cuzk.kernels.gpu.points import GpuPoints, gathered
from cuzk.kernels.gpu.selected_sum import GpuSelectedSum
from cuzk.kernels.gpu.subset_sums import random_subset_sums
from cuzk.kernels.gpu.sum_schedule import selected_plan
from cuzk.kernels.xyzz import curve_of


def run_in_parts(
    msm: GpuMsm, plan: SectionPlan, clock: CardClock, scalars: DeviceArray, progress: Progress
) -> Callable[[], Any]:
    """The sum over a section on the card; the host waits after each part. What comes back gives it."""
    part = clock.in_parts(msm.device.stream, progress, parts=msm.parts, total=plan.points)
    msm.submit(scalars, partial(part, f"sum {plan.section}"))
    return msm.collect()


class ResidentMsm:
    """The sum of h_i times point i of section h, on the card; streamed twin: `streamed.StreamedMsm`."""

    def __init__(self, msm: GpuMsm, plan: SectionPlan, clock: CardClock) -> None:
        self._msm, self._plan, self._clock = msm, plan, clock

    def run(self, h: DeviceArray, progress: Progress) -> Callable[[], Any]:
        """What comes back gives the sum: affine, plain integers, None for the identity."""
        self._msm.device.stream.synchronise()  # with what was begun before
        progress(0, self._plan.points)
        return run_in_parts(self._msm, self._plan, self._clock, h, progress)


class BitsAndFull(Keeper):
    """A section on the card with bits and full scalars; `workspace` is every sum's."""

    def __init__(
        self,
        device: CudaDevice,
        plan: SectionPlan,
        points: GpuPoints,
        workspace: DeviceArray,
        clock: CardClock,
    ) -> None:
        super().__init__()
        self._device, self._plan, self._clock = device, plan, clock
        self._scalars: SectionScalars | None = None  # of the proof that has begun
        self._selected = self.keep(over_bits(device, points, workspace))
        self._full: GpuMsm | None = None  # of the proof that has begun, or always the one over all points
        if plan.all_full:
            self._full = self.keep(GpuMsm(device, plan.form, points.x, points.y, plan.msm, workspace))
        else:
            self._few = self.keep(
                FullScalars(device, plan, workspace, lambda index: gathered(device, points, index, workspace))
            )

    def ready(self, scalars: SectionScalars) -> None:
        """Collect the points that meet full scalars."""
        if scalars.full_index is not None:
            self._full = self._few.over(scalars.full_index)

    def begin(self, scalars: SectionScalars) -> None:
        """Submit both sums, but a long one, between whose parts the host waits."""
        self._scalars = scalars
        with self._clock.running(f"sum {self._plan.section}", self._device.stream):
            self._selected.submit(scalars.bits)
            self.ready(scalars)
            assert self._full is not None
            if not self._full.is_long:
                self._full.submit(scalars.full_scalars)

    def collect(self, progress: Progress) -> Callable[[], Any]:
        """Waits for both. What comes back gives their sum: affine, plain integers, None for the identity."""
        assert self._full is not None and self._scalars is not None, "begin comes first"
        selected = self._selected.collect()
        if self._full.is_long:
            full = run_in_parts(self._full, self._plan, self._clock, self._scalars.full_scalars, progress)
        else:
            full = self._full.collect()
        return lambda: curve_of(self._plan.form).add(selected(), full())


class Sums:
    """All sums of a proof, one after another in one stream, so that they share their working memory.

    points  of the resident sections
    """

    def __init__(
        self,
        device: CudaDevice,
        source: PointSource,
        plan: CardPlan,
        points: dict[SectionName, GpuPoints],
        order: tuple[int, int, int],
        clock: CardClock,
    ) -> None:
        self._device, self._points = device, points
        self.workspace = workspace = device.allocate(plan.workspace_bytes, np.uint8)
        self._streamed: dict[SectionName, PassingPoints] = {}
        self.over_h: ResidentMsm | StreamedMsm
        self.sections: dict[SectionName, BitsAndFull | StreamedSection] = {}
        of_h = plan.of_section("h")
        if "h" in points:
            msm = GpuMsm(device, FQ_GPU, points["h"].x, points["h"].y, of_h.msm, workspace)
            self.over_h = ResidentMsm(msm, of_h, clock)
        else:
            self.over_h = StreamedMsm(device, source, of_h, order, workspace, clock)
            self._streamed["h"] = self.over_h.passing
        for section, _ in SECTIONS[1:]:
            if section in points:
                held = BitsAndFull(device, plan.of_section(section), points[section], workspace, clock)
                self.sections[section] = held
            else:
                passing = StreamedSection(device, source, plan.of_section(section), workspace, clock)
                self.sections[section] = passing
                self._streamed[section] = passing.passing

    def of_random_subsets(self, section: SectionName, progress: Progress) -> list[Any]:
        """Sums of a section's points that show whether all are of order r."""
        if section in self._streamed:
            return self._streamed[section].subset_sums(self.workspace, progress)
        points = self._points[section]
        with over_bits(self._device, points, self.workspace) as selected:
            return random_subset_sums(self._device, selected, points.count)


def over_bits(device: CudaDevice, points: GpuPoints, workspace: DeviceArray) -> GpuSelectedSum:
    plan = selected_plan(points.form, points.count)
    return GpuSelectedSum(device, points.form, points.x, points.y, plan, workspace)
