"""Multi-scalar multiplications on a GPU against multiples of the generator by textbook."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.field_type import FQ_GPU
from cuzk.kernels.gpu.msm import GpuMsm, workspace_bytes
from cuzk.kernels.gpu.selected_sum import GpuSelectedSum
from cuzk.kernels.gpu.sum_plan import msm_plan
from cuzk.kernels.gpu.sum_schedule import GpuPlan, selected_layout, selected_plan
from cuzk.kernels.modulus import FR
from cuzk.kernels.xyzz import curve_of
from tests.gpu.known_points import GROUPS, known_points, uploaded
from tests.kernels.multiples import scalar_rows

R = FR.p
EDGES = [0, 1, 2, R - 1, R - 2, (R - 1) // 2, (R + 1) // 2, 1 << 254]
SCALARS: dict[str, Callable[[random.Random], int]] = {
    "uniform": lambda rng: rng.randrange(R),
    "all 0": lambda rng: 0,
    "all 1": lambda rng: 1,
    "all r-1": lambda rng: R - 1,
    "edges": lambda rng: rng.choice(EDGES),
    "few distinct": lambda rng: rng.choice([3, R // 3, R // 5]),
}
#: Points; windows, those of a pass, bits of a bin of the staged sort, where not the plan's own.
SHAPES: list[tuple[int, dict[str, int]]] = [
    *((n, {}) for n in (0, 1, 2, 3, 33, 257)),
    (1000, {"windows": 37}),
    (1000, {"windows": 20}),
    (1000, {"windows": 20, "bin_bits": 9}),
    (3001, {"windows": 26, "bin_bits": 8, "windows_a_pass": 9}),
    (20_001, {"windows": 22, "bin_bits": 10}),
    (20_001, {"windows": 17, "bin_bits": 13}),
    (20_001, {"windows": 14, "bin_bits": 14, "windows_a_pass": 5}),
]


def shape_name(shape: tuple[int, dict[str, int]]) -> str:
    n, changes = shape
    return ", ".join([f"n {n}", *(f"{name} {value}" for name, value in changes.items())])


def planned(form: Any, n: int, *, bin_bits: int | None = None, **choices: int) -> GpuPlan:
    """Without `bin_bits` the simple sort, which the plan chooses for so few points by itself."""
    made = msm_plan(form, n, **choices)
    assert made.bin_bits is None
    return replace(made, bin_bits=bin_bits)


def check(device: CudaDevice, form: Any, made: GpuPlan, which: list[int], scalars: list[int]) -> None:
    """Twice as graphs, the second time in what the first left behind; once launch by launch."""
    curve, known = curve_of(form), known_points(form)
    total = sum(k * known[i][0] for k, i in zip(scalars, which, strict=True))
    expected = curve.multiply(total % R, curve.generator)
    with (
        uploaded(device, form, [known[i][1] for i in which]) as points,
        device.upload(scalar_rows(scalars)) as vector,
        device.allocate(workspace_bytes(device, form, made), np.uint8) as workspace,
        GpuMsm(device, form, *points, made, workspace) as msm,
        GpuMsm(device, form, *points, made, workspace, use_graphs=False) as plain,
    ):
        assert msm.run(vector) == expected
        assert msm.run(vector) == expected
        assert plain.run(vector) == expected


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize("shape", SHAPES, ids=shape_name)
@pytest.mark.parametrize("scalars", SCALARS)
def test_any_scalars_times_points_of_all_kinds(
    device: CudaDevice, form: Any, shape: tuple[int, dict[str, int]], scalars: str
) -> None:
    """Repeated points, opposite ones and identities meet in buckets."""
    n, choices = shape
    rng = random.Random(n)
    which = [rng.randrange(len(known_points(form))) for _ in range(n)]
    check(device, form, planned(form, n, **choices), which, [SCALARS[scalars](rng) for _ in range(n)])


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize("bin_bits", [None, 9])
@pytest.mark.parametrize("scalars", SCALARS)
def test_one_point_repeated_is_doubled_everywhere(
    device: CudaDevice, form: Any, bin_bits: int | None, scalars: str
) -> None:
    rng, n = random.Random(2), 1000
    made = planned(form, n, windows=20, bin_bits=bin_bits)
    check(device, form, made, [3] * n, [SCALARS[scalars](rng) for _ in range(n)])


@pytest.mark.parametrize("form", GROUPS)
def test_identities_alone_sum_to_the_identity(device: CudaDevice, form: Any) -> None:
    rng, n = random.Random(3), 257
    last = len(known_points(form)) - 1
    check(device, form, planned(form, n), [last] * n, [rng.randrange(R) for _ in range(n)])


@pytest.mark.parametrize("form", GROUPS)
def test_other_scalars_of_the_same_length_may_follow(device: CudaDevice, form: Any) -> None:
    """Graphs are recorded a vector of scalars; buckets of the one before leave nothing behind."""
    rng, n, curve, known = random.Random(4), 257, curve_of(form), known_points(form)
    which = [rng.randrange(len(known)) for _ in range(n)]
    made = planned(form, n)
    vectors = [[SCALARS[name](rng) for _ in range(n)] for name in ("all r-1", "uniform", "all 0", "uniform")]
    with (
        uploaded(device, form, [known[i][1] for i in which]) as points,
        device.allocate(workspace_bytes(device, form, made), np.uint8) as workspace,
        GpuMsm(device, form, *points, made, workspace) as msm,
    ):
        for scalars in vectors:
            total = sum(k * known[i][0] for k, i in zip(scalars, which, strict=True))
            with device.upload(scalar_rows(scalars)) as there:
                assert msm.run(there) == curve.multiply(total % R, curve.generator)


def test_between_its_parts_a_sum_lets_others_have_the_card(device: CudaDevice) -> None:
    """All that it needs lies in its own workspace; another sum with the same one waits until it is over."""
    rng, n, form, known = random.Random(6), 3001, FQ_GPU, known_points(FQ_GPU)
    which, scalars = [rng.randrange(len(known)) for _ in range(n)], [rng.randrange(R) for _ in range(n)]
    made = planned(form, n, windows=26, bin_bits=8, windows_a_pass=9)
    curve, total = curve_of(form), sum(k * known[i][0] for k, i in zip(scalars, which, strict=True))
    expected, between = curve.multiply(total % R, curve.generator), []
    with (
        uploaded(device, form, [known[i][1] for i in which]) as points,
        device.upload(scalar_rows(scalars)) as vector,
        device.allocate(workspace_bytes(device, form, made), np.uint8) as workspace,
        device.allocate(workspace_bytes(device, form, made), np.uint8) as other_workspace,
        GpuMsm(device, form, *points, made, workspace) as msm,
        GpuMsm(device, form, *points, made, other_workspace) as other,
    ):

        @contextmanager
        def another() -> Iterator[None]:
            yield
            device.stream.synchronise()
            between.append(other.run(vector))

        assert msm.is_long and msm.parts == 6
        msm.submit(vector, another)
        assert msm.collect()() == expected
        assert between == [expected] * msm.parts


@pytest.mark.parametrize("form", GROUPS)
def test_sums_of_both_kinds_take_turns_in_one_workspace(device: CudaDevice, form: Any) -> None:
    rng, n, curve, known = random.Random(5), 3000, curve_of(form), known_points(form)
    which = [rng.randrange(len(known)) for _ in range(n)]
    scalars, bits = [rng.randrange(R) for _ in range(n)], [rng.randrange(2) for _ in range(n)]
    made, over_bits = planned(form, n), selected_plan(form, n)
    expected = [
        curve.multiply(sum(k * known[i][0] for k, i in zip(factors, which, strict=True)) % R, curve.generator)
        for factors in (scalars, bits)
    ]
    nbytes = max(
        workspace_bytes(device, form, made),
        selected_layout(form, over_bits, device.card.multiprocessors).nbytes,
    )
    with (
        uploaded(device, form, [known[i][1] for i in which]) as points,
        device.upload(scalar_rows(scalars)) as numbers,
        device.upload(np.array(bits, np.uint8)) as there,
        device.allocate(nbytes, np.uint8) as workspace,
        GpuMsm(device, form, *points, made, workspace) as msm,
        GpuSelectedSum(device, form, *points, over_bits, workspace) as selected,
    ):
        for _ in range(2):
            msm.submit(numbers)
            selected.submit(there)
            assert [msm.collect()(), selected.collect()()] == expected
