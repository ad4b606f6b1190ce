"""Products by known factors in Fr on the GPU [Sho]: a factor w comes with floor(w 2^256 / p).

Factors are constants of the code, or entries of a table in memory. Eight entries of a table are a group of
512 bytes: four times 16 bytes of each of the eight, so that neighbouring threads read neighbouring words.
Entries are loaded inside the product's block: the compiler would move ordinary loads far ahead and run out
of registers.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from llvmlite import ir

from cuzk.kernels.codegen import factor32, radix32
from cuzk.kernels.codegen.asm import WIDTH
from cuzk.kernels.lowering import gpu
from cuzk.kernels.modulus import FR

LIMBS = factor32.LIMBS
ENTRY_BYTES = 2 * LIMBS * WIDTH // 8
ENTRIES_A_GROUP = 8
_QUADS = 2 * LIMBS // 4
_QUAD_BYTES = 16
_I32, _I64 = ir.IntType(32), ir.IntType(64)


@cache
def _times(constant: int) -> Any:
    return lambda asm, x, modulus: factor32.mul_constant(asm, x, constant, modulus)


def times_constant(builder: Any, form: Any, x: Any, constant: int) -> Any:
    """x*constant, canonical, for x < 2p."""
    return gpu.inline(builder, form, _times(constant), x)


def entry_address(builder: Any, table: Any, index: Any) -> Any:
    """Where the words of a table's entry begin; index and result are i64."""
    group = builder.and_(index, ir.Constant(_I64, -ENTRIES_A_GROUP))
    place = builder.and_(index, ir.Constant(_I64, ENTRIES_A_GROUP - 1))
    offset = builder.add(
        builder.mul(group, ir.Constant(_I64, ENTRY_BYTES)), builder.mul(place, ir.Constant(_I64, _QUAD_BYTES))
    )
    return builder.add(builder.ptrtoint(table, _I64), offset)


def _quad_offset(quad: int) -> int:
    """Of 16 bytes of an entry: the factor's lower and upper half, then those of its companion."""
    return quad * ENTRIES_A_GROUP * _QUAD_BYTES


@cache
def _times_entry_text(exact: bool) -> str:
    """$0 to $7: the product; $8 to $15: x; $16: the entry's address."""
    program = radix32.build(radix32.mul_shoup if exact else radix32.mul_shoup_lt_2p, FR, 3)
    first = 2 * LIMBS  # operands of the program before those of the factor

    def loaded(operand: re.Match[str]) -> str:
        number = int(operand[1])
        return f"w{number - first}" if number >= first else operand[0]

    body = re.sub(r"\$(\d+)", loaded, program.text())
    lines = ["{", f".reg .b32 w<{2 * LIMBS}>;"]
    for quad in range(_QUADS):
        words = ", ".join(f"w{4 * quad + i}" for i in range(4))
        lines.append(f"ld.global.nc.v4.u32 {{{words}}}, [${first}+{_quad_offset(quad)}];")
    return "\n".join([*lines, body, "}"])


def times_entry(builder: Any, form: Any, x: Any, address: Any, exact: bool) -> Any:
    """x times the entry at an address, for x < 2p; canonical, or below 2p if not `exact`."""
    words = [*gpu.limbs_of(builder, form, x), address]
    result = ir.LiteralStructType([_I32] * LIMBS)
    function = ir.FunctionType(result, [word.type for word in words])
    constraints = ",".join(["=r"] * LIMBS + ["r"] * LIMBS + ["l"])
    block = builder.asm(function, _times_entry_text(exact), constraints, words, side_effect=True)
    return gpu.value_of(builder, form, [builder.extract_value(block, i) for i in range(LIMBS)])


def store_entry(builder: Any, form: Any, address: Any, factor: Any, companion: Any) -> None:
    words = gpu.limbs_of(builder, form, factor) + gpu.limbs_of(builder, form, companion)
    vector = ir.VectorType(_I32, 4)
    for quad in range(_QUADS):
        value = ir.Constant(vector, ir.Undefined)
        for i in range(4):
            value = builder.insert_element(value, words[4 * quad + i], ir.Constant(_I32, i))
        place = builder.add(address, ir.Constant(_I64, _quad_offset(quad)))
        builder.store(value, builder.inttoptr(place, vector.as_pointer()), align=_QUAD_BYTES)
