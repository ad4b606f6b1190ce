"""Field arithmetic inside compiled code: operators and functions on values, for every form and for Fq2.

    x, y = load(form, a, i), load(form, b, i)
    store(form, out, i, canonical(sqr(x - y) * x))

Each is one formula, `define`d once: run on types (`field_type`) it infers the result, run on emitted values
it makes the code. The functions are ordinary names, to be called from jitted code only. Memory:
`field_memory`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, overload

from cuzk.kernels.codegen import radix52
from cuzk.kernels.codegen.llvm import I64, LANES, Radix52Llvm
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
    FQ2,
    FQ2_8,
    FQ2_GPU,
    FQ8,
    FQ_GPU,
    FR,
    FR8,
    FR_GPU,
    Element,
    FieldForm,
    FieldValue,
    FormType,
    Fq2,
    Mask,
    PairFormulas,
)
from cuzk.kernels.lowering import eight_lanes, one_lane

__all__ = [
    "FQ", "FQ2", "FQ2_8", "FQ2_GPU", "FQ8", "FQ_GPU", "FR", "FR8", "FR_GPU", "any_lane", "broadcast",
    "canonical", "carried", "define", "first_lane", "fq2", "from_mont", "from_words", "gather",
    "is_below_p", "is_field", "is_zero", "lanes_of", "load", "load_at", "mask_bits", "negate_where",
    "one", "prefetch", "r_cubed", "reduced", "rotate_lanes", "select", "sign_mask", "spill", "sqr", "store",
    "store_at", "to_mont", "to_words", "unspill", "words_of", "zero",
]  # fmt: skip


# Values while code is emitted. They answer what their types answer, and emit code on the way.


@dataclass(frozen=True, slots=True)
class _Emitted:
    """A value of a prime field: its type, and its IR."""

    builder: Any
    type: Element
    ir: Any

    def _new(self, element: Element, value: Any) -> _Emitted:
        return _Emitted(self.builder, element, value)

    @property
    def _form(self) -> FieldForm:
        return self.type.form

    @property
    def _lowering(self) -> Any:
        return self.type.form.lowering

    def __add__(self, other: _Emitted) -> _Emitted:
        return self._new(
            self.type + other.type, self._lowering.add(self.builder, self._form, self.ir, other.ir)
        )

    def __sub__(self, other: _Emitted) -> _Emitted:
        return self._new(
            self.type - other.type, self._lowering.sub(self.builder, self._form, self.ir, other.ir)
        )

    def __mul__(self, other: _Emitted) -> _Emitted:
        a, b = self.carried().ir, other.carried().ir
        return self._new(self.type * other.type, self._lowering.product(self.builder, self._form, a, b))

    def sqr(self) -> _Emitted:
        value = self._lowering.product(self.builder, self._form, self.carried().ir, None)
        return self._new(self.type.sqr(), value)

    def carried(self) -> _Emitted:
        return self._new(self.type.carried(), self._lowering.carried(self.builder, self.type, self.ir))

    def canonical(self) -> _Emitted:
        return self._new(self.type.canonical(), self._lowering.canonical(self.builder, self.type, self.ir))

    def reduced(self) -> _Emitted:
        if self._form.row_high == 1:
            return self.canonical()
        value = self._lowering.reduced(self.builder, self.type, self.ir)
        return self._new(self.type.reduced(), value)

    def is_zero(self) -> _EmittedMask:
        value = self._lowering.is_zero(self.builder, self._form, self.canonical().ir)
        return _EmittedMask(self.builder, self.type.is_zero(), value)

    def is_below_p(self) -> _EmittedMask:
        value = self._lowering.is_below_p(self.builder, self._form, self.ir)
        return _EmittedMask(self.builder, self.type.is_below_p(), value)

    def negate_where(self, mask: _EmittedMask) -> _Emitted:
        value = self._lowering.negate_where(self.builder, self._form, mask.ir, self.ir)
        return self._new(self.type.negate_where(mask.type), value)

    def or_else(self, mask: _EmittedMask, other: _Emitted) -> _Emitted:
        """This value where the mask is set, else the other."""
        a, b = self.carried().ir, other.carried().ir
        value = self._lowering.select(self.builder, self._form, mask.ir, a, b)
        return self._new(self.type.or_else(mask.type, other.type), value)


@dataclass(frozen=True, slots=True)
class _EmittedMask:
    builder: Any
    type: Mask
    ir: Any

    def __and__(self, other: _EmittedMask) -> _EmittedMask:
        return _EmittedMask(self.builder, self.type, self.builder.and_(self.ir, other.ir))

    def __or__(self, other: _EmittedMask) -> _EmittedMask:
        return _EmittedMask(self.builder, self.type, self.builder.or_(self.ir, other.ir))

    def __invert__(self) -> _EmittedMask:
        return _EmittedMask(self.builder, self.type, self.builder.not_(self.ir))


@dataclass(frozen=True, slots=True)
class _EmittedPair(PairFormulas):
    """A value of Fq2."""

    c0: _Emitted
    c1: _Emitted

    def pair(self, c0: _Emitted, c1: _Emitted) -> _EmittedPair:
        return _EmittedPair(c0, c1)

    @property
    def ir(self) -> Any:
        builder = self.c0.builder
        value = ir.Constant(ir.LiteralStructType([self.c0.ir.type, self.c1.ir.type]), ir.Undefined)
        return builder.insert_value(builder.insert_value(value, self.c0.ir, 0), self.c1.ir, 1)


@dataclass(frozen=True, slots=True)
class _EmittedForm:
    builder: Any
    form: Any

    def constant(self, value: int) -> _Emitted:
        form: FieldForm = self.form
        return _Emitted(self.builder, Element(form), form.lowering.constant(self.builder, form, value))

    def pair(self, c0: _Emitted, c1: _Emitted) -> _EmittedPair:
        return _EmittedPair(c0, c1)

    @property
    def of_base(self) -> _EmittedForm:
        return _EmittedForm(self.builder, self.form.base)


def _emitted(builder: Any, value_type: Any, value: Any) -> Any:
    if isinstance(value_type, FormType):
        return _EmittedForm(builder, value_type.form)
    if isinstance(value_type, Mask):
        return _EmittedMask(builder, value_type, value)
    if isinstance(value_type, Fq2):
        parts = (
            _Emitted(builder, part, builder.extract_value(value, i))
            for i, part in enumerate((value_type.c0, value_type.c1))
        )
        return _EmittedPair(*parts)
    return _Emitted(builder, value_type, value)


def define(function: Any, *classes: type) -> Callable[[Any], Any]:
    """Give `function` a meaning in compiled code, for arguments of these classes: the decorated formula."""

    def register(formula: Any) -> Any:
        class Formula(AbstractTemplate):  # type: ignore[misc]
            def generic(self, args: Any, kws: Any) -> Any:
                if len(args) != len(classes) or not all(map(isinstance, args, classes)):
                    return None
                return signature(formula(*args), *args)

        infer_global(function)(Formula)

        @lower_builtin(function, *classes)
        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return formula(*map(_emitted, [builder] * len(args), sig.args, args)).ir

        return function

    return register


define(operator.add, FieldValue, FieldValue)(operator.add)
define(operator.sub, FieldValue, FieldValue)(operator.sub)
define(operator.mul, FieldValue, FieldValue)(operator.mul)
define(operator.and_, Mask, Mask)(operator.and_)
define(operator.or_, Mask, Mask)(operator.or_)
define(operator.invert, Mask)(operator.invert)


def sqr(x: Any) -> Any:
    """x*x, cheaper than the product where the form has a squaring program."""
    raise NotImplementedError("called from compiled code only")


def carried(x: Any) -> Any:
    """The same value with limbs carried, in [0, k*p): do it once where a sum enters several products."""
    raise NotImplementedError("called from compiled code only")


def canonical(x: Any) -> Any:
    """The same value in [0, p). Cost about a tenth of a product for each halving of the range."""
    raise NotImplementedError("called from compiled code only")


def reduced(x: Any) -> Any:
    """The same value in the range that rows have: cheaper than `canonical` where rows hold 52-bit limbs."""
    raise NotImplementedError("called from compiled code only")


def is_zero(x: Any) -> Any:
    """Mask of the lanes whose value is 0."""
    raise NotImplementedError("called from compiled code only")


def is_below_p(x: Any) -> Any:
    """Mask of the lanes whose number, read from bytes, is an element: below p."""
    raise NotImplementedError("called from compiled code only")


def select(mask: Any, a: Any, b: Any) -> Any:
    """a where the mask is set, else b."""
    raise NotImplementedError("called from compiled code only")


def negate_where(mask: Any, x: Any) -> Any:
    """-x where the mask is set, else x."""
    raise NotImplementedError("called from compiled code only")


def zero(form: Any) -> Any:
    """0."""
    raise NotImplementedError("called from compiled code only")


def one(form: Any) -> Any:
    """1 in Montgomery form."""
    raise NotImplementedError("called from compiled code only")


def r_cubed(form: Any) -> Any:
    """R^3 mod p, the factor that brings the inverse of a number x*R to x^-1 * R."""
    raise NotImplementedError("called from compiled code only")


def fq2(c0: Any, c1: Any) -> Any:
    """c0 + c1*u."""
    raise NotImplementedError("called from compiled code only")


def to_mont(form: Any, x: Any) -> Any:
    """x*R for a plain x, canonical."""
    raise NotImplementedError("called from compiled code only")


def from_mont(form: Any, x: Any) -> Any:
    """x/R: a plain, canonical value."""
    raise NotImplementedError("called from compiled code only")


define(sqr, FieldValue)(lambda x: x.sqr())
define(carried, FieldValue)(lambda x: x.carried())
define(canonical, FieldValue)(lambda x: x.canonical())
define(reduced, FieldValue)(lambda x: x.reduced())
define(is_zero, FieldValue)(lambda x: x.is_zero())
define(is_below_p, FieldValue)(lambda x: x.is_below_p())
define(select, Mask, FieldValue, FieldValue)(lambda mask, a, b: a.or_else(mask, b))
define(negate_where, Mask, FieldValue)(lambda mask, x: x.negate_where(mask))


def _radix(form: Any, power: int) -> Any:
    """R^power mod p as a constant of a prime field."""
    return form.constant(form.form.radix**power % form.form.modulus.p)


@define(zero, FormType)
def _zero(form: Any) -> Any:
    if form.form.degree == 1:
        return form.constant(0)
    return form.pair(form.of_base.constant(0), form.of_base.constant(0))


@define(one, FormType)
def _one(form: Any) -> Any:
    if form.form.degree == 1:
        return _radix(form, 1)
    return form.pair(_radix(form.of_base, 1), form.of_base.constant(0))


@define(r_cubed, FormType)
def _r_cubed(form: Any) -> Any:
    return _radix(form, 3)


@define(fq2, Element, Element)
def _fq2(c0: Any, c1: Any) -> Any:
    return Fq2(c0, c1) if isinstance(c0, Element) else _EmittedPair(c0, c1)


@define(to_mont, FormType, FieldValue)
def _to_mont(form: Any, x: Any) -> Any:
    if form.form.degree == 2:
        return form.pair(_to_mont_component(form.of_base, x.c0), _to_mont_component(form.of_base, x.c1))
    return _to_mont_component(form, x)


def _to_mont_component(form: Any, x: Any) -> Any:
    return (x * _radix(form, 2)).canonical()


@define(from_mont, FormType, FieldValue)
def _from_mont(form: Any, x: Any) -> Any:
    if form.form.degree == 2:
        return form.pair(
            (x.c0 * form.of_base.constant(1)).canonical(), (x.c1 * form.of_base.constant(1)).canonical()
        )
    return (x * form.constant(1)).canonical()


# Facts about a form, known at compile time.


def lanes_of(form: Any) -> Any:
    """Elements a value."""
    raise NotImplementedError("called from compiled code only")


def words_of(form: Any) -> Any:
    """uint64 words of an element in memory."""
    raise NotImplementedError("called from compiled code only")


@overload(lanes_of, inline="always")
def _lanes_of(form):
    lanes = form.form.lanes
    return lambda form: lanes


@overload(words_of, inline="always")
def _words_of(form):
    words = form.form.words
    return lambda form: words


def is_field(form: types.Type) -> bool:
    """Whether a typed argument is the form of a prime field (and not of an extension)."""
    return isinstance(form, FormType) and form.form.degree == 1


# Masks and lanes: what leaves the field.


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
