"""Sums of bits as integers, at the edges of their ranges, against plain ints."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import pytest

from cuzk.kernels import field
from cuzk.kernels.circuit.instances import SIGN
from cuzk.kernels.circuit.template_rows import (
    DIGITS,
    NARROW,
    first_unsatisfied,
    from_signed,
    is_canonical,
    less_modulus,
    narrow_sum,
    wide_sum,
)
from cuzk.kernels.field import store
from cuzk.kernels.modulus import FR


@numba.njit
def store_wide_sum(form, slots, codes, local, digits, out):
    store(form, out, 0, wide_sum(form, slots, codes, 0, len(slots), local, digits))


@numba.njit
def store_narrow_sum(form, slots, codes, local, out):
    store(form, out, 0, from_signed(form, narrow_sum(slots, codes, 0, len(slots), local)))


def row_of(value: int) -> np.ndarray:
    return np.array(FR.limbs(value, 4, 64), dtype=np.uint64)


def words_of(value: int) -> tuple[np.uint64, ...]:
    return tuple(row_of(value))


def int_of(row: np.ndarray) -> int:
    return sum(int(word) << (64 * i) for i, word in enumerate(row))


def codes_of(terms: Sequence[tuple[int, int]]) -> np.ndarray:
    """Terms are (sign, exponent)."""
    return np.array([exponent + (SIGN if sign < 0 else 0) for sign, exponent in terms], dtype=np.int32)


def wide(terms: Sequence[tuple[int, int]], bits: Sequence[int]) -> int:
    out = np.full((1, 4), 0xDEAD, dtype=np.uint64)
    slots = np.arange(len(terms), dtype=np.uint32)
    local = np.array(bits, dtype=np.uint8)
    store_wide_sum(field.FR, slots, codes_of(terms), local, np.zeros(DIGITS, dtype=np.int64), out)
    return int_of(out[0])


def powers_of(value: int) -> list[tuple[int, int]]:
    return [(1, i) for i in range(value.bit_length()) if value >> i & 1]


@pytest.mark.parametrize(
    "value", [0, 1, (1 << 32) - 1, 1 << 32, FR.p - 1, FR.p, FR.p + 1, (1 << 254) - 1, (1 << 255) - 1]
)
def test_wide_sums_are_reduced_once_they_reach_the_modulus(value: int) -> None:
    terms = powers_of(value)
    assert wide(terms, [1] * len(terms)) == value % FR.p


@pytest.mark.parametrize("value", [1, (1 << 64) - 1, 1 << 253, FR.p - 1])
def test_negative_wide_sums_wrap_around_the_modulus(value: int) -> None:
    terms = [(-1, exponent) for _, exponent in powers_of(value)]
    assert wide(terms, [1] * len(terms)) == -value % FR.p


def test_wide_sums_carry_through_many_equal_terms() -> None:
    """A packed row has up to 929 terms."""
    terms = [(1, 31)] * 929 + [(-1, 63)] * 3 + [(1, 200)] * 5
    bits = [i % 3 != 0 for i in range(len(terms))]
    expected = sum(sign << exponent for (sign, exponent), bit in zip(terms, bits, strict=True) if bit)
    assert wide(terms, bits) == expected % FR.p


def test_wide_sums_skip_bits_that_are_zero() -> None:
    assert wide([(1, 253), (-1, 100), (1, 3)], [0, 0, 1]) == 8


@pytest.mark.parametrize(
    "terms",
    [[], [(1, 0)], [(-1, 0)], [(1, 1), (-1, 0), (-1, 0)], [(-1, NARROW - 1)] * 9, [(1, NARROW - 1)] * 9],
)
def test_narrow_sums_are_those_of_plain_ints(terms: list[tuple[int, int]]) -> None:
    slots = np.arange(len(terms), dtype=np.uint32)
    local = np.ones(max(len(terms), 1), dtype=np.uint8)
    out = np.full((1, 4), 0xDEAD, dtype=np.uint64)
    store_narrow_sum(field.FR, slots, codes_of(terms), local, out)
    assert int_of(out[0]) == sum(sign << exponent for sign, exponent in terms) % FR.p


@pytest.mark.parametrize("value", [FR.p, FR.p + 1, 2 * FR.p - 1, 2 * FR.p, 1 << 255, (1 << 256) - 1])
def test_the_modulus_is_subtracted_with_borrows(value: int) -> None:
    assert int_of(np.array(less_modulus(words_of(value)), dtype=np.uint64)) == value - FR.p


@pytest.mark.parametrize(
    "value", [0, FR.p - 1, FR.p, FR.p + 1, FR.p - (1 << 64), FR.p + (1 << 128), 1 << 255]
)
def test_canonical_numbers_are_told_from_others(value: int) -> None:
    assert is_canonical(words_of(value)) == (value < FR.p)


def test_first_unsatisfied_row_is_found_from_any_start() -> None:
    products = [(3, 5), (FR.p - 1, FR.p - 1), (0, 9), (FR.p - 1, 2), (1 << 200, 1 << 100)]
    a, b = (np.stack([row_of(pair[side]) for pair in products]) for side in (0, 1))
    c = np.stack([row_of(x * y % FR.p) for x, y in products])
    assert first_unsatisfied(field.FR, a, b, c, 0, 5) == -1
    c[1, 3] ^= np.uint64(1)
    c[3, 0] ^= np.uint64(1)
    assert [first_unsatisfied(field.FR, a, b, c, start, 5) for start in range(5)] == [1, 1, 3, 3, -1]
    assert first_unsatisfied(field.FR, a, b, c, 2, 3) == -1
