"""Sums of the points that bits select, on a GPU, against multiples of the generator by textbook."""

from __future__ import annotations

import random
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu.selected_sum import SELECT_TILE, GpuSelectedSum
from cuzk.kernels.gpu.sum_schedule import selected_layout, selected_plan
from cuzk.kernels.modulus import FR
from cuzk.kernels.xyzz import curve_of
from tests.gpu.known_points import GROUPS, known_points, uploaded

#: 17 and 4097: one more than the bits of a thread, and of a tile. 40,001 are too many for the tail alone.
SIZES = [1, 2, 5, 17, 1000, SELECT_TILE + 1, 40_001]


def bits_of(kind: str, n: int) -> NDArray[np.uint8]:
    bits = np.zeros(n, np.uint8)
    if kind == "half":
        bits[:] = np.random.default_rng(n).integers(0, 2, n)
    else:
        bits[{"none": slice(0), "all": slice(n), "the last": slice(n - 1, n)}[kind]] = 1
    return bits


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["none", "half", "all", "the last"])
def test_the_selected_points_are_summed(device: CudaDevice, form: Any, n: int, kind: str) -> None:
    rng, curve, known = random.Random(n), curve_of(form), known_points(form)
    which = [rng.randrange(len(known)) for _ in range(n)]
    bits, plan = bits_of(kind, n), selected_plan(form, n)
    total = sum(known[i][0] for i, bit in zip(which, bits, strict=True) if bit)
    expected = curve.multiply(total % FR.p, curve.generator)
    nbytes = selected_layout(form, plan, device.card.multiprocessors).nbytes
    with (
        uploaded(device, form, [known[i][1] for i in which]) as points,
        device.upload(bits) as there,
        device.allocate(nbytes, np.uint8) as workspace,
        GpuSelectedSum(device, form, *points, plan, workspace) as selected,
        GpuSelectedSum(device, form, *points, plan, workspace, use_graphs=False) as plain,
    ):
        assert selected.run(there) == expected
        assert selected.run(there) == expected
        assert plain.run(there) == expected


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize("n", [1000, 40_001])
def test_one_point_repeated_is_doubled_everywhere(device: CudaDevice, form: Any, n: int) -> None:
    curve, (logarithm, point) = curve_of(form), known_points(form)[3]
    plan = selected_plan(form, n)
    nbytes = selected_layout(form, plan, device.card.multiprocessors).nbytes
    with (
        uploaded(device, form, [point] * n) as points,
        device.upload(np.ones(n, np.uint8)) as there,
        device.allocate(nbytes, np.uint8) as workspace,
        GpuSelectedSum(device, form, *points, plan, workspace) as selected,
    ):
        total = selected.run(there)
    assert total == curve.multiply(n * logarithm % FR.p, curve.generator)
