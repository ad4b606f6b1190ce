"""Formulas over field values, each written and `define`d once for type inference and code generation.

    define(sqr, FieldValue)(lambda x: x.sqr())

Run on types (`field_type`) a formula infers the result. Run on the values here, which answer what their types
answer and emit code on the way, it makes the code. The operators are defined here, all else in `field`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from cuzk.kernels.field_type import Element, FieldForm, FieldValue, FormType, Fq2, Mask, PairFormulas


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
class EmittedPair(PairFormulas):
    """A value of Fq2."""

    c0: _Emitted
    c1: _Emitted

    def pair(self, c0: _Emitted, c1: _Emitted) -> EmittedPair:
        return EmittedPair(c0, c1)

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

    def pair(self, c0: _Emitted, c1: _Emitted) -> EmittedPair:
        return EmittedPair(c0, c1)

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
        return EmittedPair(*parts)
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
