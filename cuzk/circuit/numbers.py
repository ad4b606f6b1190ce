"""Free variables, and the small gadgets between numbers, bits and inputs.

Free variables are those whose values are given from outside, in the order of their allocation. Everything
else a circuit computes. Sources: bellperson, gadgets/num.rs and multipack.rs; storage-proofs-core,
gadgets/constraint.rs and util.rs.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuzk.circuit.builder import FALSE_BIT, Bits, CircuitBuilder
from cuzk.circuit.r1cs import LC, ONE, Template, Tracer, Witness
from cuzk.kernels.circuit.sha256 import PATTERN_BITS
from cuzk.kernels.circuit.witness import COPY, FREE, NOTHING, PACK, PRODUCTS, TO_BITS
from cuzk.kernels.modulus import FR

PACKED_BITS = FR.bits - 1
"""Bits that always fit an Fr."""

BITS_OF_BYTES = 8


def witness(kind: int, *words: int) -> Witness:
    return Witness(kind, np.array(words, dtype=np.uint32))


def free_numbers(builder: CircuitBuilder, count: int) -> list[int]:
    """New free variables of any value."""
    return [int(variable) for variable in builder.instance(free_numbers_template(count))]


def free_number(builder: CircuitBuilder) -> int:
    (variable,) = free_numbers(builder, 1)
    return variable


@lru_cache(maxsize=64)
def free_numbers_template(count: int) -> Template:
    tracer = Tracer()
    return tracer.template("free numbers", witness(FREE), [tracer.alloc() for _ in range(count)])


def free_bits(builder: CircuitBuilder, count: int) -> Bits:
    """New free bits, each with its own row."""
    return builder.instance(free_bits_template(count))


@lru_cache(maxsize=64)
def free_bits_template(count: int) -> Template:
    tracer = Tracer()
    return tracer.template("free bits", witness(FREE), traced_bits(tracer, count))


def traced_bits(tracer: Tracer, count: int) -> list[int]:
    slots = []
    for _ in range(count):
        slots.append(tracer.alloc_bit())
        tracer.enforce_bit(slots[-1])
    return slots


def weighted(slots: list[int] | range) -> LC:
    """The sum of 2^i * slots[i]."""
    return {slot: 1 << i for i, slot in enumerate(slots)}


def to_bits(builder: CircuitBuilder, number: int) -> Bits:
    """The 255 bits of a variable, lowest first. Not strict: bits of a sum that is it mod r will do."""
    return builder.instance(to_bits_template(), numbers=[number])


@lru_cache(maxsize=1)
def to_bits_template() -> Template:
    tracer = Tracer(numbers=1)
    bits = traced_bits(tracer, FR.bits)
    tracer.enforce({}, {}, {**weighted(bits), tracer.numbers[0]: -1})
    return tracer.template("to bits", witness(TO_BITS), bits)


def reverse_bits_of_bytes(bits: Bits) -> Bits:
    """The bits, filled up to whole bytes with zeros, each byte reversed; of whole bytes its own inverse."""
    padding = np.full(-len(bits) % BITS_OF_BYTES, FALSE_BIT)
    return np.concatenate([bits, padding]).reshape(-1, BITS_OF_BYTES)[:, ::-1].ravel()


def pack(builder: CircuitBuilder, bits: Bits) -> int:
    """A new variable with the value of the first 254 bits, lowest first."""
    bits = bits[:PACKED_BITS]
    (number,) = builder.instance(pack_template(len(bits)), bits=bits).tolist()
    return int(number)


@lru_cache(maxsize=64)
def pack_template(count: int) -> Template:
    tracer = Tracer(bits=count)
    number = tracer.alloc()
    tracer.enforce(weighted(tracer.bits), {ONE: 1}, {number: 1})
    return tracer.template("pack", witness(PACK), [number])


def unpack(builder: CircuitBuilder, number: int, count: int) -> Bits:
    """The lowest `count` bits of a variable that has no others, lowest first: the reverse of `pack`."""
    return builder.instance(unpack_template(count), numbers=[number])


@lru_cache(maxsize=64)
def unpack_template(count: int) -> Template:
    tracer = Tracer(numbers=1)
    bits = traced_bits(tracer, count)
    tracer.enforce(weighted(bits), {ONE: 1}, {tracer.numbers[0]: 1})
    return tracer.template("unpack", witness(TO_BITS), bits)


def pack_into_input(builder: CircuitBuilder, bits: Bits) -> None:
    """A new input with the value of up to 254 bits, lowest first."""
    assert len(bits) <= PACKED_BITS, len(bits)
    builder.instance(pack_into_input_template(len(bits)), bits=bits, numbers=[builder.new_input()])


@lru_cache(maxsize=64)
def pack_into_input_template(count: int) -> Template:
    tracer = Tracer(bits=count, numbers=1)
    tracer.enforce(weighted(tracer.bits), {ONE: 1}, {tracer.numbers[0]: 1})
    return tracer.template("pack into input", witness(PACK))


def inputize(builder: CircuitBuilder, number: int) -> None:
    """A new input that equals a variable."""
    builder.instance(inputize_template(), numbers=[builder.new_input(), number])


@lru_cache(maxsize=1)
def inputize_template() -> Template:
    tracer = Tracer(numbers=2)
    new, number = tracer.numbers
    tracer.enforce({new: 1}, {ONE: 1}, {number: 1})
    return tracer.template("input", witness(COPY))


def equate(builder: CircuitBuilder, a: int, b: int) -> None:
    """The row a * ONE = b."""
    builder.instance(equate_template(), numbers=[a, b])


@lru_cache(maxsize=1)
def equate_template() -> Template:
    tracer = Tracer(numbers=2)
    a, b = tracer.numbers
    tracer.enforce({a: 1}, {ONE: 1}, {b: 1})
    return tracer.template("equality", witness(NOTHING))


def add(builder: CircuitBuilder, a: int, b: int) -> int:
    """A new variable with the value a + b."""
    (number,) = builder.instance(add_template(), numbers=[a, b]).tolist()
    return int(number)


@lru_cache(maxsize=1)
def add_template() -> Template:
    tracer = Tracer(numbers=2)
    a, b = tracer.numbers
    return products_template("sum", tracer, [traced_product(tracer, {a: 1, b: 1}, {ONE: 1})])


def multiply(builder: CircuitBuilder, a: int, b: int) -> int:
    """A new variable with the value a * b."""
    (number,) = builder.instance(multiply_template(), numbers=[a, b]).tolist()
    return int(number)


@lru_cache(maxsize=1)
def multiply_template() -> Template:
    tracer = Tracer(numbers=2)
    a, b = tracer.numbers
    return products_template("product", tracer, [traced_product(tracer, {a: 1}, {b: 1})])


def traced_product(tracer: Tracer, a: LC, b: LC) -> int:
    """A new variable with the value a * b: the only row that a template of PRODUCTS consists of."""
    out = tracer.alloc()
    tracer.enforce(a, b, {out: 1})
    return out


def products_template(name: str, tracer: Tracer, outputs: list[int]) -> Template:
    """The template of a tracer that has seen `traced_product` only."""
    template = tracer.template(name, witness(PRODUCTS), outputs)
    assert template.rows == template.aux and template.first_own_slot + template.aux <= PATTERN_BITS, name
    return template
