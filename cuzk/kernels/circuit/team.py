"""A team runs one function together: on a GPU the threads of a block, on the CPU one thread alone.

    for k in range(member(), n, members()):
        ...                             # the members share the work
    meet()                              # what each has written by now, all may read from here on

So a kernel of a circuit is written once. Every member must come to each `meet`. What a team shares beside its
arguments, scratch memory, is an argument too: arrays on the CPU, shared memory on a GPU.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _is_gpu(builder: Any) -> bool:
    return "nvptx" in builder.module.triple


def _register(builder: Any, name: str) -> Any:
    """The value of one of the GPU's special registers."""
    function_type = ir.FunctionType(_I32, [])
    function = cgutils.get_or_insert_function(
        builder.module, function_type, f"llvm.nvvm.read.ptx.sreg.{name}"
    )
    return builder.zext(builder.call(function, []), _I64)


def _barrier(builder: Any) -> None:
    """Wait for all threads of the GPU's block."""
    function_type = ir.FunctionType(ir.VoidType(), [])
    builder.call(cgutils.get_or_insert_function(builder.module, function_type, "llvm.nvvm.barrier0"), [])


@intrinsic
def member(typingctx: Any) -> Any:
    """The number of this member, from 0."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _register(builder, "tid.x") if _is_gpu(builder) else ir.Constant(_I64, 0)

    return types.int64(), lower


@intrinsic
def members(typingctx: Any) -> Any:
    """How many there are."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _register(builder, "ntid.x") if _is_gpu(builder) else ir.Constant(_I64, 1)

    return types.int64(), lower


@intrinsic
def meet(typingctx: Any) -> Any:
    """Wait for all members; memory they have written is then seen by all."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if _is_gpu(builder):
            _barrier(builder)
        return context.get_dummy_value()

    return types.void(), lower
