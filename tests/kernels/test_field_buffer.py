"""Loose values in scratch, constants for all lanes, loads of rows that lie apart, against plain integers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from cuzk.kernels.device.cpu import aligned_empty
from cuzk.kernels.field import FR, FR8, canonical, lanes_of, load, spill, store
from cuzk.kernels.field_buffer import (
    lifted,
    limb_table,
    load_same,
    spill_loose,
    sum_of_products,
    unspill_loose,
)
from cuzk.kernels.field_memory import load_apart, prefetch_rows
from cuzk.kernels.jit import jit
from tests.kernels.field_values import edge_values, needs_ifma, to_ints, to_rows

FORMS = [FR, pytest.param(FR8, marks=needs_ifma)]
P = FR.modulus.p


@jit
def _difference_through_scratch(form, a, b, scratch, out):  # type: ignore[no-untyped-def]
    spill_loose(form, scratch, 3, lifted(load(form, a, 0) - load(form, b, 0) - load(form, b, 0)))
    store(form, out, 0, canonical(unspill_loose(form, scratch, 3, 3)))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_negative_sum_is_lifted_and_survives_scratch(form: Any) -> None:
    edges = edge_values(P)
    for first in range(len(edges)):
        a = [edges[(first + lane) % len(edges)] for lane in range(form.lanes)]
        b = [edges[(first + 3 * lane + 1) % len(edges)] for lane in range(form.lanes)]
        scratch, out = aligned_empty(1, 4 * form.lanes * form.limbs)[0], aligned_empty(form.lanes, 4)
        _difference_through_scratch(form, to_rows(form, a), to_rows(form, b), scratch, out)
        assert to_ints(form, out) == [(x - 2 * y) % P for x, y in zip(a, b, strict=True)]


@jit
def _times_same(form, a, table, row, out):  # type: ignore[no-untyped-def]
    store(form, out, 0, canonical(load(form, a, 0) * load_same(form, table, row)))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_row_of_a_limb_table_multiplies_every_lane(form: Any) -> None:
    factors, values = edge_values(P), [P - 1 - lane for lane in range(form.lanes)]
    table, out = limb_table(form, factors), aligned_empty(form.lanes, 4)
    for row, factor in enumerate(factors):
        _times_same(form, to_rows(form, values), table, row, out)
        assert to_ints(form, out) == [value * factor % P for value in values]


@jit
def _weighted_sum(form, a, scratch, first, table, row, count, out):  # type: ignore[no-untyped-def]
    for i in range(len(a) // lanes_of(form)):
        spill(form, scratch, i, load(form, a, i * lanes_of(form)))
    store(form, out, 0, canonical(sum_of_products(form, scratch, first, table, row, count)))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize(("first", "row", "count"), [(0, 0, 0), (2, 3, 1), (0, 1, 2), (1, 0, 29), (0, 5, 30)])
def test_places_times_rows_of_a_table_are_summed(form: Any, first: int, row: int, count: int) -> None:
    values = [[(P - 1 - 7 * k * lane) % P for lane in range(form.lanes)] for k in range(30)]
    factors = [*edge_values(P), *(P - 1 - k for k in range(35))][:35]
    scratch, out = aligned_empty(1, 30 * form.lanes * form.limbs)[0], aligned_empty(form.lanes, 4)
    rows = to_rows(form, [value for place in values for value in place])
    _weighted_sum(form, rows, scratch, first, limb_table(form, factors), row, count, out)
    terms = list(zip(values[first : first + count], factors[row : row + count], strict=True))
    expected = [sum(place[lane] * factor for place, factor in terms) % P for lane in range(form.lanes)]
    assert to_ints(form, out) == expected


@jit
def _copy_apart(form, a, row, step, out):  # type: ignore[no-untyped-def]
    prefetch_rows(form, a, row + 1000 * step)  # beyond the array: harmless
    store(form, out, 0, load_apart(form, a, row, step))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("step", [1, 2, 7])
def test_lanes_are_read_from_rows_that_lie_apart(form: Any, step: int) -> None:
    rng = random.Random(step)
    values = [rng.randrange(P) for _ in range(64)]
    rows, out = np.array(to_rows(form, values)), aligned_empty(form.lanes, 4)
    _copy_apart(form, rows, 5, step, out)
    assert to_ints(form, out) == [values[5 + step * lane] for lane in range(form.lanes)]
