"""Witness of a sequence of steps, each of which makes one variable: picks between numbers, ANDs and NORs of
bits.

A step is four words (operation, s, x, y), operands as slots: PICK gives number x if bit s is set, else
number y; AND and NOR combine the bits s and x. The k-th step makes the template's k-th own variable.
"""

from __future__ import annotations

import numpy as np

from cuzk.kernels.field import FR, load, store
from cuzk.kernels.instances import bit_place, value_place
from cuzk.kernels.jit import jit

PICK, AND, NOR = 0, 1, 2
STEP_WORDS = 4


@jit
def fill_steps(templates, instances, i, tables, bits, values):
    """Fills the variables of instance i in `bits` and `values`, as `tables` says."""
    first_aux = np.int64(instances.first_aux[i])
    next_value = np.int64(instances.first_value[i])
    for number in range(len(tables) // STEP_WORDS):
        step = tables[number * STEP_WORDS : (number + 1) * STEP_WORDS]
        s = bits[bit_place(templates, instances, i, np.int64(step[1]))]
        x, y = np.int64(step[2]), np.int64(step[3])
        if step[0] == PICK:
            picked = value_place(templates, instances, i, x if s else y)
            store(FR, values, next_value, load(FR, values, picked))
            next_value += 1
        else:
            t = bits[bit_place(templates, instances, i, x)]
            bits[first_aux + number] = s & t if step[0] == AND else (1 - s) & (1 - t)
