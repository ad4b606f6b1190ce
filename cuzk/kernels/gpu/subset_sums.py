"""Random sums of points on the GPU, to find out whether all of them lie in a subgroup: see `subset_sums`.

There an addition costs more than a random bit, so one sort serves many sums; here each sum has its own random
bits and is a sum of selected points.
Error      a point outside the subgroup leaves it in at least half of all sums: 2^-80.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numba.core import types

from cuzk.kernels.curve import Point
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.selected_sum import GpuSelectedSum

BYTES_A_POINT = 10
_BITS = 8
_THREADS = 256
_U8 = pointer(types.uint8)


@cuda_jit(_U8, types.uint32, types.int64, _U8, launch_bounds=(_THREADS,))
def bit_of_bytes(source, k, n, bits):  # type: ignore[no-untyped-def]
    """bits[i] = bit k of source[i]."""
    i = np.int64(cuda.blockIdx.x) * _THREADS + cuda.threadIdx.x
    if i < n:
        bits[i] = np.uint8((np.uint32(source[i]) >> np.uint32(k)) & np.uint32(1))


def random_subset_sums(device: CudaDevice, selected: GpuSelectedSum, count: int) -> list[Point[Any]]:
    """80 sums of half of the points that `selected` sums, each half random, from the operating system."""
    generator = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
    sums = []
    with device.allocate(count, np.uint8) as random, device.allocate(count, np.uint8) as bits:
        for _ in range(BYTES_A_POINT):
            device.upload(generator.integers(0, 256, count, np.uint8), into=random)
            for k in range(_BITS):
                device.launch(bit_of_bytes, -(-count // _THREADS), _THREADS, random, k, count, bits)
                sums.append(selected.run(bits))
    return sums
