"""Fq2 = Fq[u]/(u^2 + 1) as a Numba type over one-lane or eight-lane Fq, and the same functions that `field` has.

A value is c0 + c1*u; its components carry their own ranges. Products cost three products of Fq (Karatsuba), squares
two. In memory c0 comes first, then c1.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typeconv import Conversion
from numba.extending import (
    intrinsic,
    lower_cast,
    make_attribute_wrapper,
    models,
    overload,
    register_model,
    typeof_impl,
)

from cuzk.kernels import field
from cuzk.kernels.field_memory import gather, load_at, spill, store_at, unspill
from cuzk.kernels.field_type import FQ, FQ8, Element, FieldForm, FormType


@dataclass(frozen=True, slots=True)
class Fq2Form:
    """How elements of Fq2 are held: two of `base` side by side."""

    name: str
    base: FieldForm

    @property
    def lanes(self) -> int:
        return self.base.lanes

    @property
    def words(self) -> int:
        return 2 * self.base.words


FQ2 = Fq2Form("FQ2", FQ)
FQ2_8 = Fq2Form("FQ2_8", FQ8)


class Fq2(types.Type):
    """One element of Fq2 a lane."""

    def __init__(self, c0: Element, c1: Element) -> None:
        self.c0, self.c1 = c0, c1
        super().__init__(name=f"Fq2[{c0.name}, {c1.name}]")

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        if not isinstance(other, Fq2):
            return None
        parts = [self.c0.can_convert_to(typingctx, other.c0), self.c1.can_convert_to(typingctx, other.c1)]
        return Conversion.safe if all(part is not None for part in parts) else None

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if not isinstance(other, Fq2):
            return None
        c0, c1 = self.c0.unify(typingctx, other.c0), self.c1.unify(typingctx, other.c1)
        return Fq2(c0, c1) if isinstance(c0, Element) and isinstance(c1, Element) else None


@typeof_impl.register(Fq2Form)
def _typeof_form(form: Fq2Form, c: Any) -> FormType:
    return FormType(form)


@register_model(Fq2)
class _Fq2Model(models.StructModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Fq2) -> None:
        super().__init__(dmm, fe_type, [("c0", fe_type.c0), ("c1", fe_type.c1)])


make_attribute_wrapper(Fq2, "c0", "c0")
make_attribute_wrapper(Fq2, "c1", "c1")


@lower_cast(Fq2, Fq2)
def _widen_range(context: Any, builder: Any, from_type: Fq2, to_type: Fq2, value: Any) -> Any:
    return value


@intrinsic
def fq2(typingctx: Any, c0: Any, c1: Any) -> Any:
    """c0 + c1*u."""
    result = Fq2(c0, c1)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = ir.Constant(context.get_value_type(result), ir.Undefined)
        return builder.insert_value(builder.insert_value(value, args[0], 0), args[1], 1)

    return result(c0, c1), lower


def _both(*values: Any) -> bool:
    return all(isinstance(value, Fq2) for value in values)


def _is_fq2(form: Any) -> bool:
    return isinstance(form, FormType) and isinstance(form.form, Fq2Form)


@overload(operator.add)
def _add(a, b):
    return (lambda a, b: fq2(a.c0 + b.c0, a.c1 + b.c1)) if _both(a, b) else None


@overload(operator.sub)
def _sub(a, b):
    return (lambda a, b: fq2(a.c0 - b.c0, a.c1 - b.c1)) if _both(a, b) else None


@overload(operator.mul)
def _mul(a, b):
    if not _both(a, b):
        return None

    def mul(a, b):
        low, high = a.c0 * b.c0, a.c1 * b.c1
        cross = (a.c0 + a.c1) * (b.c0 + b.c1)
        return fq2(field.carried(low - high), field.carried(cross - low - high))

    return mul


@overload(field.sqr)
def _sqr(x):
    if not isinstance(x, Fq2):
        return None

    def sqr(x):
        cross = x.c0 * x.c1
        return fq2((x.c0 + x.c1) * (x.c0 - x.c1), field.carried(cross + cross))

    return sqr


@overload(field.zero)
def _zero(form):
    if not _is_fq2(form):
        return None
    base = form.form.base
    return lambda form: fq2(field.zero(base), field.zero(base))


@overload(field.one)
def _one(form):
    if not _is_fq2(form):
        return None
    base = form.form.base
    return lambda form: fq2(field.one(base), field.zero(base))


@overload(field.carried)
def _carried(x):
    return (lambda x: fq2(field.carried(x.c0), field.carried(x.c1))) if isinstance(x, Fq2) else None


@overload(field.canonical)
def _canonical(x):
    return (lambda x: fq2(field.canonical(x.c0), field.canonical(x.c1))) if isinstance(x, Fq2) else None


@overload(field.is_zero)
def _is_zero(x):
    return (lambda x: field.is_zero(x.c0) & field.is_zero(x.c1)) if isinstance(x, Fq2) else None


@overload(field.select)
def _select(mask, a, b):
    if not _both(a, b):
        return None
    return lambda mask, a, b: fq2(field.select(mask, a.c0, b.c0), field.select(mask, a.c1, b.c1))


@overload(field.negate_where)
def _negate_where(mask, x):
    if not isinstance(x, Fq2):
        return None
    return lambda mask, x: fq2(field.negate_where(mask, x.c0), field.negate_where(mask, x.c1))


@overload(load_at)
def _load_at(form, array, row, column):
    if not _is_fq2(form):
        return None
    base = form.form.base
    words = base.words
    return lambda form, array, row, column: fq2(
        load_at(base, array, row, column), load_at(base, array, row, column + words)
    )


@overload(gather)
def _gather(form, array, codes, i, column):
    if not _is_fq2(form):
        return None
    base = form.form.base
    words = base.words
    return lambda form, array, codes, i, column: fq2(
        gather(base, array, codes, i, column), gather(base, array, codes, i, column + words)
    )


@overload(store_at)
def _store_at(form, array, row, column, x):
    if not _is_fq2(form):
        return None
    base = form.form.base
    words = base.words

    def store(form, array, row, column, x):
        store_at(base, array, row, column, x.c0)
        store_at(base, array, row, column + words, x.c1)

    return store


@overload(spill)
def _spill(form, scratch, i, x):
    if not _is_fq2(form):
        return None
    base = form.form.base

    def impl(form, scratch, i, x):
        spill(base, scratch, 2 * i, x.c0)
        spill(base, scratch, 2 * i + 1, x.c1)

    return impl


@overload(unspill)
def _unspill(form, scratch, i):
    if not _is_fq2(form):
        return None
    base = form.form.base
    return lambda form, scratch, i: fq2(unspill(base, scratch, 2 * i), unspill(base, scratch, 2 * i + 1))


@overload(field.to_mont)
def _to_mont(form, x):
    if not _is_fq2(form):
        return None
    base = form.form.base
    return lambda form, x: fq2(field.to_mont(base, x.c0), field.to_mont(base, x.c1))


@overload(field.from_mont)
def _from_mont(form, x):
    if not _is_fq2(form):
        return None
    base = form.form.base
    return lambda form, x: fq2(field.from_mont(base, x.c0), field.from_mont(base, x.c1))
