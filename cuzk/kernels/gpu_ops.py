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

_I64 = ir.IntType(64)


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


@intrinsic
def lowest_word(typingctx: Any, x: Any) -> Any:
    """The lowest limb of an element, of its first component in Fq2: 0 for one nonzero element in 2^32."""
    base = x.c0.form if isinstance(x, Fq2) else x.form

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        component = builder.extract_value(args[0], 0) if isinstance(x, Fq2) else args[0]
        return gpu.limbs_of(builder, base, component)[0]

    return types.uint32(x), lower
