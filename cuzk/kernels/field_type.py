"""`Fq`, `Fr` and `Fq2` as Numba types, and the forms in which kernels hold them.

A *form* says which field, how its elements are computed with and how they lie in memory. It is passed to
kernels as an ordinary argument (`x = load(form, array, i)`), so that one kernel source serves every form:

form            lanes  limbs    R           in memory (a row of words)             values
FR, FQ          1      64 bits  2^256, 384  4, 6 words                             always canonical
FR8, FQ8        8      52 bits  2^260, 416  4 packed words, 8 words of 52 bits     the type tracks the range
FR_GPU, FQ_GPU  1      32 bits  2^256, 384  8, 12 words of 32 bits                 always canonical
FQ2, .._8, ..GPU  of two of FQ, FQ8, FQ_GPU: c0 + c1*u with u^2 = -1, c0 before c1

`Element(form, low, high)` is a value in [-low*p, high*p); with eight lanes, sums are *loose* (no carries)
until `carried`. Rows of FQ8 hold values below 2p, of all other forms canonical ones.

A type answers the same operators and methods as a value while code is emitted (`field`), with the result's
type: so a formula is written once and serves type inference and code generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_constant
from numba.core.typeconv import Conversion
from numba.extending import (
    NativeValue,
    lower_cast,
    make_attribute_wrapper,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from cuzk.kernels.codegen.llvm import LANES
from cuzk.kernels.lowering import eight_lanes, gpu, one_lane
from cuzk.kernels.modulus import FQ as FQ_MODULUS
from cuzk.kernels.modulus import FR as FR_MODULUS
from cuzk.kernels.modulus import Modulus


@dataclass(frozen=True, slots=True)
class FieldForm:
    """How elements of a prime field are held: limbs of `limb_bits`, `words` a row, `lanes` a value."""

    name: str
    modulus: Modulus
    limb_bits: int
    words: int

    @property
    def lowering(self) -> ModuleType:
        return _LOWERINGS[self.limb_bits]

    @property
    def lanes(self) -> int:
        return LANES if self.lowering is eight_lanes else 1

    @property
    def limbs(self) -> int:
        return int(self.lowering.limb_count(self.modulus))

    @property
    def radix(self) -> int:
        """R of the Montgomery form."""
        return 1 << (self.limbs * self.limb_bits)

    @property
    def word_bits(self) -> int:
        """Bits of a row's words in use: 52 where rows hold limbs of 52 bits, 64 where words are packed."""
        return self.limb_bits if self.words == self.limbs else 64

    @property
    def row_high(self) -> int:
        """Rows hold values below this times p: what is packed is canonical, limbs as they are need not be."""
        return 2 if self.lowering is eight_lanes and self.words == self.limbs else 1

    @property
    def product_limit(self) -> int:
        """Operands a < i*p, b < j*p of a product need i*j up to this."""
        return self.radix // self.modulus.p

    @property
    def degree(self) -> int:
        return 1

    @property
    def base(self) -> FieldForm:
        return self


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

    @property
    def degree(self) -> int:
        return 2


_LOWERINGS: dict[int, ModuleType] = {lowering.WIDTH: lowering for lowering in (one_lane, eight_lanes, gpu)}

FR = FieldForm("FR", FR_MODULUS, limb_bits=one_lane.WIDTH, words=4)
FQ = FieldForm("FQ", FQ_MODULUS, limb_bits=one_lane.WIDTH, words=6)
FR8 = FieldForm("FR8", FR_MODULUS, limb_bits=eight_lanes.WIDTH, words=4)
FQ8 = FieldForm("FQ8", FQ_MODULUS, limb_bits=eight_lanes.WIDTH, words=8)
FR_GPU = FieldForm("FR_GPU", FR_MODULUS, limb_bits=gpu.WIDTH, words=8)
FQ_GPU = FieldForm("FQ_GPU", FQ_MODULUS, limb_bits=gpu.WIDTH, words=12)
FQ2 = Fq2Form("FQ2", FQ)
FQ2_8 = Fq2Form("FQ2_8", FQ8)
FQ2_GPU = Fq2Form("FQ2_GPU", FQ_GPU)


