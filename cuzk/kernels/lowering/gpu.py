"""One element a value on an NVIDIA GPU, of 32-bit limbs: an array of words, canonical after every operation.

Every operation is one block of inline PTX, so that its carry chains stay whole (`codegen.radix32`). A row of
memory is the limbs one after another, read and written 16 bytes at a time: it begins at a multiple of 16
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from cuzk.kernels.codegen import asm, radix32
from cuzk.kernels.modulus import Modulus

WIDTH = asm.WIDTH
limb_count = radix32.limb_count

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_QUAD = ir.VectorType(_I32, 4)
_QUAD_BYTES = 16


def value_type(form: Any) -> Any:
    return ir.ArrayType(_I32, form.limbs)


def mask_type() -> Any:
    return ir.IntType(1)


def sum_type(a: Any, b: Any, sign: int) -> Any:
    return a


def product_type(a: Any, b: Any) -> Any:
    return a


def negation_type(a: Any) -> Any:
    return a


@cache
def _program(emit: Callable[..., Any], modulus: Modulus, elements: int) -> asm.Program:
    return radix32.build(emit, modulus, elements)


def inline(builder: Any, form: Any, emit: Callable[..., Any], *values: Any) -> Any:
    """The value that the program `emit` makes of these, as one block of PTX."""
    program = _program(emit, form.modulus, len(values))
    words = [word for value in values for word in limbs_of(builder, form, value)]
    result = ir.LiteralStructType([_I32] * form.limbs)
    constraints = ",".join(["=r"] * form.limbs + ["r"] * len(words))
    function = ir.FunctionType(result, [_I32] * len(words))
    block = builder.asm(function, program.text(), constraints, words, side_effect=False)
    return value_of(builder, form, [builder.extract_value(block, i) for i in range(form.limbs)])


def constant(builder: Any, form: Any, value: int) -> Any:
    return ir.Constant(
        value_type(form), [ir.Constant(_I32, w) for w in radix32.constant(value, form.modulus)]
    )


def add(builder: Any, form: Any, a: Any, b: Any) -> Any:
    return inline(builder, form, radix32.add_mod, a, b)


def sub(builder: Any, form: Any, a: Any, b: Any) -> Any:
    return inline(builder, form, radix32.sub_mod, a, b)


def product(builder: Any, form: Any, a: Any, b: Any | None) -> Any:
    """a*b; a*a, by the squaring program, without b."""
    if b is None:
        return inline(builder, form, radix32.sqr_mont, a)
    return inline(builder, form, radix32.mul_mont, a, b)


def carried(builder: Any, element: Any, value: Any) -> Any:
    return value


def canonical(builder: Any, element: Any, value: Any) -> Any:
    return value


def is_zero(builder: Any, form: Any, value: Any) -> Any:
    any_bit, *rest = limbs_of(builder, form, value)
    for limb in rest:
        any_bit = builder.or_(any_bit, limb)
    return builder.icmp_unsigned("==", any_bit, ir.Constant(_I32, 0))


def select(builder: Any, form: Any, mask: Any, a: Any, b: Any) -> Any:
    pairs = zip(limbs_of(builder, form, a), limbs_of(builder, form, b), strict=True)
    return value_of(builder, form, [builder.select(mask, x, y) for x, y in pairs])


def negate_where(builder: Any, form: Any, mask: Any, value: Any) -> Any:
    return select(builder, form, mask, inline(builder, form, radix32.neg_mod, value), value)


def encoded_type(element: Any) -> Any:
    return element


def is_below_p(builder: Any, form: Any, value: Any) -> Any:
    """The most significant difference decides."""
    below = ir.Constant(ir.IntType(1), 0)
    for limb, p in zip(
        limbs_of(builder, form, value), radix32.constant(form.modulus.p, form.modulus), strict=True
    ):
        p_limb = ir.Constant(_I32, p)
        is_equal = builder.icmp_unsigned("==", limb, p_limb)
        below = builder.select(is_equal, below, builder.icmp_unsigned("<", limb, p_limb))
    return below


def mask_bits(builder: Any, mask: Any) -> Any:
    return builder.zext(mask, _I64)


def limbs_of(builder: Any, form: Any, value: Any) -> list[Any]:
    return cgutils.unpack_tuple(builder, value, form.limbs)  # type: ignore[no-any-return]


def value_of(builder: Any, form: Any, limbs: list[Any]) -> Any:
    return cgutils.pack_array(builder, limbs)


def of_words(builder: Any, form: Any, words: list[Any]) -> Any:
    """The element whose 64-bit words these are."""
    half = ir.Constant(_I64, WIDTH)
    limbs = [part for word in words for part in (word, builder.lshr(word, half))]
    return value_of(builder, form, [builder.trunc(limb, _I32) for limb in limbs])


def _quads(builder: Any, pointer: Any, count: int) -> list[Any]:
    quads = builder.bitcast(pointer, _QUAD.as_pointer())
    return [builder.gep(quads, [ir.Constant(_I64, i)]) for i in range(count // 4)]


def load_rows(builder: Any, form: Any, pointers: list[Any]) -> Any:
    """The element whose words begin at the only pointer."""
    quads = [builder.load(place, align=_QUAD_BYTES) for place in _quads(builder, pointers[0], form.limbs)]
    positions = [ir.Constant(_I32, i) for i in range(4)]
    return value_of(builder, form, [builder.extract_element(quad, i) for quad in quads for i in positions])


def load_big_endian(builder: Any, form: Any, pointers: list[Any]) -> Any:
    """The number in the bytes at the only pointer, most significant first; they begin at a multiple of 16."""
    words = builder.bitcast(pointers[0], _I32.as_pointer())
    reversed_limbs = limbs_of(builder, form, load_rows(builder, form, [words]))[::-1]
    return value_of(builder, form, [builder.bswap(limb) for limb in reversed_limbs])


def store_rows(builder: Any, form: Any, value: Any, pointers: list[Any]) -> None:
    limbs = limbs_of(builder, form, value)
    for k, place in enumerate(_quads(builder, pointers[0], form.limbs)):
        quad = ir.Constant(_QUAD, ir.Undefined)
        for i in range(4):
            quad = builder.insert_element(quad, limbs[4 * k + i], ir.Constant(_I32, i))
        builder.store(quad, place, align=_QUAD_BYTES)


def store_big_endian(builder: Any, form: Any, value: Any, pointers: list[Any]) -> None:
    """The number as bytes, most significant first, from the only pointer on: a multiple of 16."""
    words = builder.bitcast(pointers[0], _I32.as_pointer())
    reversed_limbs = [builder.bswap(limb) for limb in limbs_of(builder, form, value)[::-1]]
    store_rows(builder, form, value_of(builder, form, reversed_limbs), [words])
