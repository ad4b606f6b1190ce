"""A circuit's tables on a GPU: what its kernels take before their own parameters."""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.np.numpy_support import as_dtype

from cuzk.kernels.cuda_compile import pointer
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.instances import Instances, Templates, in_words

_I32, _U32, _I64 = pointer(types.int32), pointer(types.uint32), pointer(types.int64)

TEMPLATES = (_I64, _I32, _U32, _U32, _U32, _U32, _I32, _U32, _U32)
INSTANCES = (_I64, _U32, _U32, _U32)
TABLES = (*TEMPLATES, *INSTANCES)
"""Of the fields of `Templates` and `Instances`, in their order; field elements are eight uint32."""


def upload_tables(device: CudaDevice, templates: Templates, instances: Instances) -> list[DeviceArray]:
    """Copies on the card, for parameters of the types TABLES."""
    arrays = (*in_words(templates), *in_words(instances))
    copies: list[DeviceArray] = []
    try:
        for array, kind in zip(arrays, TABLES, strict=True):
            copies.append(device.upload(np.ascontiguousarray(array).view(as_dtype(kind.dtype))))
    except BaseException:
        for copy in copies:
            copy.close()
        raise
    return copies
