"""Work buffers: values kept as their limbs, without packing, reduction or carries, for algorithms that come back to
a value many times.

A row of a buffer is one value, eight lanes side by side: lanes * limbs words, from `aligned_empty`. A row of a *limb
table* is one constant, the same for every lane: its limbs. With one lane both are plain elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from cuzk.kernels.codegen import radix52, radix64
from cuzk.kernels.codegen.llvm import I64, LANES, VECTOR
from cuzk.kernels.field_memory import word_pointer
from cuzk.kernels.field_type import Element, FieldForm, machine, pack_words, unpack_words

_ALIGNMENT = 64


def limb_table(form: FieldForm, values: Iterable[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """(n, limbs) rows of canonical values, each in Montgomery form, for `load_same`."""
    width = radix64.WIDTH if form.lanes == 1 else radix52.WIDTH
    p, radix = form.modulus.p, form.radix
    limbs = [form.modulus.limbs(value * radix % p, form.limbs, width) for value in values]
    return np.array(limbs, np.uint64).reshape(-1, form.limbs)


def _row_pointer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Address of row args[2] of array args[1]."""
    row = context.cast(builder, args[2], sig.args[2], types.intp)
    return word_pointer(context, builder, sig.args[1], args[1], row, ir.Constant(I64, 0))


@intrinsic
def load_same(typingctx, form, table, row):
    """The constant in row `row` of a limb table, in every lane."""
    field: FieldForm = form.form

    def lower(context, builder, sig, args):
        pointer = _row_pointer(context, builder, sig, args)
        words = [builder.load(builder.gep(pointer, [ir.Constant(I64, i)])) for i in range(field.limbs)]
        if field.lanes == 1:
            return machine(builder, field).join(words)
        undefined, first = ir.Constant(VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        spread = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        vectors = [builder.insert_element(undefined, word, first) for word in words]
        return pack_words(builder, [builder.shuffle_vector(v, undefined, spread) for v in vectors], field)

    return Element(field)(form, table, row), lower


@intrinsic
def load_limbs(typingctx, form, buffer, row, bound):
    """The value in row `row` of a buffer. `bound` is a literal: the caller knows that the value is below bound*p."""
    field: FieldForm = form.form
    if not isinstance(bound, types.IntegerLiteral):
        return None
    result = Element(field) if field.lanes == 1 else Element(field, 0, bound.literal_value, carried=False)

    def lower(context, builder, sig, args):
        pointer = _row_pointer(context, builder, sig, args)
        if field.lanes == 1:
            words = [builder.load(builder.gep(pointer, [ir.Constant(I64, i)])) for i in range(field.limbs)]
            return machine(builder, field).join(words)
        vectors = builder.bitcast(pointer, VECTOR.as_pointer())
        places = [builder.gep(vectors, [ir.Constant(I64, i)]) for i in range(field.limbs)]
        return pack_words(builder, [builder.load(place, align=_ALIGNMENT) for place in places], field)

    return result(form, buffer, row, bound), lower


@intrinsic
def store_limbs(typingctx, form, buffer, row, x):
    """Write a value that is not negative to row `row` of a buffer, its limbs loose as they are."""
    field: FieldForm = form.form
    assert x.low == 0, x

    def lower(context, builder, sig, args):
        pointer = _row_pointer(context, builder, sig, args)
        if field.lanes == 1:
            for i, word in enumerate(machine(builder, field).split(args[3], field.limbs)):
                builder.store(word, builder.gep(pointer, [ir.Constant(I64, i)]))
        else:
            vectors = builder.bitcast(pointer, VECTOR.as_pointer())
            for i, limb in enumerate(unpack_words(builder, args[3], field)):
                builder.store(limb, builder.gep(vectors, [ir.Constant(I64, i)]), align=_ALIGNMENT)
        return context.get_dummy_value()

    return types.void(form, buffer, row, x), lower


@intrinsic
def lifted(typingctx, x):
    """The same field value, no longer negative: a multiple of p is added, limbs stay loose. Cost an addition."""
    field: FieldForm = x.form
    if field.lanes == 1 or x.low == 0:
        return x(x), lambda context, builder, sig, args: args[0]

    def lower(context, builder, sig, args):
        limbs = unpack_words(builder, args[0], field)
        lifted_limbs = radix52.add_multiple(machine(builder, field), limbs, x.low, field.modulus)
        return pack_words(builder, lifted_limbs, field)

    return Element(field, 0, x.low + x.high, carried=False)(x), lower
