"""`Fq` and `Fr` as Numba types: `R = q.y * p.zzz - p.y` in a kernel is field arithmetic, one element or eight.

A *form* says which field, how many lanes and how an element lies in memory. It is passed to kernels as an ordinary
argument (`x = load(form, array, i)`), so that one kernel source serves every form:

form        lanes  limbs      R         in memory (a row of uint64)            values
FR, FQ      1      64 bits    2^256/384 4 / 6 words                            always canonical
FR8, FQ8    8      52 bits    2^260/416 4 packed words / 8 words of 52 bits    the type tracks the range

Operators `+ - *` (Montgomery product) here; functions on values in `field`, memory in `field_memory`. With eight lanes, sums stay *loose* (no carries) and the type knows
the range: `Element(form, low, high, carried)` holds values in [-low*p, high*p). A product carries its operands first
and is refused at compile time when their ranges exceed R/p. Programs and their bounds: `codegen`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.imputils import lower_constant
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import NativeValue, lower_builtin, lower_cast, models, register_model, typeof_impl, unbox

from cuzk.kernels.codegen import radix52, radix64
from cuzk.kernels.codegen.llvm import LANES, VECTOR, Radix52Llvm, Radix64Llvm
from cuzk.kernels.modulus import FQ as FQ_MODULUS
from cuzk.kernels.modulus import FR as FR_MODULUS
from cuzk.kernels.modulus import Modulus

_LOOSE_LIMIT = 64  # low + high of a loose sum: its limbs stay below 2^58


@dataclass(frozen=True, slots=True)
class FieldForm:
    """How elements of one field are held: `words` uint64 a row in memory, `lanes` elements a value."""

    name: str
    modulus: Modulus
    lanes: int
    words: int

    @property
    def limbs(self) -> int:
        codegen = radix64 if self.lanes == 1 else radix52
        return codegen.limb_count(self.modulus)

    @property
    def radix(self) -> int:
        """R of the Montgomery form."""
        return 1 << (self.limbs * (radix64.WIDTH if self.lanes == 1 else radix52.WIDTH))

    @property
    def product_limit(self) -> int:
        """Operands a < i*p, b < j*p of a product need i*j up to this."""
        return self.radix // self.modulus.p


FR = FieldForm("FR", FR_MODULUS, lanes=1, words=4)
FQ = FieldForm("FQ", FQ_MODULUS, lanes=1, words=6)
FR8 = FieldForm("FR8", FR_MODULUS, lanes=LANES, words=4)
FQ8 = FieldForm("FQ8", FQ_MODULUS, lanes=LANES, words=8)


class FormType(types.Type):
    """The Numba type of a form: all of it is known at compile time, no data is passed."""

    def __init__(self, form: Any) -> None:
        self.form = form
        super().__init__(name=f"form({form.name})")


class Element(types.Type):
    """One field element a lane, in Montgomery form or not, value in [-low*p, high*p), limbs carried or loose."""

    def __init__(self, form: FieldForm, low: int = 0, high: int = 1, carried: bool = True) -> None:
        assert carried <= (low == 0)
        self.form, self.low, self.high, self.carried = form, low, high, carried
        super().__init__(name=f"{form.name}(-{low}..{high}{'' if carried else ', loose'})")

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        same_form = isinstance(other, Element) and other.form == self.form
        if same_form and self.carried and other.carried and self.high <= other.high:
            return Conversion.safe
        return None

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if isinstance(other, Element) and other.form == self.form and self.carried and other.carried:
            return max(self, other, key=lambda element: element.high)
        return None


class Mask(types.Type):
    """One truth value a lane."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"mask{lanes}")


@typeof_impl.register(FieldForm)
def _typeof_form(form: FieldForm, c: Any) -> FormType:
    return FormType(form)


register_model(FormType)(models.OpaqueModel)


@unbox(FormType)
def _unbox_form(form_type: FormType, form: Any, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


@lower_constant(FormType)
def _constant_form(context: Any, builder: Any, form_type: FormType, form: Any) -> Any:
    return context.get_dummy_value()


@register_model(Element)
class _ElementModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Element) -> None:
        form = fe_type.form
        wide = ir.IntType(64 * form.limbs)
        super().__init__(dmm, fe_type, wide if form.lanes == 1 else ir.ArrayType(VECTOR, form.limbs))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Mask) -> None:
        bit = ir.IntType(1)
        super().__init__(dmm, fe_type, bit if fe_type.lanes == 1 else ir.VectorType(bit, fe_type.lanes))


@lower_cast(Element, Element)
def _widen_range(context: Any, builder: Any, from_type: Element, to_type: Element, value: Any) -> Any:
    return value


def machine(builder: Any, form: FieldForm) -> Any:
    """The machine that emits this form's programs."""
    return Radix64Llvm(builder, 64 * form.limbs) if form.lanes == 1 else Radix52Llvm(builder)


def unpack_words(builder: Any, value: Any, form: FieldForm) -> list[Any]:
    """The limbs of an eight-lane value."""
    return [builder.extract_value(value, i) for i in range(form.limbs)]


