"""Random sums of points, to find out whether all of them lie in a subgroup without asking each.

A point outside the subgroup of order r leaves it in at least half of all random sums: of two coefficients
that differ by 1, at most one hides it. Random digits are sorted into buckets as for an MSM, and the bits of
the bucket numbers give c - 1 independent sums a round, for one addition a point.
Error      2^-45 with three rounds of c = 16. Digits are fresh at every check: nobody can look beforehand for
           points that pass.
Cost       three additions a point.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.kernels.curve import Point
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.msm import MAX_WINDOW, WindowPlan, Windows
from cuzk.kernels.xyzz import EMPTY, Form, Rows, horner

ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _RandomDigits(WindowPlan):
    """Windows whose digits are random and belong to no scalar."""

    @property
    def windows(self) -> int:
        return ROUNDS


def _plan(device: CpuDevice, count: int) -> _RandomDigits:
    return _RandomDigits(n=count, c=MAX_WINDOW, threads=device.threads)


def scratch_rows(device: CpuDevice, form: Form, count: int) -> int:
    """Spare rows that the point array must have at its end."""
    return _plan(device, count).rows_behind(form)


def random_subset_sums(device: CpuDevice, form: Form, rows: Rows, count: int) -> list[Point[Any]]:
    """Sums of the first `count` points with coefficients 0, 1 and -1, from the operating system's randomness.

    rows  as for `msm`, with `scratch_rows` spare ones
    """
    plan = _plan(device, count)
    generator = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
    windows = Windows(device, form, rows, np.arange(count, dtype=np.uint32), plan)
    windows.digits[:] = generator.integers(-plan.buckets + 1, plan.buckets, plan.digits_shape, np.int32)
    device.map(windows.run, windows.tasks)
    codes = windows.results[windows.results != EMPTY]
    return [horner(form, rows, code.reshape(1, 1)) for code in codes]
