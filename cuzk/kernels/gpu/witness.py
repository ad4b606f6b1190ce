"""Witness of a circuit on a GPU: `circuit.witness.fill_instance` a block an instance; places of free values.

What an instance reads has to be there before the launch: see `circuit.waves`. In a block one thread traces a
compression while the others wait, then all take bits from it; an element of a Poseidon state has a thread of
its own.
Cost       of a wave: the longest chain in it, some 20 us for a SHA-256 block, 200 us for a Poseidon hash;
           where instances are more than the card holds, `threads_of_wave` decides how many it holds.
Twin       `circuit.witness.fill_instances` on the CPU.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from cuzk.kernels.circuit.instances import Instances, Templates, Variables
from cuzk.kernels.circuit.sha256 import PATTERN_BITS, TRACE_WORDS, W_WORDS
from cuzk.kernels.circuit.template_rows import DIGITS
from cuzk.kernels.circuit.witness import SHA256_BLOCK, Scratch, fill_instance
from cuzk.kernels.field import FR_GPU, load, store
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.instances import TABLES
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.poseidon import LARGEST_WIDTH

THREADS = 128
_WARP = 32
_NUMBER_WORDS = FR_GPU.words
_U8, _U32 = pointer(types.uint8), pointer(types.uint32)


def threads_of_wave(kinds: NDArray[np.integer]) -> int:
    """Of a block, for a wave of instances whose witnesses are of these kinds.

    Only a compression has work for more than a warp: a Poseidon state has twelve elements at most, and a
    multiprocessor holds twelve such blocks instead of three.
    """
    return THREADS if (kinds == SHA256_BLOCK).any() else _WARP


@cuda_jit(*TABLES, _U32, types.int64, _U8, _U32, launch_bounds=(THREADS,))
def fill_wave(  # type: ignore[no-untyped-def]
    table, full_position, words, numbers, bounds, term_slots, term_codes, coefficients, coefficients_mont,
    instance_table, external_bits, external_numbers, external_values,
    order, first, bits, values,
):  # fmt: skip
    """Block b fills the variables of instance order[first + b]."""
    templates = Templates(
        table, full_position, words, numbers, bounds, term_slots, term_codes, coefficients, coefficients_mont
    )
    instances = Instances(instance_table, external_bits, external_numbers, external_values)
    scratch = Scratch(
        cuda.shared.array(PATTERN_BITS, types.uint8),
        cuda.shared.array(W_WORDS, types.uint32),
        cuda.shared.array(TRACE_WORDS, types.uint64),
        cuda.shared.array((LARGEST_WIDTH, _NUMBER_WORDS), types.uint32, alignment=16),
        cuda.shared.array((LARGEST_WIDTH, _NUMBER_WORDS), types.uint32, alignment=16),
        cuda.shared.array(DIGITS, types.int64),
    )
    i = np.int64(order[first + cuda.blockIdx.x])
    fill_instance(FR_GPU, templates, instances, i, Variables(bits, values, values), scratch)


@cuda_jit(_U32, _U32, types.int64, _U32, launch_bounds=(THREADS,))
def place_numbers(source, places, count, values):  # type: ignore[no-untyped-def]
    """values[places[i]] = source[i], i < count."""
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if i < count:
        store(FR_GPU, values, places[i], load(FR_GPU, source, i))


@cuda_jit(_U8, _U32, types.int64, _U8, launch_bounds=(THREADS,))
def place_bits(source, places, count, bits):  # type: ignore[no-untyped-def]
    """bits[places[i]] = source[i], i < count."""
    i = np.int64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
    if i < count:
        bits[places[i]] = source[i]
