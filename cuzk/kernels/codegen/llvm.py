"""The machines that emit LLVM IR: `Radix52Llvm` for eight lanes of AVX-512 IFMA, `Radix64Llvm` for one.

A machine wraps an IR builder; a word is an IR value. The 52-bit multiply-adds are ordinary LLVM intrinsics,
so no assembler is needed. [LLVM language reference; X86 intrinsics vpmadd52luq, vpmadd52huq]
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

LANES = 8
I64 = ir.IntType(64)
I128 = ir.IntType(128)
VECTOR = ir.VectorType(I64, LANES)


class Radix52Llvm:
    """Eight 64-bit lanes a word."""

    def __init__(self, builder: Any) -> None:
        self._b = builder

    def const(self, value: int) -> Any:
        return ir.Constant(VECTOR, [value] * LANES)

    def add(self, x: Any, y: Any) -> Any:
        return self._b.add(x, y)

    def sub(self, x: Any, y: Any) -> Any:
        return self._b.sub(x, y)

    def and_(self, x: Any, y: Any) -> Any:
        return self._b.and_(x, y)

    def or_(self, x: Any, y: Any) -> Any:
        return self._b.or_(x, y)

    def shl(self, x: Any, count: int) -> Any:
        return self._b.shl(x, self.const(count))

    def shr(self, x: Any, count: int) -> Any:
        return self._b.lshr(x, self.const(count))

    def sar(self, x: Any, count: int) -> Any:
        return self._b.ashr(x, self.const(count))

    def mad_lo52(self, acc: Any, x: Any, y: Any) -> Any:
        return self._call("llvm.x86.avx512.vpmadd52l.uq.512", [acc, x, y])

    def mad_hi52(self, acc: Any, x: Any, y: Any) -> Any:
        return self._call("llvm.x86.avx512.vpmadd52h.uq.512", [acc, x, y])

    def _call(self, name: str, operands: list[Any]) -> Any:
        function_type = ir.FunctionType(VECTOR, [VECTOR] * len(operands))
        module = self._b.module
        function = module.globals.get(name) or ir.Function(module, function_type, name)
        return self._b.call(function, operands)

    def select_negative(self, sign: Any, if_negative: Any, otherwise: Any) -> Any:
        negative = self._b.icmp_signed("<", sign, self.const(0))
        return self._b.select(negative, if_negative, otherwise)

    def lookup(self, values: list[int], index: Any) -> Any:
        """values[index], lane by lane; there are eight values."""
        return self._call("llvm.x86.avx512.permvar.di.512", [ir.Constant(VECTOR, values), index])


class Radix64Llvm:
    """One whole number of `bits` bits, or one 64-bit word."""

    def __init__(self, builder: Any, bits: int) -> None:
        self._b = builder
        self._whole = ir.IntType(bits)

    def const(self, value: int) -> Any:
        return ir.Constant(self._whole, value)

    def add(self, a: Any, b: Any) -> Any:
        return self._b.add(a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self._b.sub(a, b)

    def select_negative(self, sign: Any, if_negative: Any, otherwise: Any) -> Any:
        negative = self._b.icmp_signed("<", sign, self.const(0))
        return self._b.select(negative, if_negative, otherwise)

    def split(self, a: Any, count: int) -> list[Any]:
        return [self._b.trunc(self._b.lshr(a, self.const(64 * i)), I64) for i in range(count)]

    def join(self, words: list[Any]) -> Any:
        whole = self.const(0)
        for i, word in enumerate(words):
            whole = self._b.or_(whole, self._b.shl(self._b.zext(word, self._whole), self.const(64 * i)))
        return whole

    def word(self, value: int) -> Any:
        return ir.Constant(I64, value)

    def add_word(self, x: Any, y: Any) -> Any:
        return self._b.add(x, y)

    def mul_word(self, x: Any, y: Any) -> Any:
        return self._b.mul(x, y)

    def mad_wide(self, x: Any, y: Any, c: Any, d: Any) -> tuple[Any, Any]:
        wide = self._b.mul(self._b.zext(x, I128), self._b.zext(y, I128))
        wide = self._b.add(wide, self._b.zext(c, I128))
        wide = self._b.add(wide, self._b.zext(d, I128))
        return self._b.trunc(wide, I64), self._b.trunc(self._b.lshr(wide, ir.Constant(I128, 64)), I64)
