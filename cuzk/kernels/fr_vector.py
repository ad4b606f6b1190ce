"""Vectors of Fr as (n, 4) uint64, canonical: powers, combinations, and from and to plain integers.

A product of a plain element and a constant in Montgomery form is plain, so vectors never change form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.field import canonical, carried, lanes_of, load, store
from cuzk.kernels.field_type import FieldForm
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FR

Vector = NDArray[np.uint64]

_TASK = 1 << 15  # elements a thread takes at a time: a multiple of the lanes, about half a millisecond


def from_integers(values: Iterable[int]) -> Vector:
    """Integers in [0, r) as (n, 4)."""
    data = bytearray().join(value.to_bytes(32, "little") for value in values)  # an array that can be written
    return np.frombuffer(data, np.uint64).reshape(-1, 4)


def to_integers(rows: NDArray[Any]) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def mont_rows(form: FieldForm, values: Iterable[int]) -> Vector:
    """Integers as (n, 4) in the form's Montgomery form: constants, for `load`."""
    return from_integers(value * form.radix % form.modulus.p for value in values)


def mont_constant(form: FieldForm, value: int) -> Vector:
    """One constant of a kernel, in the form's Montgomery form and in every lane."""
    return mont_rows(form, [value] * form.lanes)


@jit
def _powers(form, first, step, out, begin, end):
    x, step_mont = carried(load(form, first, 0)), load(form, step, 0)
    for i in range(begin, end, lanes_of(form)):
        store(form, out, i, canonical(x))
        x = canonical(x * step_mont)


def powers(device: CpuDevice, first: int, ratio: int, count: int) -> Vector:
    """first * ratio^i for i < count."""
    form: FieldForm = device.fr
    padded = -(-count // form.lanes) * form.lanes
    out = aligned_empty(padded, 4)
    step = mont_constant(form, pow(ratio, form.lanes, FR.p))

    def task(begin: int) -> None:
        start = first * pow(ratio, begin, FR.p) % FR.p
        lanes = [start * pow(ratio, i, FR.p) % FR.p for i in range(form.lanes)]
        _powers(form, from_integers(lanes), step, out, begin, min(begin + _TASK, padded))

    device.map(task, range(0, padded, _TASK))
    return out[:count]


@jit
def _combine(form, factors, a, b, c, out, begin, end):
    f, g, h = load(form, factors[0], 0), load(form, factors[1], 0), load(form, factors[2], 0)
    for i in range(begin, end, lanes_of(form)):
        total = load(form, a, i) * f + load(form, b, i) * g + load(form, c, i) * h
        store(form, out, i, canonical(total))


def combine(device: CpuDevice, factors: tuple[int, int, int], a: Vector, b: Vector, c: Vector) -> Vector:
    """factors[0]*a + factors[1]*b + factors[2]*c, element by element."""
    form: FieldForm = device.fr
    constants = tuple(mont_constant(form, factor) for factor in factors)
    count = len(a)
    whole = count // form.lanes * form.lanes
    out = aligned_empty(count, 4)

    def task(begin: int) -> None:
        _combine(form, constants, a, b, c, out, begin, min(begin + _TASK, whole))

    device.map(task, range(0, whole, _TASK))
    if whole < count:  # the lanes that are left over
        ends = [np.zeros((form.lanes, 4), np.uint64) for _ in range(4)]
        for end, vector in zip(ends, (a, b, c), strict=False):
            end[: count - whole] = vector[whole:]
        a_end, b_end, c_end, out_end = ends
        _combine(form, constants, a_end, b_end, c_end, out_end, 0, form.lanes)
        out[whole:] = out_end[: count - whole]
    return out
