"""A card's kernels, family by family, against plain integers: for `cuzk doctor`, in about a second.

Multiples of the generators are made, encoded and decoded again, so that their logarithms are known: then each
sum is one multiple of the generator. Transforms have the size of the smallest proof.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.gpu.fixed_base import GpuFixedBase
from cuzk.kernels.gpu.msm import GpuMsm, workspace_bytes
from cuzk.kernels.gpu.ntt import NttPlan
from cuzk.kernels.gpu.points import GpuPoints, decode_to_gpu
from cuzk.kernels.gpu.selected_sum import GpuSelectedSum
from cuzk.kernels.gpu.sum_plan import msm_plan
from cuzk.kernels.gpu.sum_schedule import Form, selected_layout, selected_plan
from cuzk.kernels.modulus import FR, omega
from cuzk.kernels.points import BadPoint
from cuzk.kernels.xyzz import curve_of

R = FR.p
TRANSFORM_LOG2 = 22
POINTS = 20_011
_BIN_BITS = 10  # so that so few points take the staged sort, too
_SAMPLES = 8

Check = tuple[str, bool]


def self_test(device: CudaDevice) -> Iterator[Check]:
    """Each family's name, and whether its kernels computed what they should. Raises what the card raises."""
    rng = random.Random()
    yield "transforms", _transforms(device, rng)
    for form in (FQ_GPU, FQ2_GPU):
        yield from _points_and_sums(device, form, rng)


def _transforms(device: CudaDevice, rng: random.Random) -> bool:
    """Of a vector with few values that are not 0: coefficients by their sums, and the same values again."""
    n = 1 << TRANSFORM_LOG2
    values = np.zeros((n, 4), np.uint64)
    places = sorted(rng.sample(range(n), _SAMPLES))
    numbers = [rng.randrange(R) for _ in places]
    values[places] = from_integers(numbers)
    inverse = pow(omega(TRANSFORM_LOG2), -1, R)
    with NttPlan(device, TRANSFORM_LOG2) as plan, device.upload(values) as vector:
        plan.intt(vector)
        rows = np.array([0, n - 1, *rng.sample(range(n), _SAMPLES)])
        got = to_integers(
            np.concatenate([device.download(vector.rows(row, row + 1)) for row in rows.tolist()])
        )
        wanted = [
            pow(n, -1, R) * sum(x * pow(inverse, k * j, R) for x, j in zip(numbers, places, strict=True)) % R
            for k in plan.schedule.coefficients_at(rows).tolist()
        ]
        plan.ntt(vector)
        return got == wanted and np.array_equal(device.download(vector), values)


def _points_and_sums(device: CudaDevice, form: Form, rng: random.Random) -> Iterator[Check]:
    curve, group = curve_of(form), f"G{form.degree}"
    logarithms = [rng.randrange(1, R) for _ in range(POINTS - 2)]
    logarithms += [logarithms[0], R - logarithms[0]]  # a doubling and opposite points
    with closing(GpuFixedBase(device, form, POINTS, POINTS)) as base:
        encoded = base.encoded(from_integers(logarithms)).copy()
    points = decode_to_gpu(device, form, encoded)
    encoded[POINTS // 2, -1] ^= 1  # off the curve
    found = decode_to_gpu(device, form, encoded)
    is_caught = isinstance(found, BadPoint) and found.index == POINTS // 2
    if isinstance(found, GpuPoints):
        found.close()
    yield f"multiples and points, {group}", is_caught and isinstance(points, GpuPoints)
    if not isinstance(points, GpuPoints):
        return

    def multiple(total: int) -> Any:
        return curve.multiply(total % R, curve.generator)

    with closing(points):
        scalars = [rng.randrange(R) for _ in range(POINTS - 3)] + [0, 1, R - 1]
        wanted = multiple(sum(k * x for k, x in zip(scalars, logarithms, strict=True)))
        sums = [_msm(device, points, from_integers(scalars), bins) for bins in (None, _BIN_BITS)]
        yield f"multi-scalar multiplication, {group}", sums == [wanted, wanted]
        bits = [rng.randrange(2) for _ in range(POINTS)]
        total = sum(x for x, bit in zip(logarithms, bits, strict=True) if bit)
        yield (
            f"sums over bits, {group}",
            _selected(device, points, np.array(bits, np.uint8)) == multiple(total),
        )


def _msm(device: CudaDevice, points: GpuPoints, scalars: NDArray[np.uint64], bins: int | None) -> Any:
    plan = replace(msm_plan(points.form, points.count, device.card), bin_bits=bins)
    with (
        device.allocate(workspace_bytes(device, points.form, plan), np.uint8) as workspace,
        device.upload(scalars) as held,
        GpuMsm(device, points.form, points.x, points.y, plan, workspace) as msm,
    ):
        return msm.run(held)


def _selected(device: CudaDevice, points: GpuPoints, bits: NDArray[np.uint8]) -> Any:
    plan = selected_plan(points.form, points.count)
    layout = selected_layout(points.form, plan, device.card.multiprocessors)
    with (
        device.allocate(layout.nbytes, np.uint8) as workspace,
        device.upload(bits) as held,
        GpuSelectedSum(device, points.form, points.x, points.y, plan, workspace) as selected,
    ):
        return selected.run(held)
