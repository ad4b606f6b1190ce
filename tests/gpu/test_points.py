"""Encodings decoded on the card, at counts around a block and a chunk; encodings that must not pass."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.curve import G1, G2
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.gpu import points as points_module
from cuzk.kernels.gpu import sum_schedule
from cuzk.kernels.gpu.ntt_schedule import Schedule
from cuzk.kernels.gpu.points import GpuPoints, decode_to_gpu, gathered
from cuzk.kernels.modulus import FQ
from cuzk.kernels.points import BadPoint

GROUPS = [pytest.param(G1, FQ_GPU, id="G1"), pytest.param(G2, FQ2_GPU, id="G2")]
TOP = slice(0, 48)  # the first coordinate's bytes


def multiples(curve: Any, count: int) -> list[Any]:
    """The generator's."""
    points = [curve.generator]
    while len(points) < count:
        points.append(curve.add(points[-1], curve.generator))
    return points


def components(coordinate: Any) -> list[int]:
    """c0, and c1 if there is one."""
    return [coordinate] if isinstance(coordinate, int) else list(coordinate)


def encoded(points: list[Any]) -> np.ndarray[Any, Any]:
    rows = [
        b"".join(
            part.to_bytes(48, "big") for coordinate in point for part in reversed(components(coordinate))
        )
        for point in points
    ]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(points), -1).copy()


def mont_words(coordinate: Any) -> list[int]:
    return [word for part in components(coordinate) for word in FQ.limbs((part << 384) % FQ.p, 12, 32)]


def coordinates(device: CudaDevice, points: GpuPoints) -> list[list[list[int]]]:
    return [device.download(axis).tolist() for axis in (points.x, points.y)]


@pytest.mark.parametrize(("curve", "form"), GROUPS)
@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 300])
def test_points_become_coordinates_in_montgomery_form(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch, curve: Any, form: Any, count: int
) -> None:
    for module in (points_module, sum_schedule):
        monkeypatch.setattr(module, "DECODED_AT_ONCE", 256)
    points = multiples(curve, count)
    decoded = decode_to_gpu(device, form, encoded(points))
    assert isinstance(decoded, GpuPoints)
    wanted = [[mont_words(point[axis]) for point in points] for axis in range(2)]
    assert coordinates(device, decoded) == wanted
    decoded.close()


@pytest.mark.parametrize("log2", [3, 7, 15, 19])
def test_points_lie_where_a_transform_leaves_their_coefficients(device: CudaDevice, log2: int) -> None:
    schedule = Schedule(log2)
    few = multiples(G1, 64)
    count = (1 << log2) - 1  # the coefficient of highest degree has no point
    which = np.arange(count) % len(few)
    bits = schedule.bits or (log2,)
    order = (*bits, 0, 0)[:3]
    decoded = decode_to_gpu(device, FQ_GPU, encoded(few)[which], order=order)
    assert isinstance(decoded, GpuPoints)
    table = np.array([mont_words(point[0]) for point in few], np.uint32)
    coefficients = schedule.coefficients_at(np.arange(count))
    assert np.array_equal(device.download(decoded.x), table[coefficients % len(few)])
    decoded.close()


def flagged(row: np.ndarray[Any, Any]) -> None:
    row[0] |= 0x80


def identity(row: np.ndarray[Any, Any]) -> None:
    row[:] = 0
    row[0] = 0x40


def too_large(row: np.ndarray[Any, Any]) -> None:
    """The same x, plus p: in Montgomery form nothing is wrong with it."""
    number = int.from_bytes(row[TOP].tobytes(), "big") + FQ.p
    row[TOP] = np.frombuffer(number.to_bytes(48, "big"), np.uint8)


def modulus(row: np.ndarray[Any, Any]) -> None:
    row[TOP] = np.frombuffer(FQ.p.to_bytes(48, "big"), np.uint8)


def off_the_curve(row: np.ndarray[Any, Any]) -> None:
    row[-1] ^= 1


BAD = [
    pytest.param(flagged, "flag", id="flags"),
    pytest.param(identity, "is the identity", id="identity"),
    pytest.param(too_large, "not below|flag", id="x_plus_p"),
    pytest.param(modulus, "not below", id="x_equal_to_modulus"),
    pytest.param(off_the_curve, "not on the curve", id="off_the_curve"),
]


@pytest.mark.parametrize(("curve", "form"), GROUPS)
@pytest.mark.parametrize(("spoil", "reason"), BAD)
@pytest.mark.parametrize("index", [0, 127, 299])
def test_the_first_bad_point_is_named_and_nothing_is_left_on_the_card(
    device: CudaDevice,
    monkeypatch: pytest.MonkeyPatch,
    curve: Any,
    form: Any,
    spoil: Any,
    reason: str,
    index: int,
) -> None:
    for module in (points_module, sum_schedule):
        monkeypatch.setattr(module, "DECODED_AT_ONCE", 256)
    before = device.memory.used_bytes
    rows = encoded(multiples(curve, 300))
    for bad in (index, 299):
        spoil(rows[bad])
        if bad == index == 299:
            break
    found = decode_to_gpu(device, form, rows)
    assert isinstance(found, BadPoint)
    assert found.index == index
    assert re.search(reason, found.reason)
    assert device.memory.used_bytes == before


@pytest.mark.parametrize(("curve", "form"), GROUPS)
def test_chosen_points_are_collected_in_the_order_of_their_numbers(
    device: CudaDevice, curve: Any, form: Any
) -> None:
    points = multiples(curve, 200)
    decoded = decode_to_gpu(device, form, encoded(points))
    assert isinstance(decoded, GpuPoints)
    index = np.array([199, 0, 7, 7, 128], np.uint32)
    with device.allocate(len(index), np.uint32) as scratch:
        chosen = gathered(device, decoded, index, scratch)
    assert coordinates(device, chosen) == [[mont_words(points[i][axis]) for i in index] for axis in range(2)]
    chosen.close()
    decoded.close()
