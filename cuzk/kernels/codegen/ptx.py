"""The machine of NVIDIA GPUs: a program of `asm` as one block of inline PTX among LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from cuzk.kernels.codegen.asm import Program

I32 = ir.IntType(32)


def inline(builder: Any, program: Program, inputs: Sequence[Any]) -> list[Any]:
    """The output words of `program`, as i32 values, given its inputs as i32 values."""
    count = len(program.outputs)
    returned = ir.LiteralStructType([I32] * count)
    constraints = ",".join(["=r"] * count + ["r"] * len(inputs))
    block = ir.InlineAsm(ir.FunctionType(returned, [I32] * len(inputs)), program.text(), constraints)
    result = builder.call(block, inputs)
    return [builder.extract_value(result, k) for k in range(count)]
