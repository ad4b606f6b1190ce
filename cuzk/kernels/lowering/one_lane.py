"""One element a value, of 64-bit limbs: an LLVM integer as wide as R, canonical after every operation."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from cuzk.kernels.codegen import radix64
from cuzk.kernels.codegen.llvm import I64, Radix64Llvm
from cuzk.kernels.lowering.shared import REGISTER_CALL, shared_function

WIDTH = radix64.WIDTH
limb_count = radix64.limb_count


def _machine(builder: Any, form: Any) -> Radix64Llvm:
    return Radix64Llvm(builder, WIDTH * form.limbs)


def value_type(form: Any) -> Any:
    return ir.IntType(WIDTH * form.limbs)


def mask_type() -> Any:
    return ir.IntType(1)


def sum_type(a: Any, b: Any, sign: int) -> Any:
    return a


def product_type(a: Any, b: Any) -> Any:
    return a


def negation_type(a: Any) -> Any:
    return a


def constant(builder: Any, form: Any, value: int) -> Any:
    return ir.Constant(value_type(form), value)


def add(builder: Any, form: Any, a: Any, b: Any) -> Any:
    return radix64.add_mod(_machine(builder, form), a, b, form.modulus)


def sub(builder: Any, form: Any, a: Any, b: Any) -> Any:
    return radix64.sub_mod(_machine(builder, form), a, b, form.modulus)


def product(builder: Any, form: Any, a: Any, b: Any | None) -> Any:
    """a*b; a*a without b."""

    def emit(body: Any, arguments: Any) -> Any:
        left, right = arguments
        return radix64.mul_mont(_machine(body, form), left, right, form.modulus)

    width = value_type(form)
    function = shared_function(builder, f"cuzk_mul_{form.name}", width, [width, width], emit)
    return builder.call(function, [a, a if b is None else b], cconv=REGISTER_CALL)


def sum_of_products(builder: Any, form: Any, scratch: Any, table: Any, count: Any) -> Any:
    """The sum over `count` places of scratch and rows of a limb table, from these pointers on."""
    words = I64.as_pointer()

    def emit(body: Any, arguments: Any) -> Any:
        places, rows, terms = arguments
        total = body.alloca(value_type(form))
        body.store(constant(body, form, 0), total)
        with cgutils.for_range(body, terms) as loop:
            first_word = body.mul(loop.index, ir.Constant(I64, form.limbs))
            a, b = (load_limbs(body, form, body.gep(first, [first_word])) for first in (places, rows))
            body.store(add(body, form, body.load(total), product(body, form, a, b)), total)
        return body.load(total)

    name = f"cuzk_sum_of_products_{form.name}"
    function = shared_function(builder, name, value_type(form), [words, words, I64], emit)
    return builder.call(function, [scratch, table, count], cconv=REGISTER_CALL)


def carried(builder: Any, element: Any, value: Any) -> Any:
    return value


def canonical(builder: Any, element: Any, value: Any) -> Any:
    return value


def is_zero(builder: Any, form: Any, value: Any) -> Any:
    return builder.icmp_unsigned("==", value, constant(builder, form, 0))


def select(builder: Any, form: Any, mask: Any, a: Any, b: Any) -> Any:
    return builder.select(mask, a, b)


def negate_where(builder: Any, form: Any, mask: Any, value: Any) -> Any:
    return builder.select(mask, sub(builder, form, constant(builder, form, 0), value), value)


def mask_bits(builder: Any, mask: Any) -> Any:
    return builder.zext(mask, I64)


def limbs_of(builder: Any, form: Any, value: Any) -> list[Any]:
    """The value as 64-bit words, which is also how it lies in memory and in scratch."""
    return _machine(builder, form).split(value, form.limbs)


def value_of(builder: Any, form: Any, limbs: list[Any]) -> Any:
    return _machine(builder, form).join(limbs)


def of_words(builder: Any, form: Any, words: list[Any]) -> Any:
    """The value whose 64-bit words these are."""
    return value_of(builder, form, words)


def _places(builder: Any, pointer: Any, count: int) -> list[Any]:
    return [builder.gep(pointer, [ir.Constant(I64, i)]) for i in range(count)]


def load_rows(builder: Any, form: Any, pointers: list[Any]) -> Any:
    """The element whose words begin at the only pointer."""
    return value_of(
        builder, form, [builder.load(place) for place in _places(builder, pointers[0], form.words)]
    )


def store_rows(builder: Any, form: Any, value: Any, pointers: list[Any]) -> None:
    words = limbs_of(builder, form, value)
    for word, place in zip(words, _places(builder, pointers[0], form.words), strict=True):
        builder.store(word, place)


def load_big_endian(builder: Any, form: Any, pointers: list[Any]) -> Any:
    """The number in the bytes at the only pointer, most significant first."""
    places = reversed(_places(builder, builder.bitcast(pointers[0], I64.as_pointer()), form.limbs))
    return value_of(builder, form, [builder.bswap(builder.load(place, align=1)) for place in places])


def store_big_endian(builder: Any, form: Any, value: Any, pointers: list[Any]) -> None:
    places = reversed(_places(builder, builder.bitcast(pointers[0], I64.as_pointer()), form.limbs))
    for word, place in zip(limbs_of(builder, form, value), places, strict=True):
        builder.store(builder.bswap(word), place, align=1)


def encoded_type(element: Any) -> Any:
    return element


def is_below_p(builder: Any, form: Any, value: Any) -> Any:
    return builder.icmp_unsigned("<", value, constant(builder, form, form.modulus.p))


def load_limbs(builder: Any, form: Any, pointer: Any) -> Any:
    """A value that `store_limbs` left in scratch, `pointer` to its first word."""
    return load_rows(builder, form, [pointer])


def store_limbs(builder: Any, form: Any, value: Any, pointer: Any) -> None:
    store_rows(builder, form, value, [pointer])


def spread_words(builder: Any, form: Any, words: list[Any]) -> Any:
    """The value whose limbs are these, in every lane."""
    return value_of(builder, form, words)
