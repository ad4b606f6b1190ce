"""The field types' data models for numba-cuda, which has its own registry: import before compiling.

Types, inference and lowering are shared with the CPU: numba-cuda reads Numba's registries for them.
"""

from __future__ import annotations

from numba.cuda import models
from numba.cuda.extending import register_model

from cuzk.kernels.field_type import register_models

register_models(register_model, models)
