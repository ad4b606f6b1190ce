"""Rows of a circuit on a GPU: `circuit.template_rows.evaluate_instance` a block an instance, a thread a row.

The block's dynamic shared memory holds the instance's bits, a byte a slot.
Twin       `circuit.template_rows.evaluate_instances` on the CPU.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from cuzk.kernels.circuit.instances import Instances, Templates, Variables
from cuzk.kernels.circuit.template_rows import DIGITS, evaluate_instance, is_satisfied
from cuzk.kernels.field import FR_GPU
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.instances import TABLES
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.ops import atomic_max

THREADS = 256
_U8, _U32 = pointer(types.uint8), pointer(types.uint32)


@cuda_jit(*TABLES, types.int64, _U8, _U32, _U32, launch_bounds=(THREADS,))
def evaluate_rows(  # type: ignore[no-untyped-def]
    table, full_position, words, numbers, bounds, term_slots, term_codes, coefficients, coefficients_mont,
    instance_table, external_bits, external_numbers, external_values,
    side, bits, values, out,
):  # fmt: skip
    """out[row] = A, B or C (side 0, 1, 2) of the rows of instance b, by block b."""
    templates = Templates(
        table, full_position, words, numbers, bounds, term_slots, term_codes, coefficients, coefficients_mont
    )
    instances = Instances(instance_table, external_bits, external_numbers, external_values)
    local = cuda.shared.array(0, types.uint8)
    digits = cuda.local.array(DIGITS, types.int64)
    i, variables = np.int64(cuda.blockIdx.x), Variables(bits, values, values)
    evaluate_instance(FR_GPU, templates, instances, i, side, variables, out, local, digits)


@cuda_jit(_U32, _U32, _U32, types.int64, _U32, launch_bounds=(THREADS,))
def find_unsatisfied(a, b, c, count, found):  # type: ignore[no-untyped-def]
    """found[0] := how many of `count` rows there are from the first on whose a * b is not c; it was 0."""
    row = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if row < count and not is_satisfied(FR_GPU, a, b, c, row):
        atomic_max(found, 0, np.uint32(count - row))
