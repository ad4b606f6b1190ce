"""Functions on field values inside compiled code, for every form: constants, squares, reductions, masks, lanes.

They are ordinary names to call from jitted code only; `field_type` has the types and operators, `field_memory` loads
and stores. `fq2` adds the same names for the quadratic extension.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, overload

from cuzk.kernels.codegen import radix52, radix64
from cuzk.kernels.codegen.llvm import I64, LANES, VECTOR
from cuzk.kernels.field_memory import (
    gather,
    load,
    load_at,
    prefetch,
    sign_mask,
    spill,
    store,
    store_at,
    unspill,
)
from cuzk.kernels.field_type import (
    FQ,
    FQ8,
    FR,
    FR8,
    Element,
    FieldForm,
    FormType,
    Mask,
    as_carried,
    carried_type,
    emit_product,
    machine,
    pack_words,
    product_type,
    unpack_words,
)

__all__ = [
    "FQ", "FQ8", "FR", "FR8", "any_lane", "broadcast", "canonical", "carried", "first_lane", "from_mont", "from_words",
    "gather", "is_zero", "lanes_of", "load", "load_at", "mask_bits", "negate_where", "one", "prefetch", "r_cubed", "rotate_lanes", "select",
    "sign_mask", "sqr", "store", "store_at", "spill", "to_mont", "to_words",
    "unspill", "words_of", "zero",
]  # fmt: skip


def sqr(x: Any) -> Any:
    """x*x, cheaper than the product where the form has a squaring program."""
    raise NotImplementedError("called from compiled code only")


@infer_global(sqr)
class _Sqr(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Element):
            return signature(product_type(args[0], args[0]), *args)
        return None


@lower_builtin(sqr, Element)
def _lower_sqr(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return emit_product(builder, sig.args, args)


def _field_constant(value_of: Callable[[FieldForm], int]) -> Any:
    """A function `f(form)` of compiled code that yields a constant: canonical, the same in every lane."""

    @intrinsic
    def constant(typingctx: Any, form: Any) -> Any:
        if not (isinstance(form, FormType) and isinstance(form.form, FieldForm)):
            return None
        field: FieldForm = form.form
        value = value_of(field) % field.modulus.p

        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            m = machine(builder, field)
            if field.lanes == 1:
                return m.const(value)
            return pack_words(builder, radix52.constant(m, value, field.limbs), field)

        return Element(field)(form), lower

    return constant


_zero = _field_constant(lambda form: 0)
_one = _field_constant(lambda form: form.radix)
_plain_one = _field_constant(lambda form: 1)
_r_squared = _field_constant(lambda form: form.radix**2)
r_cubed = _field_constant(lambda form: form.radix**3)


def zero(form: Any) -> Any:
    """0."""
    raise NotImplementedError("called from compiled code only")


def one(form: Any) -> Any:
    """1 in Montgomery form."""
    raise NotImplementedError("called from compiled code only")


def is_field(form: types.Type) -> bool:
    """Whether a typed argument is the form of a prime field (and not of an extension)."""
    return isinstance(form, FormType) and isinstance(form.form, FieldForm)


@overload(zero)
def _overload_zero(form):
    return (lambda form: _zero(form)) if is_field(form) else None


@overload(one)
def _overload_one(form):
    return (lambda form: _one(form)) if is_field(form) else None


@intrinsic
def _carried(typingctx, x):
    result = carried_type(x)

    def lower(context, builder, sig, args):
        if x.carried:
            return args[0]
        return pack_words(builder, as_carried(builder, x, args[0])[1], x.form)

    return result(x), lower


@intrinsic
def _canonical(typingctx, x):
    def lower(context, builder, sig, args):
        if x.form.lanes == 1:
            return args[0]
        element, limbs = as_carried(builder, x, args[0])
        limbs = radix52.canonical(machine(builder, x.form), limbs, element.high, x.form.modulus)
        return pack_words(builder, limbs, x.form)

    return Element(x.form)(x), lower


def carried(x):
    """The same value with limbs carried, in [0, k*p): do it once where a sum enters several products."""
    raise NotImplementedError("called from compiled code only")


def canonical(x):
    """The same value in [0, p). Cost about a third of a product for each halving of the range."""
    raise NotImplementedError("called from compiled code only")


@overload(carried)
def _overload_carried(x):
    return (lambda x: _carried(x)) if isinstance(x, Element) else None


@overload(canonical)
def _overload_canonical(x):
    return (lambda x: _canonical(x)) if isinstance(x, Element) else None


def to_mont(form, x):
    """x*R for a plain x, canonical."""
    raise NotImplementedError("called from compiled code only")


def from_mont(form, x):
    """x/R: a plain, canonical value."""
    raise NotImplementedError("called from compiled code only")


@overload(to_mont)
def _overload_to_mont(form, x):
    return (lambda form, x: _canonical(x * _r_squared(form))) if is_field(form) else None


@overload(from_mont)
def _overload_from_mont(form, x):
    return (lambda form, x: _canonical(x * _plain_one(form))) if is_field(form) else None


# Masks: one truth value a lane.


@intrinsic
def _is_zero(typingctx: Any, x: Any) -> Any:
    assert x.carried and x.high == 1, x

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if x.form.lanes == 1:
            return builder.icmp_unsigned("==", args[0], ir.Constant(args[0].type, 0))
        any_bit, *rest = unpack_words(builder, args[0], x.form)
        for limb in rest:
            any_bit = builder.or_(any_bit, limb)
        return builder.icmp_unsigned("==", any_bit, ir.Constant(VECTOR, [0] * LANES))

    return Mask(x.form.lanes)(x), lower


@intrinsic
def _select(typingctx: Any, mask: Any, a: Any, b: Any) -> Any:
    assert a.carried and b.carried, (a, b)
    form = a.form

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if form.lanes == 1:
            return builder.select(*args)
        pairs = zip(unpack_words(builder, args[1], form), unpack_words(builder, args[2], form), strict=True)
        return pack_words(builder, [builder.select(args[0], x, y) for x, y in pairs], form)

    return Element(form, 0, max(a.high, b.high))(mask, a, b), lower


def is_zero(x: Any) -> Any:
    """Mask of the lanes whose value is 0."""
    raise NotImplementedError("called from compiled code only")


def select(mask: Any, a: Any, b: Any) -> Any:
    """a where the mask is set, else b."""
    raise NotImplementedError("called from compiled code only")


def negate_where(mask: Any, x: Any) -> Any:
    """-x where the mask is set, else x."""
    raise NotImplementedError("called from compiled code only")


@overload(is_zero)
def _overload_is_zero(x):
    return (lambda x: _is_zero(_canonical(x))) if isinstance(x, Element) else None


@overload(select)
def _overload_select(mask, a, b):
    return (lambda mask, a, b: _select(mask, _carried(a), _carried(b))) if isinstance(a, Element) else None


@intrinsic
def _negate_where(typingctx: Any, mask: Any, x: Any) -> Any:
    form, reach = x.form, max(x.low, x.high)
    result = x if form.lanes == 1 else Element(form, reach, reach, carried=False)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if form.lanes == 1:
            m = machine(builder, form)
            return builder.select(args[0], radix64.sub_mod(m, m.const(0), args[1], form.modulus), args[1])
        limbs = unpack_words(builder, args[1], form)
        return pack_words(builder, [builder.select(args[0], builder.neg(w), w) for w in limbs], form)

    return result(mask, x), lower


@overload(negate_where)
def _overload_negate_where(mask, x):
    return (lambda mask, x: _negate_where(mask, x)) if isinstance(x, Element) else None


def lanes_of(form: Any) -> Any:
    """Elements a value, known at compile time."""
    raise NotImplementedError("called from compiled code only")


def words_of(form: Any) -> Any:
    """uint64 words of an element in memory, known at compile time."""
    raise NotImplementedError("called from compiled code only")


@overload(lanes_of)
def _overload_lanes_of(form):
    lanes = form.form.lanes
    return lambda form: lanes


@overload(words_of)
def _overload_words_of(form):
    words = form.form.words
    return lambda form: words


@intrinsic
def mask_bits(typingctx: Any, mask: Any) -> Any:
    """The mask as an integer, bit i for lane i."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(mask.lanes)) if mask.lanes > 1 else args[0]
        return builder.zext(bits, I64)

    return types.int64(mask), lower


