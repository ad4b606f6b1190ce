"""The emitted programs, run on plain integers with every range asserted: no special hardware, no compiler."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.kernels.codegen import radix52, radix64
from cuzk.kernels.codegen.ints import Radix52Ints, Radix64Ints
from cuzk.kernels.modulus import FQ, FR, Modulus

FIELDS = [FQ, FR]
IDS = ["Fq", "Fr"]


def values_below(limit: int, width: int, count: int) -> st.SearchStrategy[int]:
    """Uniform values hardly ever carry far: mix in edges, and limbs that are all ones or all zeros."""
    ones = (1 << width) - 1
    limbs = st.lists(st.sampled_from([0, 1, ones]), min_size=count, max_size=count)
    saturated = limbs.map(lambda words: sum(word << (width * i) for i, word in enumerate(words)) % limit)
    edges = st.sampled_from([0, 1, 2, limit - 1, limit - 2, limit // 2, limit // 2 + 1])
    return edges | saturated | st.integers(0, limit - 1)


def value_of(limbs: list[int], width: int) -> int:
    return sum(limb << (width * i) for i, limb in enumerate(limbs))


@pytest.mark.parametrize("modulus", FIELDS, ids=IDS)
@given(data=st.data())
def test_the_52_bit_product_of_unreduced_values_is_right_and_below_2p(
    modulus: Modulus, data: st.DataObject
) -> None:
    n, m = radix52.limb_count(modulus), Radix52Ints()
    radix = 1 << (radix52.WIDTH * n)
    limit = modulus.p << (3 if modulus is FQ else 2)  # up to 8p and 4p: their squares stay below R*p
    a, b = (data.draw(values_below(limit, 52, n)) for _ in range(2))
    expected = a * b * pow(radix, -1, modulus.p) % modulus.p
    limbs_a, limbs_b = (modulus.limbs(v, n, 52) for v in (a, b))
    for got in (
        radix52.mul_mont_lt_2p(m, limbs_a, limbs_b, modulus),
        radix52.mul_mont_lt_2p(m, limbs_b, limbs_a, modulus),
    ):
        assert all(0 <= limb < 1 << 52 for limb in got)
        assert value_of(got, 52) < 2 * modulus.p and value_of(got, 52) % modulus.p == expected
    square = radix52.sqr_mont_lt_2p(m, limbs_a, modulus)
    assert value_of(square, 52) < 2 * modulus.p
    assert square == radix52.mul_mont_lt_2p(m, limbs_a, limbs_a, modulus)


@pytest.mark.parametrize(("modulus", "factor"), [(FQ, 1 << 17), (FR, 5), (FR, 1)], ids=["Fq", "Fr 5", "Fr 1"])
@given(data=st.data())
def test_the_52_bit_product_is_below_2p_for_the_largest_operands(
    modulus: Modulus, factor: int, data: st.DataObject
) -> None:
    n, m = radix52.limb_count(modulus), Radix52Ints()
    radix = 1 << (radix52.WIDTH * n)
    ends = [factor * modulus.p, radix // modulus.p // factor * modulus.p]
    a, b = (end - 1 - data.draw(values_below(modulus.p, 52, n)) for end in ends)
    got = value_of(radix52.mul_mont_lt_2p(m, *(modulus.limbs(v, n, 52) for v in (a, b)), modulus), 52)
    assert got < 2 * modulus.p and got % modulus.p == a * b * pow(radix, -1, modulus.p) % modulus.p


@pytest.mark.parametrize(("modulus", "terms", "factor"), [(FR, 35, 1), (FR, 17, 2), (FR, 1, 35), (FQ, 20, 8)])
@given(data=st.data())
def test_a_sum_of_52_bit_products_is_reduced_once_below_2p(
    modulus: Modulus, terms: int, factor: int, data: st.DataObject
) -> None:
    """Of the largest operands whose bounds add up to no more than R/p, and of others."""
    n, m = radix52.limb_count(modulus), Radix52Ints()
    radix, largest = 1 << (radix52.WIDTH * n), data.draw(st.booleans())
    low, high, expected = [0] * (2 * n - 1), [0] * (2 * n - 1), 0
    for k in range(terms):
        a = factor * modulus.p - 1 - k if largest else data.draw(values_below(factor * modulus.p, 52, n))
        b = modulus.p - 1 if largest else data.draw(values_below(modulus.p, 52, n))
        radix52.add_product(m, low, high, modulus.limbs(a, n, 52), modulus.limbs(b, n, 52))
        expected += a * b
    wide = radix52.join_halves(m, low, high)
    assert value_of(wide, 52) == expected
    got = radix52.reduce_wide_lt_2p(m, wide, modulus)
    assert all(0 <= limb < 1 << 52 for limb in got)
    assert value_of(got, 52) < 2 * modulus.p
    assert value_of(got, 52) % modulus.p == expected * pow(radix, -1, modulus.p) % modulus.p


@pytest.mark.parametrize(("added", "subtracted"), [(2, 4), (4, 2), (7, 0), (0, 7), (1, 1), (6, 6), (16, 16)])
@given(data=st.data())
def test_a_loose_sum_is_reduced_below_2p(added: int, subtracted: int, data: st.DataObject) -> None:
    n, m = radix52.limb_count(FQ), Radix52Ints()
    values = [data.draw(values_below(FQ.p, 52, n)) for _ in range(added + subtracted)]
    loose = [0] * n
    for i, value in enumerate(values):
        program = radix52.add_loose if i < added else radix52.sub_loose
        loose = program(m, loose, FQ.limbs(value, n, 52))
    got = radix52.reduce_lt_2p(m, loose, subtracted, added, FQ)
    assert all(0 <= limb < 1 << 52 for limb in got)
    assert value_of(got, 52) < 2 * FQ.p
    assert value_of(got, 52) % FQ.p == (sum(values[:added]) - sum(values[added:])) % FQ.p


@pytest.mark.parametrize("modulus", FIELDS, ids=IDS)
@given(data=st.data())
def test_loose_sums_carry_and_reduce_to_the_canonical_value(modulus: Modulus, data: st.DataObject) -> None:
    n, m = radix52.limb_count(modulus), Radix52Ints()
    a, b, c = (data.draw(values_below(modulus.p, 52, n)) for _ in range(3))
    la, lb, lc = (modulus.limbs(v, n, 52) for v in (a, b, c))
    loose = radix52.sub_loose(m, radix52.sub_loose(m, la, lb), lc)  # in (-2p, p)
    carried = radix52.carry(m, radix52.add_multiple(m, loose, 2, modulus))
    assert value_of(carried, 52) == a - b - c + 2 * modulus.p
    assert value_of(radix52.canonical(m, carried, 3, modulus), 52) == (a - b - c) % modulus.p
    doubled = radix52.carry(m, radix52.add_loose(m, la, la))
    assert value_of(doubled, 52) == 2 * a


@pytest.mark.parametrize("modulus", FIELDS, ids=IDS)
@given(data=st.data())
def test_packing_into_64_bit_words_and_back_keeps_the_value(modulus: Modulus, data: st.DataObject) -> None:
    n, words, m = radix52.limb_count(modulus), radix64.limb_count(modulus), Radix52Ints()
    a = data.draw(values_below(modulus.p, 64, words))
    packed = radix52.pack64(m, modulus.limbs(a, n, 52), words)
    assert [word % (1 << 64) for word in packed] == modulus.limbs(a, words, 64)
    assert radix52.unpack64(m, packed, n) == modulus.limbs(a, n, 52)


@pytest.mark.parametrize("modulus", FIELDS, ids=IDS)
@given(data=st.data())
def test_the_64_bit_programs_equal_modular_arithmetic(modulus: Modulus, data: st.DataObject) -> None:
    n = radix64.limb_count(modulus)
    m, radix, p = Radix64Ints(64 * n), 1 << (64 * n), modulus.p
    a, b = (data.draw(values_below(p, 64, n)) for _ in range(2))
    assert radix64.mul_mont(m, a, b, modulus) == a * b * pow(radix, -1, p) % p
    assert radix64.add_mod(m, a, b, modulus) == (a + b) % p
    assert radix64.sub_mod(m, a, b, modulus) == (a - b) % p
