"""Points with known logarithms on a card: opposite ones among them, and the identity."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest

from cuzk.kernels.curve import Point
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.modulus import FR
from cuzk.kernels.xyzz import curve_of
from tests.kernels.multiples import to_oracle
from tests.kernels.point_values import points_to_rows

GROUPS = [pytest.param(FQ_GPU, id="G1"), pytest.param(FQ2_GPU, id="G2")]
_RANDOM, _OPPOSITE = 24, 8


@cache
def known_points(form: Any) -> list[tuple[int, Point[Any]]]:
    """24 random points, the opposites of 8 of them, and the identity, each with its logarithm."""
    rng, curve = random.Random(1), curve_of(form)
    logarithms = [rng.randrange(FR.p) for _ in range(_RANDOM)]
    logarithms += [FR.p - k for k in logarithms[:_OPPOSITE]] + [0]
    return [(k, curve.multiply(k, curve.generator)) for k in logarithms]


@contextmanager
def uploaded(
    device: CudaDevice, form: Any, points: Sequence[Point[Any]]
) -> Iterator[tuple[DeviceArray, DeviceArray]]:
    """Their x and y, (n, words) uint32 in Montgomery form; memory is there for no points, too."""
    rows = points_to_rows(form, [to_oracle(point) for point in points] or [None]).astype(np.uint32)
    x, y = (np.ascontiguousarray(part) for part in np.split(rows, 2, axis=1))
    with device.upload(x) as x_there, device.upload(y) as y_there:
        yield x_there.rows(0, len(points)), y_there.rows(0, len(points))
