"""Multiples of the generators on a GPU against the textbook and the CPU's; parameters against upstream's."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.errors import ResourceError
from cuzk.groth16.generate import generate
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.fixed_base import FixedBase
from cuzk.kernels.gpu.fixed_base import GpuFixedBase
from cuzk.kernels.gpu.points import NATURAL_ORDER, GpuPoints, decode_to_gpu, row_of
from cuzk.kernels.modulus import FR
from cuzk.kernels.xyzz import curve_of
from cuzk.parameters import generate_parameters
from tests.gpu.known_points import GROUPS
from tests.kernels.multiples import scalar_rows, to_oracle
from tests.kernels.point_values import encode_point
from tests.toy_circuit import toy_circuit

R = FR.p
#: Of these many scalars, the table has windows of 4, 5, 10 and 16 bits.
PLANNED = (1, 100, 5_000, 10_000_000)
TOY_SHA256 = "64aa6dc30f12ca413c0ffd6bd8ba2f687ef5ac3e3fb13a8a7f59c80584b0e7fc"


@contextmanager
def multiples(device: CudaDevice, form: Any, count: int, most: int) -> Iterator[GpuFixedBase]:
    base = GpuFixedBase(device, form, count, most)
    try:
        yield base
    finally:
        base.close()


def edges(bits: int) -> list[int]:
    """Digits that are all 0, all 1, all ones; one bit alone, where digits and words meet."""
    whole = 254 // bits
    values = [1, 2, 3, R - 1, R - 2, (R - 1) // 2, (1 << 254) - 1, 1 << 254]
    values += [sum(digit << (bits * w) for w in range(whole)) for digit in (1, (1 << bits) - 1)]
    return values + [1 << k for k in (bits - 1, bits, 63, 64, 65, 127, 128, 191, 192)]


def random_scalars(n: int) -> np.ndarray[Any, Any]:
    words = np.random.default_rng(n).integers(1, 2**64, (n, 4), np.uint64)
    words[:, 3] %= np.uint64(R >> 192)
    return words


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize("planned", PLANNED)
def test_multiples_by_edge_scalars_are_the_textbooks(device: CudaDevice, form: Any, planned: int) -> None:
    curve = curve_of(form)
    with multiples(device, form, planned, 64) as base:
        values = edges(base.bits)
        encoded = base.encoded(scalar_rows(values))
        for value, got in zip(values, encoded, strict=True):
            want = encode_point(to_oracle(curve.multiply(value, curve.generator)))
            assert got.tobytes() == want, hex(value)


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize("n", [1, 127, 128, 129, 4_099])
def test_thousands_of_multiples_are_the_cpus(device: CudaDevice, form: Any, n: int) -> None:
    host, scalars = CpuDevice(), random_scalars(n)
    want = FixedBase(host, host.g1 if form.degree == 1 else host.g2, n).encoded(scalars)
    with multiples(device, form, n, n) as base:
        assert np.array_equal(base.encoded(scalars), want)


def test_encodings_hold_until_the_call_after_the_next(device: CudaDevice) -> None:
    form = GROUPS[0].values[0]
    rng = random.Random(2)
    first, second = ([rng.randrange(1, R) for _ in range(n)] for n in (50, 20))
    with multiples(device, form, 100, 50) as base:
        kept = base.encoded(scalar_rows(first))
        before = kept.copy()
        base.encoded(scalar_rows(second))
        assert np.array_equal(kept, before)
        assert np.array_equal(base.encoded(scalar_rows(first)), before)


def test_points_are_made_while_sums_are_recorded(device: CudaDevice) -> None:
    """Sections that are computed pass over the card so: one thread makes the next slice, another sums."""
    form, scalars = GROUPS[0].values[0], scalar_rows([1, 5, R - 1])
    made: list[Any] = []
    with (
        multiples(device, form, 100, 50) as base,
        device.allocate(64, np.uint8) as array,
        ThreadPoolExecutor(1) as another,
    ):
        want = base.encoded(scalars).copy()

        def submit() -> None:
            device.clear(array)
            made.append(another.submit(base.encoded, scalars).result().copy())
            device.clear(array)

        device.record(submit).close()
    assert np.array_equal(made[0], want)


@pytest.mark.parametrize("form", GROUPS)
def test_a_scalar_of_zero_is_refused_wherever_it_stands(device: CudaDevice, form: Any) -> None:
    with multiples(device, form, 10, 300) as base:
        for values in ([0], [5, 0, 7], [*range(1, 300), 0]):
            with pytest.raises(AssertionError, match="is 0"):
                base.encoded(scalar_rows(values))
        assert len(base.encoded(scalar_rows([5, 7]))) == 2


def test_a_host_that_pins_no_memory_leaves_none_of_the_card_behind(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = device.memory.used_bytes

    def refuse(*_: object) -> None:
        raise ResourceError("no memory to pin")

    with monkeypatch.context() as patch, pytest.raises(ResourceError, match="no memory to pin"):
        patch.setattr(device, "pinned", refuse)
        GpuFixedBase(device, GROUPS[0].values[0], 100, 50)
    assert device.memory.used_bytes == used


def test_parameters_of_the_toy_circuit_are_upstreams(device: CudaDevice, tmp_path: Path) -> None:
    path = generate(
        CpuDevice(), toy_circuit(), Trapdoors.of([2, 3, 5, 7, 11]), gpu=device,
        folder=tmp_path, stem="toy", sector_bytes=0, given=False,
    )  # fmt: skip
    assert hashlib.sha256(path.read_bytes()).hexdigest() == TOY_SHA256
    assert device.memory.used_bytes == 0


def test_parameters_of_2_kib_are_upstreams(
    device: CudaDevice, own_home: Path, vectors: Path, tmp_path: Path
) -> None:
    known = json.loads((vectors / "porep" / "vectors.json").read_text(encoding="utf-8"))
    trapdoors = [known["trapdoors"][name] for name in ("alpha", "beta", "gamma", "delta", "tau")]
    path, vk, _ = generate_parameters(2048, trapdoors=trapdoors, out=tmp_path, device=device.name)
    whole = np.memmap(path, np.uint8, "r")
    assert hashlib.sha256(whole).hexdigest() == known["params_2k"]["params_sha256"]
    assert hashlib.sha256(vk.read_bytes()).hexdigest() == known["params_2k"]["vk_sha256"]
    path.unlink()


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize(("n", "order"), [(129, NATURAL_ORDER), (64, (2, 3, 1)), (63, (1, 5, 0))])
def test_multiples_put_on_the_card_are_what_their_encodings_decode_to(
    device: CudaDevice, form: Any, n: int, order: tuple[int, int, int]
) -> None:
    scalars = random_scalars(n)
    with multiples(device, form, n, 50) as base:
        parts = [scalars[first : first + 50] for first in range(0, n, 50)]
        encoded = np.concatenate([base.encoded(part).copy() for part in parts])
        points = GpuPoints(device, form, 64 if order != NATURAL_ORDER else n)
        for number, part in enumerate(parts):
            base.put(part, points, 50 * number, order)
    want = decode_to_gpu(device, form, encoded)
    assert isinstance(want, GpuPoints)
    rows = [row_of(i, *order) for i in range(n)] if order != NATURAL_ORDER else list(range(n))
    for got_axis, want_axis in ((points.x, want.x), (points.y, want.y)):
        assert np.array_equal(device.download(got_axis)[rows], device.download(want_axis))
    points.close()
    want.close()
