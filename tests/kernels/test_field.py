"""Field types in compiled code against plain integers, one lane and eight."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from cuzk.kernels.device.cpu import aligned_empty
from cuzk.kernels.field import (
    FQ,
    FQ8,
    FR,
    FR8,
    any_lane,
    canonical,
    carried,
    from_mont,
    is_zero,
    load,
    negate_where,
    one,
    reduced,
    select,
    sqr,
    store,
    to_mont,
    zero,
)
from cuzk.kernels.jit import jit
from tests.kernels.field_values import edge_values, needs_ifma, to_ints, to_rows

FORMS = [FR, FQ, pytest.param(FR8, marks=needs_ifma), pytest.param(FQ8, marks=needs_ifma)]


@jit
def _formulas(form, lanes, a, b, out):  # type: ignore[no-untyped-def]
    for i in range(0, len(a), lanes):
        x, y = load(form, a, i), load(form, b, i)
        store(form, out[0], i, canonical(x * y))
        store(form, out[1], i, canonical(x + y))
        store(form, out[2], i, canonical(x - y))
        store(form, out[3], i, canonical(sqr(x - y) - x - y))
        store(form, out[4], i, to_mont(form, x))
        store(form, out[5], i, from_mont(form, x))
        same = is_zero(x - y)
        store(form, out[6], i, canonical(select(same, one(form), zero(form))))
        store(form, out[7], i, canonical(negate_where(~same, x)))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_operators_equal_modular_arithmetic_on_edge_and_random_values(form: Any) -> None:
    p, rng = form.modulus.p, random.Random(1)
    edges = edge_values(p)
    pairs = [(x, y) for x in edges for y in edges] + [
        (rng.randrange(p), rng.randrange(p)) for _ in range(200)
    ]
    pairs += pairs[: -len(pairs) % 8]
    a, b = (list(column) for column in zip(*pairs, strict=True))
    out = [aligned_empty(len(a), form.words) for _ in range(8)]
    _formulas(form, form.lanes, to_rows(form, a), to_rows(form, b), tuple(out))
    r_inverse = pow(form.radix, -1, p)
    expected = [
        [x * y * r_inverse % p for x, y in pairs],
        [(x + y) % p for x, y in pairs],
        [(x - y) % p for x, y in pairs],
        [((x - y) ** 2 * r_inverse - x - y) % p for x, y in pairs],
        [x * form.radix % p for x, _ in pairs],
        [x * r_inverse % p for x, _ in pairs],
        [form.radix % p if x == y else 0 for x, y in pairs],
        [x if x == y else -x % p for x, y in pairs],
    ]
    for got, want in zip(out, expected, strict=True):
        assert to_ints(form, got) == want


@jit
def _reduced_and_read_again(form, lanes, a, b, rows, out):  # type: ignore[no-untyped-def]
    for i in range(0, len(a), lanes):
        x, y = load(form, a, i), load(form, b, i)
        store(form, rows, i, reduced(sqr(x - y) - x - y))
        store(form, out, i, canonical(load(form, rows, i)))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_reduced_values_stay_in_the_range_of_rows_and_are_read_as_what_they_are(form: Any) -> None:
    p = form.modulus.p
    pairs = [(x, y) for x in edge_values(p) for y in edge_values(p)]
    pairs += pairs[: -len(pairs) % 8]
    a, b = (list(column) for column in zip(*pairs, strict=True))
    rows, out = (aligned_empty(len(a), form.words) for _ in range(2))
    _reduced_and_read_again(form, form.lanes, to_rows(form, a), to_rows(form, b), rows, out)
    r_inverse = pow(form.radix, -1, p)
    assert to_ints(form, out) == [((x - y) ** 2 * r_inverse - x - y) % p for x, y in pairs]
    assert max(to_ints(form, rows)) < form.row_high * p


@needs_ifma
def test_rows_refuse_a_value_beyond_their_range() -> None:
    @jit
    def too_wide(form, a):  # type: ignore[no-untyped-def]
        store(form, a, 0, carried(load(form, a, 0) + load(form, a, 0)))

    for form in (FQ8, FR8):
        with pytest.raises(AssertionError, match=form.name):
            too_wide(form, to_rows(form, [1] * 8))


@jit
def _chain(form, a, b, out, count):  # type: ignore[no-untyped-def]
    x, y = carried(load(form, a, 0)), load(form, b, 0)
    for _ in range(count):
        x = x * y
    store(form, out, 0, canonical(x))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_loop_of_unreduced_products_keeps_its_type_and_value(form: Any) -> None:
    p = form.modulus.p
    a, b = [p - 1 - i for i in range(form.lanes)], [p - 2 - i for i in range(form.lanes)]
    out = aligned_empty(form.lanes, form.words)
    _chain(form, to_rows(form, a), to_rows(form, b), out, 100)
    r_inverse = pow(form.radix, -1, p)
    assert to_ints(form, out) == [x * pow(y * r_inverse, 100, p) % p for x, y in zip(a, b, strict=True)]


@needs_ifma
def test_a_product_that_could_exceed_its_range_is_refused_at_compile_time() -> None:
    @jit
    def too_wide(form, a):  # type: ignore[no-untyped-def]
        x = load(form, a, 0)
        wide = x + x + x
        store(form, a, 0, canonical(wide * wide * wide * wide + sqr(wide + wide + wide)))

    with pytest.raises(TypingError, match="exceeds R\\*p"):
        too_wide(FR8, to_rows(FR8, [1] * 8))


@jit
def _any_zero(form, a):  # type: ignore[no-untyped-def]
    return any_lane(is_zero(load(form, a, 0)))


@needs_ifma
@pytest.mark.parametrize("lane", range(8))
def test_a_mask_sees_every_lane(lane: int) -> None:
    values = [5] * 8
    assert not _any_zero(FQ8, to_rows(FQ8, values))
    values[lane] = 0
    assert _any_zero(FQ8, to_rows(FQ8, values))


def test_rows_of_the_helper_are_aligned_to_cache_lines() -> None:
    assert all(aligned_empty(n, 8).ctypes.data % 64 == 0 for n in (1, 3, 1000))
    assert aligned_empty(3, 8).dtype == np.uint64