def pack_words(builder: Any, limbs: list[Any], form: FieldForm) -> Any:
    value = ir.Constant(ir.ArrayType(VECTOR, form.limbs), ir.Undefined)
    for i, limb in enumerate(limbs):
        value = builder.insert_value(value, limb, i)
    return value


def as_carried(builder: Any, element: Element, value: Any) -> tuple[Element, list[Any]]:
    """Type and limbs of an eight-lane value after its carry pass, if it needs one."""
    form, m, limbs = element.form, machine(builder, element.form), unpack_words(builder, value, element.form)
    if element.carried:
        return element, limbs
    lifted = radix52.add_multiple(m, limbs, element.low, form.modulus)
    return carried_type(element), radix52.carry(m, lifted)


def carried_type(element: Element) -> Element:
    return element if element.carried else Element(element.form, 0, element.low + element.high)


def shared_function(builder: Any, name: str, result: Any, arguments: list[Any], emit: Any) -> Any:
    """A function of this module made once: products are called, not inlined, so that kernels compile fast.

    Register calling convention: eight-lane operands and results travel in registers.
    """
    module = builder.module
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(result, arguments), name)
    function.linkage = "linkonce_odr"
    function.calling_convention = "x86_regcallcc"
    function.attributes.add("noinline")
    body = ir.IRBuilder(function.append_basic_block("entry"))
    body.ret(emit(body, function.args))
    return function


def _sum_type(a: Element, b: Element, sign: int) -> Element:
    if a.form.lanes == 1:
        return a
    low, high = (a.low + b.low, a.high + b.high) if sign > 0 else (a.low + b.high, a.high + b.low)
    if low + high > _LOOSE_LIMIT:
        raise TypingError(
            f"{a} and {b}: the range of a sum grows past {_LOOSE_LIMIT}p; use carried or canonical"
        )
    return Element(a.form, low, high, carried=False)


def product_type(a: Element, b: Element) -> Element:
    form = a.form
    if form.lanes == 1:
        return a
    if carried_type(a).high * carried_type(b).high > form.product_limit:
        raise TypingError(f"{a} * {b}: the product exceeds R*p; use canonical first")
    return Element(form, 0, 2)


class _Operator(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Any:
        if len(args) == 2 and all(isinstance(a, Element) for a in args) and args[0].form == args[1].form:
            return signature(self.result(*args), *args)
        return None


@infer_global(operator.add)
class _Add(_Operator):
    def result(self, a: Element, b: Element) -> Element:
        return _sum_type(a, b, +1)


@infer_global(operator.sub)
class _Sub(_Operator):
    def result(self, a: Element, b: Element) -> Element:
        return _sum_type(a, b, -1)


@infer_global(operator.mul)
class _Mul(_Operator):
    def result(self, a: Element, b: Element) -> Element:
        return product_type(a, b)


@lower_builtin(operator.add, Element, Element)
def _lower_add(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _lower_sum(builder, sig, args, radix64.add_mod, radix52.add_loose)


@lower_builtin(operator.sub, Element, Element)
def _lower_sub(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _lower_sum(builder, sig, args, radix64.sub_mod, radix52.sub_loose)


def _lower_sum(builder: Any, sig: Any, args: Any, one_lane: Any, eight_lanes: Any) -> Any:
    form = sig.return_type.form
    m = machine(builder, form)
    if form.lanes == 1:
        return one_lane(m, *args, form.modulus)
    return pack_words(builder, eight_lanes(m, *(unpack_words(builder, arg, form) for arg in args)), form)


@lower_builtin(operator.mul, Element, Element)
def _lower_mul(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return emit_product(builder, sig.args, args)


def emit_product(builder: Any, elements: Any, values: Any) -> Any:
    """The Montgomery product of two values; of one value, its square."""
    form: FieldForm = elements[0].form
    if form.lanes == 1:
        program, width = radix64.mul_mont, ir.IntType(64 * form.limbs)
        operands = [values[0], values[-1]]

        def emit(body: Any, arguments: Any) -> Any:
            return program(machine(body, form), *arguments, form.modulus)

        name = f"cuzk_mul_{form.name}"
        function = shared_function(builder, name, width, [width, width], emit)
        return builder.call(function, operands, cconv="x86_regcallcc")

    square = len(values) == 1
    vector_program: Any = radix52.sqr_mont_lt_2p if square else radix52.mul_mont_lt_2p
    result = ir.LiteralStructType([VECTOR] * form.limbs)
    limbs = [limb for e, v in zip(elements, values, strict=True) for limb in as_carried(builder, e, v)[1]]

    def emit_vector(body: Any, arguments: Any) -> Any:
        operands = [list(arguments[i : i + form.limbs]) for i in range(0, len(arguments), form.limbs)]
        words = vector_program(machine(body, form), *operands, form.modulus)
        value = ir.Constant(result, ir.Undefined)
        for i, word in enumerate(words):
            value = body.insert_value(value, word, i)
        return value

    name = f"cuzk_{'sqr' if square else 'mul'}_{form.name}"
    function = shared_function(builder, name, result, [VECTOR] * len(limbs), emit_vector)
    value = builder.call(function, limbs, cconv="x86_regcallcc")
    return pack_words(builder, unpack_words(builder, value, form), form)