class FormType(types.Type):
    """The Numba type of a form: all of it is known at compile time, no data is passed."""

    def __init__(self, form: Any) -> None:
        self.form = form
        super().__init__(name=f"form({form.name})")

    def constant(self, value: int) -> Element:
        """The type of a constant of the prime field."""
        return Element(self.form)

    def pair(self, c0: Element, c1: Element) -> Fq2:
        return Fq2(c0, c1)

    @property
    def of_base(self) -> FormType:
        """The form of the components."""
        return FormType(self.form.base)


class FieldValue(types.Type):
    """What operators and functions of `field` take."""


class Element(FieldValue):
    """An element of a prime field a lane, Montgomery form or not, in [-low*p, high*p), carried or loose."""

    def __init__(self, form: FieldForm, low: int = 0, high: int = 1, is_carried: bool = True) -> None:
        assert is_carried <= (low == 0)
        self.form, self.low, self.high, self.is_carried = form, low, high, is_carried
        super().__init__(name=f"{form.name}(-{low}..{high}{'' if is_carried else ', loose'})")

    def with_range(self, low: int, high: int, carried: bool = True) -> Element:
        return Element(self.form, low, high, carried)

    def __add__(self, other: Element) -> Element:
        return self._lowering.sum_type(self, other, +1)  # type: ignore[no-any-return]

    def __sub__(self, other: Element) -> Element:
        return self._lowering.sum_type(self, other, -1)  # type: ignore[no-any-return]

    def __mul__(self, other: Element) -> Element:
        return self._lowering.product_type(self, other)  # type: ignore[no-any-return]

    def sqr(self) -> Element:
        return self * self

    def carried(self) -> Element:
        return self if self.is_carried else self.with_range(0, self.low + self.high)

    def canonical(self) -> Element:
        return Element(self.form)

    def reduced(self) -> Element:
        return self.with_range(0, self.form.row_high)

    def is_zero(self) -> Mask:
        return Mask(self.form.lanes)

    def is_below_p(self) -> Mask:
        return Mask(self.form.lanes)

    def negate_where(self, mask: Mask) -> Element:
        return self._lowering.negation_type(self)  # type: ignore[no-any-return]

    def or_else(self, mask: Mask, other: Element) -> Element:
        return self.with_range(0, max(self.carried().high, other.carried().high))

    @property
    def _lowering(self) -> ModuleType:
        return self.form.lowering

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        same_form = isinstance(other, Element) and other.form == self.form
        if same_form and self.is_carried and other.is_carried and self.high <= other.high:
            return Conversion.safe
        return None

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if isinstance(other, Element) and other.form == self.form and self.is_carried and other.is_carried:
            return max(self, other, key=lambda element: element.high)
        return None


class PairFormulas:
    """The arithmetic of Fq2 in terms of its components, for types and for emitted values alike."""

    c0: Any
    c1: Any

    def pair(self, c0: Any, c1: Any) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return self.pair(self.c0 + other.c0, self.c1 + other.c1)

    def __sub__(self, other: Any) -> Any:
        return self.pair(self.c0 - other.c0, self.c1 - other.c1)

    def __mul__(self, other: Any) -> Any:
        """Three products of Fq (Karatsuba)."""
        low, high = self.c0 * other.c0, self.c1 * other.c1
        cross = (self.c0 + self.c1) * (other.c0 + other.c1)
        return self.pair((low - high).carried(), (cross - low - high).carried())

    def sqr(self) -> Any:
        """Two products of Fq."""
        cross = self.c0 * self.c1
        return self.pair((self.c0 + self.c1) * (self.c0 - self.c1), (cross + cross).carried())

    def carried(self) -> Any:
        return self.pair(self.c0.carried(), self.c1.carried())

    def canonical(self) -> Any:
        return self.pair(self.c0.canonical(), self.c1.canonical())

    def reduced(self) -> Any:
        return self.pair(self.c0.reduced(), self.c1.reduced())

    def is_zero(self) -> Any:
        return self.c0.is_zero() & self.c1.is_zero()

    def is_below_p(self) -> Any:
        return self.c0.is_below_p() & self.c1.is_below_p()

    def negate_where(self, mask: Any) -> Any:
        return self.pair(self.c0.negate_where(mask), self.c1.negate_where(mask))

    def or_else(self, mask: Any, other: Any) -> Any:
        return self.pair(self.c0.or_else(mask, other.c0), self.c1.or_else(mask, other.c1))


