"""Loose values in scratch, constants for all lanes: for algorithms that come back to a value many times.

Places of scratch are those of `spill`. There a value is carried and below 2p; here its limbs may be loose and
the caller states a bound. A row of a *limb table* is one constant, the same in every lane.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from cuzk.kernels.codegen import radix52
from cuzk.kernels.codegen.llvm import I64, Radix52Llvm
from cuzk.kernels.field_memory import place_pointers, read_place, word_pointer, write_place
from cuzk.kernels.field_type import Element, FieldForm
from cuzk.kernels.lowering import eight_lanes


def limb_table(form: FieldForm, values: Iterable[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """(n, limbs) uint64: plain values brought to Montgomery form, one a row, for `load_same`."""
    p, radix = form.modulus.p, form.radix
    limbs = [form.modulus.limbs(value * radix % p, form.limbs, form.limb_bits) for value in values]
    return np.array(limbs, np.uint64).reshape(-1, form.limbs)


@intrinsic
def load_same(typingctx: Any, form: Any, table: Any, row: Any) -> Any:
    """The constant in row `row` of a limb table, in every lane."""
    field: FieldForm = form.form

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        index = context.cast(builder, args[2], row, types.intp)
        pointer = word_pointer(context, builder, table, args[1], index, ir.Constant(I64, 0))
        words = [builder.load(builder.gep(pointer, [ir.Constant(I64, i)])) for i in range(field.limbs)]
        return field.lowering.spread_words(builder, field, words)

    return Element(field)(form, table, row), lower


@intrinsic
def spill_loose(typingctx: Any, form: Any, scratch: Any, i: Any, x: Any) -> Any:
    """Put a value that is not negative into place i of scratch, its limbs as they are."""
    assert x.low == 0, x

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        write_place(context, builder, sig, args)
        return context.get_dummy_value()

    return types.void(form, scratch, i, x), lower


@intrinsic
def unspill_loose(typingctx: Any, form: Any, scratch: Any, i: Any, bound: Any) -> Any:
    """The value in place i of scratch; the caller knows that it is below `bound`*p, a literal."""
    field: FieldForm = form.form
    if not isinstance(bound, types.IntegerLiteral):
        return None
    result = Element(field) if field.lanes == 1 else Element(field, 0, bound.literal_value, is_carried=False)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return read_place(context, builder, sig, args)

    return result(form, scratch, i, bound), lower


@intrinsic
def sum_of_products(
    typingctx: Any, form: Any, scratch: Any, place: Any, table: Any, row: Any, count: Any
) -> Any:
    """Sum of scratch[place + i] * table[row + i] over `count` terms: eight lanes reduce it once, below 2p.

    The values are carried, as `spill` leaves them. The caller knows that their bounds, in multiples of p, add
    up to the form's product limit at most. Cost, eight lanes: a term is half a product, and half is the end.
    """
    field: FieldForm = form.form
    result = Element(field) if field.lanes == 1 else Element(field, 0, 2)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        [first_place] = place_pointers(context, builder, sig, args)
        index, terms = (context.cast(builder, args[i], sig.args[i], types.intp) for i in (4, 5))
        first_row = word_pointer(context, builder, table, args[3], index, ir.Constant(I64, 0))
        return field.lowering.sum_of_products(builder, field, first_place, first_row, terms)

    return result(form, scratch, place, table, row, count), lower


@intrinsic
def lifted(typingctx: Any, x: Any) -> Any:
    """The same field value, no longer negative: a multiple of p is added. Limbs stay loose."""
    field: FieldForm = x.form
    if field.lanes == 1 or x.low == 0:
        return x(x), lambda context, builder, sig, args: args[0]

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        limbs = eight_lanes.limbs_of(builder, field, args[0])
        limbs = radix52.add_multiple(Radix52Llvm(builder), limbs, x.low, field.modulus)
        return eight_lanes.value_of(builder, field, limbs)

    return Element(field, 0, x.low + x.high, is_carried=False)(x), lower
