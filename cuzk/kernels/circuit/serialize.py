"""The bytes of rows that the r1cs digest hashes.

Of each row A, B and C: the number of terms as uint32, then the terms, inputs before aux and by index: one
byte, 0 for an input and 1 for aux, the index as uint32, the coefficient's 32 bytes; all little-endian.
"""

from __future__ import annotations

import numpy as np

from cuzk.kernels.jit import jit

COUNT_BYTES = 4
VALUE_BYTES = 32
TERM_BYTES = 1 + 4 + VALUE_BYTES


@jit
def write_u32(out, at, value):
    for i in range(4):
        out[at + i] = (value >> (8 * i)) & 0xFF
    return at + 4


@jit
def write_side(count, variables, coefficients, values, num_inputs, out, at):
    """One side's `count` terms, sorted by variable; the place after them."""
    at = write_u32(out, at, count)
    for k in range(count):
        variable = variables[k]
        is_aux = variable >= num_inputs
        out[at] = is_aux
        at = write_u32(out, at + 1, variable - num_inputs if is_aux else variable)
        for i in range(VALUE_BYTES):
            out[at + i] = values[coefficients[k], i]
        at += VALUE_BYTES
    return at


@jit
def serialize_rows(ends, slots, coefficients, values, variables, num_inputs, out):
    """Writes all sides of one instance to `out`; the number of bytes.

    `variables` are those of the slots: inputs, then aux from `num_inputs` on. Slots ascend within a side
    and own variables come after all others, so only the externals of a side are out of order.
    """
    row_variables = np.empty(len(variables), dtype=np.int64)
    row_coefficients = np.empty(len(variables), dtype=np.int64)
    at = begin = 0
    for end in ends:
        count = 0
        for k in range(begin, end):
            variable = variables[slots[k]]
            place = count
            while place and row_variables[place - 1] > variable:
                row_variables[place] = row_variables[place - 1]
                row_coefficients[place] = row_coefficients[place - 1]
                place -= 1
            row_variables[place] = variable
            row_coefficients[place] = coefficients[k]
            count += 1
        at = write_side(count, row_variables, row_coefficients, values, num_inputs, out, at)
        begin = np.int64(end)
    return at