class Fq2(PairFormulas, FieldValue):
    """One element of Fq2 a lane."""

    def __init__(self, c0: Element, c1: Element) -> None:
        self.c0, self.c1 = c0, c1
        super().__init__(name=f"Fq2[{c0.name}, {c1.name}]")

    def pair(self, c0: Element, c1: Element) -> Fq2:
        return Fq2(c0, c1)

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


class Mask(FieldValue):
    """One truth value a lane."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"mask{lanes}")

    def __and__(self, other: Mask) -> Mask:
        return self

    def __or__(self, other: Mask) -> Mask:
        return self

    def __invert__(self) -> Mask:
        return self


def value_of_form(form: Any) -> FieldValue:
    """The type of a canonical value of this form."""
    return _of_components(form, Element(form.base))


def value_of_rows(form: Any) -> FieldValue:
    """The type of what rows of this form hold."""
    return _of_components(form, Element(form.base).reduced())


def _of_components(form: Any, component: Element) -> FieldValue:
    return component if form.degree == 1 else Fq2(component, component)


@typeof_impl.register(FieldForm)
@typeof_impl.register(Fq2Form)
def _typeof_form(form: Any, c: Any) -> FormType:
    return FormType(form)


@unbox(FormType)
def _unbox_form(form_type: FormType, form: Any, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


@lower_constant(FormType)
def _constant_form(context: Any, builder: Any, form_type: FormType, form: Any) -> Any:
    return context.get_dummy_value()


def register_models(register_model: Any, models: Any) -> None:
    """How the types are held, in one of two registries: Numba's, or numba-cuda's with models of its own."""

    @register_model(FormType)
    class FormModel(models.PrimitiveModel):  # type: ignore[misc]
        """No data: a null pointer, as everywhere in Numba."""

        def __init__(self, dmm: Any, fe_type: FormType) -> None:
            super().__init__(dmm, fe_type, ir.IntType(8).as_pointer())

    @register_model(Element)
    class ElementModel(models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, dmm: Any, fe_type: Element) -> None:
            super().__init__(dmm, fe_type, fe_type.form.lowering.value_type(fe_type.form))

    @register_model(Mask)
    class MaskModel(models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, dmm: Any, fe_type: Mask) -> None:
            bit = ir.IntType(1)
            super().__init__(dmm, fe_type, bit if fe_type.lanes == 1 else ir.VectorType(bit, fe_type.lanes))

    @register_model(Fq2)
    class Fq2Model(models.StructModel):  # type: ignore[misc]
        def __init__(self, dmm: Any, fe_type: Fq2) -> None:
            super().__init__(dmm, fe_type, [("c0", fe_type.c0), ("c1", fe_type.c1)])


register_models(register_model, models)
make_attribute_wrapper(Fq2, "c0", "c0")
make_attribute_wrapper(Fq2, "c1", "c1")


@lower_cast(Element, Element)
@lower_cast(Fq2, Fq2)
def _widen_range(context: Any, builder: Any, from_type: Any, to_type: Any, value: Any) -> Any:
    return value
