"""Sections as rows: the points that are asked for, and bad ones named before they are used."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzk.errors import ParameterError
from cuzk.events import Event, StageDone, StageStarted, ignore
from cuzk.groth16 import point_rows
from cuzk.groth16.encoding import decode_g1, decode_g2
from cuzk.groth16.parameters.params_file import SECTIONS, ParameterFile, SectionName, open_parameters
from cuzk.groth16.point_rows import PointRows, require_good_points
from cuzk.groth16.target import Query
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.kernels.device.cpu import CpuDevice
from tests.groth16.parameters.test_watched_file import needs_populate

NAMES = [name for name, _ in SECTIONS]
OF_ORDER_3 = bytes(95) + b"\2"  # (0, 2) on y^2 = x^3 + 4


@pytest.fixture
def toy_file(toy_params: Path) -> ParameterFile:
    return open_parameters(toy_params)


def damaged(file: ParameterFile, section: SectionName, index: int, encoding: bytes) -> ParameterFile:
    """The same parameters but for one point."""
    points = file.section(section).copy()
    points[index] = np.frombuffer(encoding, np.uint8)
    points.flags.writeable = False  # as a mapping is
    return replace(file, **{section: points})


def one_off(file: ParameterFile, section: SectionName, index: int) -> bytes:
    """The encoding of a point with another y."""
    encoding = bytearray(file.section(section)[index].tobytes())
    encoding[-1] ^= 1
    return bytes(encoding)


def expected_sum(file: ParameterFile, section: SectionName, scalars: list[int]) -> Any:
    """By arkworks, point by point."""
    total = G2Point.identity() if section == "b_g2" else G1Point.identity()
    decode: Any = decode_g2 if section == "b_g2" else decode_g1
    for point, scalar in zip(file.section(section), scalars, strict=True):
        total += decode(point.tobytes()) * Scalar(scalar)
    return total


def test_good_points_are_good(device: CpuDevice, toy_file: ParameterFile) -> None:
    events: list[Event] = []
    require_good_points(PointRows(device, toy_file), events.append)
    done = [event.name for event in events if isinstance(event, StageDone)]
    assert done == ["points on the curve", "points in the subgroup"]


@pytest.mark.parametrize("slice_points", [1 << 21, 64])
@pytest.mark.parametrize("section", NAMES)
def test_a_point_off_the_curve_is_named_before_any_sum_is_made(
    section: SectionName,
    slice_points: int,
    device: CpuDevice,
    toy_file: ParameterFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(point_rows, "SLICE", slice_points)
    index = len(toy_file.section(section)) - 1
    bad = damaged(toy_file, section, index, one_off(toy_file, section, index))
    events: list[Event] = []
    with pytest.raises(ParameterError, match="not on the curve") as raised:
        require_good_points(PointRows(device, bad), events.append)
    assert raised.value.where == f"{toy_file.path}: {section}[{index}]"
    assert {event.name for event in events if isinstance(event, StageStarted)} == {"points on the curve"}


@pytest.mark.parametrize("section", ["h", "l", "a", "b_g1"])
def test_a_point_outside_the_subgroup_is_found(
    section: SectionName, device: CpuDevice, toy_file: ParameterFile
) -> None:
    bad = damaged(toy_file, section, 5, OF_ORDER_3)
    with pytest.raises(ParameterError, match="outside the subgroup of order r") as raised:
        require_good_points(PointRows(device, bad), ignore)
    assert raised.value.where == f"{toy_file.path}: {section}"


@pytest.mark.parametrize("slice_points", [1 << 21, 24])
@pytest.mark.parametrize("section", NAMES[1:])
@pytest.mark.parametrize("kind", ["sparse", "none", "all", "only full"])
def test_a_sum_over_some_points_is_that_of_arkworks_and_looks_at_no_others(
    kind: str,
    section: SectionName,
    slice_points: int,
    device: CpuDevice,
    toy_file: ParameterFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Points whose scalar is 0 are damaged: nobody notices."""
    monkeypatch.setattr(point_rows, "SLICE", slice_points)
    count = len(toy_file.section(section))
    full = {} if kind in ("none", "all") else {0: 7, 3: 2**254 + 5, count - 1: 12345678901234567890}
    bits = np.zeros(count, np.uint8)
    bits[slice(None) if kind == "all" else slice(1, count - 1, 4) if kind == "sparse" else slice(0)] = 1
    bits[list(full)] = 0
    query = Query(
        bits=bits,
        full_index=np.array(sorted(full), np.uint32),
        full_scalars=np.array([[k >> 64 * i & 2**64 - 1 for i in range(4)] for k in full.values()], np.uint64)
        .reshape(-1, 4),
    )  # fmt: skip
    scalars = [full.get(i, int(bits[i])) for i in range(count)]
    file = toy_file
    for i in range(2, count, 7):
        if scalars[i] == 0:
            file = damaged(file, section, i, one_off(file, section, i))
    target = CpuTarget(device, file)
    reported: list[tuple[int, int]] = []
    total = target.sum_under(section, query, lambda done, of: reported.append((done, of)))()
    assert total == expected_sum(toy_file, section, scalars)
    assert reported[-1] == (count, count)


def test_a_bad_point_that_a_sum_needs_is_named(
    device: CpuDevice, toy_file: ParameterFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number is that of the file, not of the slice or of those that are summed."""
    monkeypatch.setattr(point_rows, "SLICE", 64)
    bad = damaged(toy_file, "l", 101, one_off(toy_file, "l", 101))
    bits = np.zeros(len(bad.l), np.uint8)
    bits[[3, 70, 101, 200]] = 1
    query = Query(bits=bits, full_index=np.zeros(0, np.uint32), full_scalars=np.zeros((0, 4), np.uint64))
    with pytest.raises(ParameterError, match="not on the curve") as raised:
        CpuTarget(device, bad).sum_under("l", query, lambda done, of: None)
    assert raised.value.where == f"{toy_file.path}: l[101]"


@pytest.mark.parametrize("chosen", [slice(0, 200), np.array([3, 199], np.uint32)])
def test_a_file_that_was_cut_is_an_error_where_its_points_are_used(
    chosen: Any, device: CpuDevice, toy_params: Path, tmp_path: Path
) -> None:
    needs_populate()
    path = tmp_path / "cut.params"
    path.write_bytes(toy_params.read_bytes())
    file = open_parameters(path)
    end = file.first_byte("l", 100)
    os.truncate(path, end)
    points = PointRows(device, file)
    points.decoded("l", slice(0, 50), spare=0)
    with pytest.raises(ParameterError, match=rf"the file was cut while it was in use: .* has {end:,}"):
        points.decoded("l", chosen, spare=0)


def test_a_bad_point_of_a_slice_is_named(
    device: CpuDevice, toy_file: ParameterFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = damaged(toy_file, "h", 130, one_off(toy_file, "h", 130))
    with pytest.raises(ParameterError) as raised:
        PointRows(device, bad).decoded("h", slice(128, 192), spare=0)
    assert raised.value.where == f"{toy_file.path}: h[130]"
