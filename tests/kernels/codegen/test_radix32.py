"""The GPU's programs on plain integers: modular arithmetic, every carry accounted for, costs as stated.

No GPU and no compiler are needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.kernels.codegen import radix32
from cuzk.kernels.codegen.asm import Asm, Program
from cuzk.kernels.modulus import FQ, FR, Modulus

FIELDS = [FQ, FR]
IDS = ["Fq", "Fr"]
PROGRAMS = {
    (emit, modulus): radix32.build(emit, modulus, elements, words)
    for modulus in FIELDS
    for emit, elements, words in [
        (radix32.add_mod, 2, 0),
        (radix32.sub_mod, 2, 0),
        (radix32.add_lt_2p, 2, 0),
        (radix32.sub_lt_2p, 2, 0),
        (radix32.neg_mod, 1, 0),
        (radix32.neg_mod_if, 1, 1),
        (radix32.mul_mont, 2, 0),
        (radix32.mul_mont_lt_2p, 2, 0),
        (radix32.sqr_mont, 1, 0),
        (radix32.sqr_mont_lt_2p, 1, 0),
    ]
}
PROGRAMS |= {(emit, FR): radix32.build(emit, FR, 3) for emit in (radix32.mul_shoup, radix32.mul_shoup_lt_2p)}


def values_below(limit: int) -> st.SearchStrategy[int]:
    """Uniform values hardly ever carry far: mix in edges, and limbs that are all ones or all zeros."""
    count = -(-limit.bit_length() // 32)
    limbs = st.lists(st.sampled_from([0, 1, 2**31, 2**32 - 1]), min_size=count, max_size=count)
    saturated = limbs.map(lambda words: value_of(words) % limit)
    edges = st.sampled_from([0, 1, 2, limit - 1, limit - 2, limit // 2, limit // 2 + 1])
    return edges | saturated | st.integers(0, limit - 1)


def value_of(limbs: Sequence[int]) -> int:
    return sum(limb << (32 * i) for i, limb in enumerate(limbs))


def run(emit: Callable[..., object], modulus: Modulus, *values: int, words: Sequence[int] = ()) -> int:
    n = radix32.limb_count(modulus)
    return value_of(PROGRAMS[emit, modulus].run(*(modulus.limbs(v, n, 32) for v in values), words))


def radix_inverse(modulus: Modulus) -> int:
    return pow(1 << (32 * radix32.limb_count(modulus)), -1, modulus.p)


@pytest.mark.parametrize("modulus", FIELDS, ids=IDS)
@given(data=st.data())
def test_sums_and_negatives_equal_modular_arithmetic(modulus: Modulus, data: st.DataObject) -> None:
    p = modulus.p
    a, b = (data.draw(values_below(p)) for _ in range(2))
    assert run(radix32.add_mod, modulus, a, b) == (a + b) % p
    assert run(radix32.sub_mod, modulus, a, b) == (a - b) % p
    assert run(radix32.add_lt_2p, modulus, a, b) == a + b
    assert run(radix32.sub_lt_2p, modulus, a, b) == a - b + p
    assert run(radix32.neg_mod, modulus, a) == -a % p
    choice = data.draw(st.sampled_from([0, 1, 2, 2**31, 2**32 - 1]))
    assert run(radix32.neg_mod_if, modulus, a, words=[choice]) == (-a % p if choice else a)


@pytest.mark.parametrize("modulus", FIELDS, ids=IDS)
@given(data=st.data())
def test_products_and_squares_are_right_and_canonical(modulus: Modulus, data: st.DataObject) -> None:
    p, inverse = modulus.p, radix_inverse(modulus)
    a, b = (data.draw(values_below(p)) for _ in range(2))
    assert run(radix32.mul_mont, modulus, a, b) == a * b * inverse % p
    assert run(radix32.sqr_mont, modulus, a) == a * a * inverse % p


@pytest.mark.parametrize("modulus, limit_a, limit_b", [(FQ, 3, 3), (FR, 1, 2)])
@given(data=st.data())
def test_products_of_unreduced_sums_are_below_2p(
    modulus: Modulus, limit_a: int, limit_b: int, data: st.DataObject
) -> None:
    p = modulus.p
    a, b = data.draw(values_below(limit_a * p)), data.draw(values_below(limit_b * p))
    got = run(radix32.mul_mont_lt_2p, modulus, a, b)
    assert got < 2 * p and got % p == a * b * radix_inverse(modulus) % p
    assert run(radix32.mul_mont, modulus, a, b) == got % p


@pytest.mark.parametrize("modulus, limit", [(FQ, 3), (FR, 1)])
@given(data=st.data())
def test_squares_of_unreduced_sums_are_below_2p(modulus: Modulus, limit: int, data: st.DataObject) -> None:
    p = modulus.p
    a = data.draw(values_below(limit * p))
    got = run(radix32.sqr_mont_lt_2p, modulus, a)
    assert got < 2 * p and got % p == a * a * radix_inverse(modulus) % p
    assert run(radix32.sqr_mont, modulus, a) == got % p


@given(x=values_below(2 * FR.p), w=values_below(FR.p))
def test_the_product_by_a_constant_equals_modular_arithmetic(x: int, w: int) -> None:
    w_shoup = (w << 256) // FR.p
    got = run(radix32.mul_shoup_lt_2p, FR, x, w, w_shoup)
    assert got < 2 * FR.p and got % FR.p == x * w % FR.p
    assert run(radix32.mul_shoup, FR, x, w, w_shoup) == x * w % FR.p


@pytest.mark.parametrize("emit", [radix32.mul_mont_lt_2p, radix32.sqr_mont_lt_2p])
@pytest.mark.parametrize("modulus", FIELDS, ids=IDS)
def test_digits_that_are_zero_or_all_ones_in_every_column_carry_right(
    modulus: Modulus, emit: Callable[..., object]
) -> None:
    """Values whose lowest k limbs are all zeros or all ones."""
    n = radix32.limb_count(modulus)
    for k in range(1, n):
        for low in (0, (1 << 32 * k) - 1, 1 << 32 * k - 1):
            for high in (0, 1, modulus.p >> 32 * k):
                value = (high << 32 * k | low) % modulus.p
                operands = [value] if emit is radix32.sqr_mont_lt_2p else [value, 1]
                expected = value * operands[-1] * radix_inverse(modulus) % modulus.p
                assert run(emit, modulus, *operands) % modulus.p == expected


@pytest.mark.parametrize(
    "emit, modulus, wide, low, instructions",
    [
        (radix32.add_mod, FQ, 0, 0, 38),
        (radix32.sub_mod, FQ, 0, 0, 37),
        (radix32.mul_mont, FQ, 288, 2, 651),
        (radix32.sqr_mont, FQ, 222, 2, 552),
        (radix32.add_mod, FR, 0, 0, 26),
        (radix32.sub_mod, FR, 0, 0, 25),
        (radix32.mul_mont, FR, 112, 0, 321),
        (radix32.sqr_mont, FR, 84, 0, 300),
        (radix32.mul_shoup, FR, 86, 14, 237),
    ],
)
def test_programs_cost_what_is_stated(
    emit: Callable[..., object], modulus: Modulus, wide: int, low: int, instructions: int
) -> None:
    program = PROGRAMS[emit, modulus]
    counts = program.wide_products, program.low_products, len(program.instructions)
    assert counts == (wide, low, instructions)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=[f"{e.__name__}-{m.name}" for e, m in PROGRAMS])
def test_the_ptx_reads_no_input_after_an_output_is_written(program: Program) -> None:
    lines = program.text().splitlines()
    copies = lines[-1 - len(program.outputs) : -1]
    assert [re.fullmatch(rf"mov\.b32 \${k}, t\d+;", line) is not None for k, line in enumerate(copies)] == [
        True
    ] * len(program.outputs)
    before = "\n".join(lines[: -1 - len(program.outputs)])
    operands = {int(k) for k in re.findall(r"\$(\d+)", before)}
    assert operands == set(range(len(program.outputs), len(program.outputs) + len(program.inputs)))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=[f"{e.__name__}-{m.name}" for e, m in PROGRAMS])
def test_in_the_ptx_the_flag_is_read_if_and_only_if_the_last_instruction_that_touches_it_set_it(
    program: Program,
) -> None:
    pending = False
    for line in program.text().splitlines():
        mnemonic = line.split()[0]
        reads = mnemonic.startswith(("addc", "subc", "madc"))
        assert not reads or pending, line
        assert not pending or reads or ".cc" not in mnemonic, line
        if reads or ".cc" in mnemonic:
            pending = ".cc" in mnemonic
    assert not pending


def test_a_text_is_the_ptx_of_its_instructions() -> None:
    asm = Asm()
    a, b = asm.inputs(2), asm.inputs(2)
    chain = asm.chain()
    low, high = chain.mad_wide(a[0], b[0], a[1], 0)
    top = chain.add(b[1], 0x10)
    assert asm.program([low, top]).text().splitlines() == [
        "{",
        ".reg .b32 t<3>;",
        ".reg .pred q<3>;",
        "mad.lo.cc.u32 t0, $2, $4, $3;",
        "madc.hi.cc.u32 t1, $2, $4, 0x0;",
        "addc.u32 t2, $5, 0x10;",
        "mov.b32 $0, t0;",
        "mov.b32 $1, t2;",
        "}",
    ]


def test_a_carry_that_nobody_takes_fails_on_plain_integers() -> None:
    asm = Asm()
    x, y = asm.inputs(2)
    program = asm.program([asm.chain().add(x, y)])
    assert program.run([2**32 - 2, 1]) == [2**32 - 1]
    with pytest.raises(AssertionError, match="loses a carry"):
        program.run([2**32 - 1, 1])


def test_two_chains_that_are_mixed_fail_when_recorded() -> None:
    asm = Asm()
    x, y = asm.inputs(2)
    one, other = asm.chain(), asm.chain()
    one.add(x, y)
    other.add(x, y)
    one.add(x, y)
    with pytest.raises(AssertionError, match="breaks a carry chain"):
        other.add(x, y)
