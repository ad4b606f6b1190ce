"""The field types' data models for numba-cuda, which has its own registry: import before compiling.

Types, inference and lowering are shared with the CPU: numba-cuda reads Numba's registries for them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.cuda import models
from numba.cuda.extending import register_model

from cuzk.kernels.field_type import Element, FormType, Fq2, Mask


@register_model(FormType)
class _FormModel(models.PrimitiveModel):  # type: ignore[misc]
    """No data: a null pointer, as everywhere in Numba."""

    def __init__(self, dmm: Any, fe_type: FormType) -> None:
        super().__init__(dmm, fe_type, ir.IntType(8).as_pointer())


@register_model(Element)
class _ElementModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Element) -> None:
        super().__init__(dmm, fe_type, fe_type.form.lowering.value_type(fe_type.form))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Mask) -> None:
        super().__init__(dmm, fe_type, ir.IntType(1))


@register_model(Fq2)
class _Fq2Model(models.StructModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Fq2) -> None:
        super().__init__(dmm, fe_type, [("c0", fe_type.c0), ("c1", fe_type.c1)])