@intrinsic
def any_lane(typingctx, mask):
    """Whether the mask is set in any lane."""

    def lower(context, builder, sig, args):
        if mask.lanes == 1:
            return args[0]
        bits = ir.IntType(mask.lanes)
        return builder.icmp_unsigned("!=", builder.bitcast(args[0], bits), ir.Constant(bits, 0))

    return types.boolean(mask), lower


class _MaskOperator(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(args[0], *args) if all(isinstance(a, Mask) for a in args) else None


infer_global(operator.and_)(type("_MaskAnd", (_MaskOperator,), {}))
infer_global(operator.or_)(type("_MaskOr", (_MaskOperator,), {}))
infer_global(operator.invert)(type("_MaskInvert", (_MaskOperator,), {}))


@lower_builtin(operator.and_, Mask, Mask)
def _mask_and(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.and_(*args)


@lower_builtin(operator.or_, Mask, Mask)
def _mask_or(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.or_(*args)


@lower_builtin(operator.invert, Mask)
def _mask_invert(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.not_(args[0])


# Lanes: what an inversion needs to work on one number.


@intrinsic
def rotate_lanes(typingctx: Any, x: Any, count: Any) -> Any:
    """Lane i takes the value of lane i + count (mod 8); `count` is a literal."""
    shift = count.literal_value if isinstance(count, types.IntegerLiteral) else None
    if shift is None:
        return None
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [(i + shift) % LANES for i in range(LANES)])

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        limbs = unpack_words(builder, args[0], x.form)
        return pack_words(builder, [builder.shuffle_vector(w, w, order) for w in limbs], x.form)

    return x(x, count), lower


@intrinsic
def first_lane(typingctx: Any, x: Any) -> Any:
    """The number in lane 0 of a canonical value as one-lane element (the same integer, not the same field value)."""
    assert x.carried and x.high == 1, x
    single = FR if x.form.modulus is FR.modulus else FQ

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        limbs = unpack_words(builder, args[0], x.form)
        words = radix52.pack64(machine(builder, x.form), limbs, single.limbs)
        lane = [builder.extract_element(word, ir.Constant(ir.IntType(32), 0)) for word in words]
        return machine(builder, single).join(lane)

    return Element(single)(x), lower


@intrinsic
def broadcast(typingctx: Any, form: Any, x: Any) -> Any:
    """The number of a one-lane element in every lane of an eight-lane form (the same integer)."""
    target: FieldForm = form.form

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = machine(builder, x.form).split(args[1], x.form.limbs)
        undefined, first = ir.Constant(VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        spread = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        vectors = [
            builder.shuffle_vector(builder.insert_element(undefined, word, first), undefined, spread)
            for word in words
        ]
        limbs = radix52.unpack64(machine(builder, target), vectors, target.limbs)
        return pack_words(builder, limbs, target)

    return Element(target)(form, x), lower


@intrinsic
def to_words(typingctx: Any, x: Any) -> Any:
    """The 64-bit words of a one-lane element, least significant first, as a tuple."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = machine(builder, x.form).split(args[0], x.form.limbs)
        return context.make_tuple(builder, sig.return_type, words)

    return types.UniTuple(types.uint64, x.form.limbs)(x), lower


@intrinsic
def from_words(typingctx: Any, form: Any, words: Any) -> Any:
    """A one-lane element from its 64-bit words, which must be below p."""
    target: FieldForm = form.form

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lane = [builder.extract_value(args[1], i) for i in range(target.limbs)]
        assert all(word.type == I64 for word in lane)
        return machine(builder, target).join(lane)

    return Element(target)(form, words), lower
