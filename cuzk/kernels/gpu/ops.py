"""Small operations that kernels of the GPU need beside the field: on bare pointers, which Numba's own do not
take.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from cuzk.kernels.field_type import Fq2
from cuzk.kernels.lowering import gpu

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_FOUR = ir.VectorType(_I32, 4)
_FOUR_TYPE = types.UniTuple(types.uint32, 4)
_FOUR_BYTES = 16


def _atomic(operation: str) -> Any:
    def typed(typingctx: Any, pointer: Any, i: Any, value: Any) -> Any:
        item = pointer.dtype

        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            index = context.cast(builder, args[1], sig.args[1], types.intp)
            operand = context.cast(builder, args[2], sig.args[2], item)
            place = builder.gep(args[0], [index])
            return builder.atomic_rmw(operation, place, operand, "monotonic")

        return item(pointer, i, value), lower

    return typed


@intrinsic
def atomic_add(typingctx: Any, pointer: Any, i: Any, value: Any) -> Any:
    """pointer[i] += value as one step among all threads; what was there before."""
    return _atomic("add")(typingctx, pointer, i, value)


@intrinsic
def atomic_max(typingctx: Any, pointer: Any, i: Any, value: Any) -> Any:
    """pointer[i] = max(pointer[i], value), unsigned, as one step among all threads; what was there before."""
    return _atomic("umax")(typingctx, pointer, i, value)


def _place_of_four(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    index = context.cast(builder, args[1], sig.args[1], types.intp)
    return builder.bitcast(builder.gep(args[0], [index]), _FOUR.as_pointer())


@intrinsic
def load_four(typingctx: Any, pointer: Any, i: Any) -> Any:
    """pointer[i] to pointer[i + 3] of uint32, by one access: pointer and i are multiples of four."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        quad = builder.load(_place_of_four(context, builder, sig, args), align=_FOUR_BYTES)
        words = [builder.extract_element(quad, ir.Constant(_I32, k)) for k in range(4)]
        return context.make_tuple(builder, sig.return_type, words)

    return _FOUR_TYPE(pointer, i), lower


@intrinsic
def store_four(typingctx: Any, pointer: Any, i: Any, words: Any) -> Any:
    """pointer[i] to pointer[i + 3] := four uint32, by one access: pointer and i are multiples of four."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        quad = ir.Constant(_FOUR, ir.Undefined)
        for k in range(4):
            quad = builder.insert_element(quad, builder.extract_value(args[2], k), ir.Constant(_I32, k))
        builder.store(quad, _place_of_four(context, builder, sig, args), align=_FOUR_BYTES)
        return context.get_dummy_value()

    return types.void(pointer, i, _FOUR_TYPE), lower


@intrinsic
def lowest_word(typingctx: Any, x: Any) -> Any:
    """The lowest limb of an element, of its first component in Fq2: 0 for one nonzero element in 2^32."""
    base = x.c0.form if isinstance(x, Fq2) else x.form

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        component = builder.extract_value(args[0], 0) if isinstance(x, Fq2) else args[0]
        return gpu.limbs_of(builder, base, component)[0]

    return types.uint32(x), lower
