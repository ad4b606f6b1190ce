"""The sum over the few points of a section whose scalars are full, all others being bits, on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cuzk.groth16.gpu.card_plan import SectionPlan
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.device.keeper import Keeper
from cuzk.kernels.gpu.msm import GpuMsm
from cuzk.kernels.gpu.points import GpuPoints


class FullScalars(Keeper):
    """Has its points collected once: every proof of a circuit has the same.

    workspace  every sum's
    collect    gives the points of these numbers, (k,) uint32 ascending, one after another
    """

    def __init__(
        self,
        device: CudaDevice,
        plan: SectionPlan,
        workspace: DeviceArray,
        collect: Callable[[NDArray[np.uint32]], GpuPoints],
    ) -> None:
        super().__init__()
        self._device, self._plan, self._workspace, self._collect = device, plan, workspace, collect
        self._index = np.empty(0, np.uint32)
        self._msm: GpuMsm | None = None

    def over(self, index: NDArray[np.uint32]) -> GpuMsm:
        """The sum over the points of these numbers."""
        if self._msm is not None and np.array_equal(index, self._index):
            return self._msm
        self.close()
        points = self.keep(self._collect(index))
        self._msm = self.keep(
            GpuMsm(self._device, self._plan.form, points.x, points.y, self._plan.msm, self._workspace)
        )
        self._index = index
        return self._msm
