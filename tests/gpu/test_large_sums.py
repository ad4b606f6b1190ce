"""Sums of as many points as a proof of 32 GiB has, on a GPU, against one multiple of the generator."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from bench.gpu_msm import dot, multiples, random_scalars
from cuzk.kernels.curve import G1
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.field_type import FQ_GPU
from cuzk.kernels.gpu.msm import GpuMsm, workspace_bytes
from cuzk.kernels.gpu.selected_sum import GpuSelectedSum
from cuzk.kernels.gpu.sum_plan import msm_plan
from cuzk.kernels.gpu.sum_schedule import points_bytes, selected_layout, selected_plan
from cuzk.kernels.modulus import FR
from cuzk.units import format_size

pytestmark = pytest.mark.slow
COUNT = (1 << 27) - 1


@pytest.fixture(scope="module")
def points(device: CudaDevice) -> Iterator[tuple[DeviceArray, DeviceArray]]:
    """G, 2G, ..., COUNT * G."""
    require(device, points_bytes(FQ_GPU, COUNT))
    x, y = multiples(device, FQ_GPU, COUNT)
    with x, y:
        yield x, y


def require(device: CudaDevice, nbytes: int) -> None:
    if nbytes > device.free_memory():
        pytest.skip(f"{format_size(device.free_memory())} free on this GPU, {format_size(nbytes)} needed")


def test_points_that_half_the_bits_select(device: CudaDevice, points: Any) -> None:
    plan = selected_plan(FQ_GPU, COUNT)
    nbytes = selected_layout(FQ_GPU, plan, device.card.multiprocessors).nbytes
    require(device, nbytes + COUNT)
    bits = np.random.default_rng(1).integers(0, 2, COUNT, np.uint8)
    total = int((np.flatnonzero(bits).astype(np.int64) + 1).sum())
    with (
        device.allocate(nbytes, np.uint8) as workspace,
        device.upload(bits) as there,
        GpuSelectedSum(device, FQ_GPU, points[0], points[1], plan, workspace) as selected,
    ):
        assert selected.run(there) == G1.multiply(total % FR.p, G1.generator)


@pytest.mark.parametrize("windows_a_pass", [1, 4])
def test_points_times_uniform_scalars(device: CudaDevice, points: Any, windows_a_pass: int) -> None:
    plan = msm_plan(FQ_GPU, COUNT, windows_a_pass=windows_a_pass)
    scalars = random_scalars(COUNT)
    require(device, workspace_bytes(device, FQ_GPU, plan) + scalars.nbytes)
    with (
        device.allocate(workspace_bytes(device, FQ_GPU, plan), np.uint8) as workspace,
        device.upload(scalars) as there,
        GpuMsm(device, FQ_GPU, points[0], points[1], plan, workspace) as msm,
    ):
        assert msm.run(there) == G1.multiply(dot(scalars), G1.generator)
