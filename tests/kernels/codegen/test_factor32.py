"""Products by constants as programs for the GPU, on plain integers: no carry is lost, costs are as stated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.kernels.codegen import factor32, radix32
from cuzk.kernels.codegen.asm import Asm, Program, Words
from cuzk.kernels.modulus import FR, Modulus, X, omega
from tests.kernels.field_values import edge_values

P = FR.p
FOURTH_ROOT = -(X**3)
FACTORS = [0, 1, 2, 5, P - 1, FOURTH_ROOT, P - FOURTH_ROOT, omega(3), omega(32), (P - 1) // 2, 1 << 224]


def times(factor: int) -> Program:
    def emit(asm: Asm, x: Words, modulus: Modulus) -> Words:
        return factor32.mul_constant(asm, x, factor, modulus)

    return radix32.build(emit, FR, 1)


PROGRAMS = {factor: times(factor) for factor in FACTORS}
COMPANION = radix32.build(factor32.companion, FR, 1)


def run(program: Program, value: int) -> int:
    words = program.run(FR.limbs(value, factor32.LIMBS, 32))
    return sum(word << 32 * i for i, word in enumerate(words))


def values_below(limit: int) -> st.SearchStrategy[int]:
    edges = [v for v in (*edge_values(P), P, P + 1, 2 * P - 1) if v < limit]
    saturated = st.lists(st.sampled_from([0, 1, 2**32 - 1]), min_size=8, max_size=8).map(
        lambda limbs: sum(limb << 32 * i for i, limb in enumerate(limbs)) % limit
    )
    return st.sampled_from(edges) | saturated | st.integers(0, limit - 1)


@pytest.mark.parametrize("factor", FACTORS)
@given(x=values_below(2 * P))
def test_a_product_by_a_constant_is_reduced(factor: int, x: int) -> None:
    assert run(PROGRAMS[factor], x) == x * factor % P


@given(w=values_below(P))
def test_the_companion_is_the_quotient_by_the_modulus(w: int) -> None:
    assert run(COMPANION, w * factor32.RADIX % P) == w * factor32.RADIX // P


def test_the_short_factor_is_a_fourth_root_of_unity() -> None:
    assert FOURTH_ROOT**2 % P == P - 1
    assert FOURTH_ROOT.bit_length() == 192


@pytest.mark.parametrize(("factor", "wide", "low"), [(omega(3), 86, 14), (FOURTH_ROOT, 56, 10)])
def test_costs_are_those_of_the_head(factor: int, wide: int, low: int) -> None:
    program = times(factor)
    assert (program.wide_products, program.low_products) == (wide, low)
