"""Field arithmetic inside compiled code: operators and functions on values, for every form and for Fq2.

    x, y = load(form, a, i), load(form, b, i)
    store(form, out, i, canonical(sqr(x - y) * x))

The functions are ordinary names, to be called from jitted code only; what they mean is a formula each
(`field_formula`). Memory is in `field_memory`, masks, lanes and words in `field_lanes`: kernels have all from
here.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import overload

from cuzk.kernels.field_formula import EmittedPair, define
from cuzk.kernels.field_lanes import (
    any_lane,
    broadcast,
    first_lane,
    from_words,
    mask_bits,
    rotate_lanes,
    to_words,
)
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
    FieldValue,
    FormType,
    Fq2,
    Mask,
)

__all__ = [
    "FQ", "FQ2", "FQ2_8", "FQ2_GPU", "FQ8", "FQ_GPU", "FR", "FR8", "FR_GPU", "any_lane", "broadcast",
    "canonical", "carried", "first_lane", "fq2", "from_mont", "from_words", "gather",
    "is_below_p", "is_field", "is_zero", "lanes_of", "load", "load_at", "mask_bits", "negate_where",
    "one", "prefetch", "r_cubed", "reduced", "rotate_lanes", "select", "sign_mask", "spill", "sqr", "store",
    "store_at", "to_mont", "to_words", "unspill", "words_of", "zero",
]  # fmt: skip


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
    return Fq2(c0, c1) if isinstance(c0, Element) else EmittedPair(c0, c1)


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
