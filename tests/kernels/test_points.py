"""Encoded points to rows and back, against py_ecc's points and this file's own encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from py_ecc import bls12_381 as oracle

from cuzk.kernels import points as points_module
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.modulus import FQ as FQ_MODULUS
from cuzk.kernels.points import decode_points, encode_block, encoded_bytes, padded
from tests.kernels.point_values import GROUPS, encode_point, generator, rows_to_points

DEVICE = CpuDevice(threads=2)


def _points(group: str, count: int) -> list[Any]:
    points, step = [generator(group)], oracle.multiply(generator(group), 0xDEADBEEF)
    while len(points) < count:
        points.append(oracle.add(points[-1], step))
    return points


def _array(encoded: list[bytes]) -> np.ndarray[Any, Any]:
    return np.frombuffer(b"".join(encoded), np.uint8).reshape(len(encoded), -1).copy()


@pytest.mark.parametrize(("group", "form"), GROUPS)
@pytest.mark.parametrize("count", [1, 7, 8, 21])
def test_decoding_gives_the_points_and_encoding_gives_the_bytes_back(
    group: str, form: Any, count: int
) -> None:
    points = _points(group, count)
    encoded = _array([encode_point(point) for point in points])
    rows = aligned_empty(padded(count), 2 * form.words)
    assert decode_points(DEVICE, form, encoded, rows) is None
    assert rows_to_points(form, rows[:count]) == points
    back = np.zeros_like(encoded)
    encode_block(form, rows, back)
    assert (back == encoded).all()


@pytest.mark.parametrize(("group", "form"), GROUPS)
@pytest.mark.parametrize(
    "chosen", [[], [20], [0, 20], [3, 4, 5], [*range(0, 21, 2)], [20, 1, 1, 0, 7, 9, 2, 3, 19], [*range(21)]]
)
def test_some_points_are_decoded_in_the_order_of_their_index(
    group: str, form: Any, chosen: list[int]
) -> None:
    points = _points(group, 21)
    encoded = _array([encode_point(point) for point in points])
    rows = aligned_empty(padded(len(chosen)), 2 * form.words)
    assert decode_points(DEVICE, form, encoded, rows, np.array(chosen, np.uint32)) is None
    assert rows_to_points(form, rows[: len(chosen)]) == [points[i] for i in chosen]


@pytest.mark.parametrize(("group", "form"), GROUPS)
def test_threads_say_which_points_they_come_to_before_they_look_at_them(
    group: str, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points_module, "_TASK", 8)
    encoded = _array([encode_point(point) for point in _points(group, 21)])
    rows = aligned_empty(padded(21), 2 * form.words)
    told: list[tuple[int, int]] = []
    index = np.array([20, 1, 1, 0, 7, 9, 2, 3, 19, 18], np.uint32)
    assert decode_points(DEVICE, form, encoded, rows, index, lambda *said: told.append(said)) is None
    assert sorted(told) == [(0, 20), (18, 19)]

    def refuse(first: int, last: int) -> None:
        raise OSError("not readable")

    with pytest.raises(OSError, match="not readable"):
        decode_points(DEVICE, form, encoded, rows, None, refuse)


@pytest.mark.parametrize(("group", "form"), GROUPS)
def test_a_bad_point_matters_where_it_is_chosen(group: str, form: Any) -> None:
    encoded = _array([encode_point(point) for point in _points(group, 21)])
    encoded[13, -1] ^= 1
    rows = aligned_empty(24, 2 * form.words)
    assert decode_points(DEVICE, form, encoded, rows, np.delete(np.arange(21, dtype=np.uint32), 13)) is None
    found = decode_points(DEVICE, form, encoded, rows, np.array([2, 20, 9, 13, 4], np.uint32))
    assert found is not None and found.index == 13 and "not on the curve" in found.reason


def _with_coordinate(encoded: bytes, index: int, value: int) -> bytes:
    return encoded[: 48 * index] + value.to_bytes(48, "big") + encoded[48 * (index + 1) :]


@pytest.mark.parametrize(("group", "form"), GROUPS)
@pytest.mark.parametrize("place", [0, 8, 12, 18])
def test_each_kind_of_bad_point_is_found_at_its_place(group: str, form: Any, place: int) -> None:
    good = [encode_point(point) for point in _points(group, 19)]
    size, p = encoded_bytes(form), FQ_MODULUS.p
    last = size // 48 - 1
    one_off = int.from_bytes(good[place][-48:], "big") ^ 1
    bad = {
        "is the identity": bytes([0x40]) + bytes(size - 1),
        "flag bits": bytes([good[place][0] | 0x80]) + good[place][1:],
        "not below the field modulus": _with_coordinate(good[place], last, p),
        "not on the curve": _with_coordinate(good[place], last, one_off),
    }
    for reason, encoding in bad.items():
        rows = aligned_empty(padded(19), 2 * form.words)
        found = decode_points(DEVICE, form, _array([*good[:place], encoding, *good[place + 1 :]]), rows)
        assert found is not None and found.index == place and reason in found.reason


@pytest.mark.parametrize(("group", "form"), GROUPS)
def test_the_largest_coordinates_below_the_modulus_are_read_right(group: str, form: Any) -> None:
    p, size = FQ_MODULUS.p, encoded_bytes(form)
    encoded = _array([b"".join((p - 1).to_bytes(48, "big") for _ in range(size // 48))])
    found = decode_points(DEVICE, form, encoded, aligned_empty(8, 2 * form.words))
    assert found is not None and "not on the curve" in found.reason
