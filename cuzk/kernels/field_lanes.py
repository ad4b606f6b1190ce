"""Masks, lanes and words: what leaves the field in compiled code, and comes back."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from cuzk.kernels.codegen import radix52
from cuzk.kernels.codegen.llvm import I64, LANES, Radix52Llvm
from cuzk.kernels.field_type import FQ, FR, Element, FieldForm, Mask
from cuzk.kernels.lowering import eight_lanes, one_lane


def _mask_bits(builder: Any, mask: Mask, value: Any) -> Any:
    return (one_lane if mask.lanes == 1 else eight_lanes).mask_bits(builder, value)


@intrinsic
def mask_bits(typingctx: Any, mask: Any) -> Any:
    """The mask as an integer, bit i for lane i."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _mask_bits(builder, mask, args[0])

    return types.int64(mask), lower


@intrinsic
def any_lane(typingctx: Any, mask: Any) -> Any:
    """Whether the mask is set in any lane."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.icmp_unsigned("!=", _mask_bits(builder, mask, args[0]), ir.Constant(I64, 0))

    return types.boolean(mask), lower


@intrinsic
def rotate_lanes(typingctx: Any, x: Any, count: Any) -> Any:
    """Lane i takes the value of lane i + count (mod 8); `count` is a literal."""
    shift = count.literal_value if isinstance(count, types.IntegerLiteral) else None
    if shift is None:
        return None
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [(i + shift) % LANES for i in range(LANES)])

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        limbs = eight_lanes.limbs_of(builder, x.form, args[0])
        return eight_lanes.value_of(builder, x.form, [builder.shuffle_vector(w, w, order) for w in limbs])

    return x(x, count), lower


@intrinsic
def first_lane(typingctx: Any, x: Any) -> Any:
    """The integer in lane 0 of a canonical value as a one-lane element: another field value, R differs."""
    assert x == x.canonical(), x
    single = FR if x.form.modulus is FR.modulus else FQ

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        limbs = eight_lanes.limbs_of(builder, x.form, args[0])
        words = radix52.pack64(Radix52Llvm(builder), limbs, single.limbs)
        lane = [builder.extract_element(word, ir.Constant(ir.IntType(32), 0)) for word in words]
        return one_lane.value_of(builder, single, lane)

    return Element(single)(x), lower


@intrinsic
def broadcast(typingctx: Any, form: Any, x: Any) -> Any:
    """The number of a one-lane element in every lane of an eight-lane form (the same integer)."""
    target: FieldForm = form.form

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = one_lane.limbs_of(builder, x.form, args[1])
        vectors = [eight_lanes.spread(builder, word) for word in words]
        limbs = radix52.unpack64(Radix52Llvm(builder), vectors, target.limbs)
        return eight_lanes.value_of(builder, target, limbs)

    return Element(target)(form, x), lower


@intrinsic
def to_words(typingctx: Any, x: Any) -> Any:
    """The 64-bit words of a one-lane element, least significant first, as a tuple."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.make_tuple(builder, sig.return_type, one_lane.limbs_of(builder, x.form, args[0]))

    return types.UniTuple(types.uint64, x.form.limbs)(x), lower


@intrinsic
def from_words(typingctx: Any, form: Any, words: Any) -> Any:
    """An element of a form with one lane from its 64-bit words, a tuple; they must be below p."""
    target: FieldForm = form.form

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lane = [builder.extract_value(args[1], i) for i in range(words.count)]
        return target.lowering.of_words(builder, target, lane)

    return Element(target)(form, words), lower
