"""Transforms and the quotient on a GPU against the CPU's, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.fr_vector import from_integers
from cuzk.kernels.gpu.ntt import NttPlan, quotient
from cuzk.kernels.modulus import FR, FR_GENERATOR
from cuzk.kernels.ntt import Transform, intt, to_coset, transform
from cuzk.kernels.ntt import quotient as quotient_on_cpu
from cuzk.kernels.ntt_cpu import Words

R = FR.p
SIZES = [0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 15, 18, 19]
SHIFT_BACK = pow(FR_GENERATOR, -1, R)


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice()


@pytest.fixture(params=SIZES, ids=lambda log2_n: f"2^{log2_n}")
def plan(request: pytest.FixtureRequest, device: CudaDevice) -> Iterator[NttPlan]:
    with NttPlan(device, request.param) as made:
        yield made


def values(n: int, seed: int) -> Words:
    """Uniform, with edges at the front."""
    words = np.random.default_rng(seed).integers(0, 2**64, (n, 4), np.uint64)
    words[:, 3] >>= np.uint64(2)
    edges = from_integers([0, R - 1, 1][:n])
    words[: len(edges)] = edges
    return words


def natural(plan: NttPlan, vector: DeviceArray) -> Words:
    rows = np.empty(vector.shape, np.uint64)
    rows[plan.schedule.coefficients_at(np.arange(plan.n))] = plan.device.download(vector)
    return rows


def test_the_inverse_gives_the_coefficients(plan: NttPlan, cpu: CpuDevice) -> None:
    given = values(plan.n, 1)
    expected = given.copy()
    intt(cpu, expected)
    with plan.device.upload(given) as vector, plan.device.allocate((plan.n, 4), np.uint64) as ordered:
        plan.intt(vector)
        plan.to_natural_order(vector, ordered)
        assert np.array_equal(natural(plan, vector), expected)
        assert np.array_equal(plan.device.download(ordered), expected)


def test_coefficients_give_values_on_domain_and_coset(plan: NttPlan, cpu: CpuDevice) -> None:
    given = values(plan.n, 2)
    on_coset = given.copy()
    to_coset(cpu, on_coset)
    with plan.device.upload(given) as vector:
        plan.intt(vector)
        plan.ntt(vector)
        assert np.array_equal(plan.device.download(vector), given)
        plan.intt(vector)
        plan.run(Transform(plan.log2_n, inverse=False, shift=FR_GENERATOR), vector)
        assert np.array_equal(plan.device.download(vector), on_coset)


def test_products_and_differences_are_part_of_a_transform(plan: NttPlan, cpu: CpuDevice) -> None:
    a, b, c = (values(plan.n, seed) for seed in (3, 4, 5))
    kind, expected = Transform(plan.log2_n, inverse=True, scale=5, shift=SHIFT_BACK), a.copy()
    with ExitStack() as held:
        x, y, z, target = (held.enter_context(plan.device.upload(vector)) for vector in (a, b, c, a))
        transform(cpu, kind, expected, times=b, minus=natural(plan, z))
        plan.run(kind, x, times=y, minus=z, target=target)
        assert np.array_equal(natural(plan, target), expected)
        assert np.array_equal(plan.device.download(x), a)


@pytest.mark.parametrize("c_is_given", [False, True])
def test_the_quotient_is_the_cpus(plan: NttPlan, cpu: CpuDevice, c_is_given: bool) -> None:
    a, b, c = (values(plan.n, seed) for seed in (6, 7, 8))
    expected = quotient_on_cpu(cpu, a.copy(), b.copy(), c.copy() if c_is_given else None)
    with ExitStack() as held:
        x, y, z = (held.enter_context(plan.device.upload(vector)) for vector in (a, b, c))
        h = quotient(plan, x, y, z if c_is_given else None)
        assert np.array_equal(natural(plan, h)[:-1], expected)


@pytest.mark.parametrize(("log2_n", "count"), [(3, 5), (6, 7), (12, 3)])
def test_a_batch_is_its_transforms_one_by_one(device: CudaDevice, log2_n: int, count: int) -> None:
    given = values(count << log2_n, 9)
    with NttPlan(device, log2_n) as plan, device.upload(given) as together, device.upload(given) as apart:
        for kind in (Transform(log2_n, True, 5, FR_GENERATOR), Transform(log2_n, False)):
            plan.run(kind, together)
            for i in range(count):
                plan.run(kind, apart.rows(i << log2_n, (i + 1) << log2_n))
            assert np.array_equal(device.download(together), device.download(apart))
