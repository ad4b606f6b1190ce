"""How kernels of a GPU are given a circuit's tables, before their own parameters: a pointer to each array."""

from __future__ import annotations

from numba.core import types

from cuzk.kernels.gpu.compiler import pointer

_I32, _U32, _I64 = pointer(types.int32), pointer(types.uint32), pointer(types.int64)

TEMPLATES = (_I64, _I32, _U32, _U32, _U32, _U32, _I32, _U32, _U32)
INSTANCES = (_I64, _U32, _U32, _U32)
TABLES = (*TEMPLATES, *INSTANCES)
"""Of the arrays of `circuit.instances.for_gpu`: the fields of `Templates`, then those of `Instances`."""
