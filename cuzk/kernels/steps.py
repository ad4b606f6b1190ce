"""Witness of a sequence of steps, each of which makes one variable: picks of numbers, ANDs and NORs of bits.

A step is four words (operation, s, x, y), operands as slots: PICK gives number x if bit s is set, else number
y; AND and NOR combine the bits s and x. The k-th step makes the template's k-th own variable.
"""

from __future__ import annotations

import numpy as np

from cuzk.kernels.field import FR, load, store
from cuzk.kernels.instances import value_place
from cuzk.kernels.jit import jit

PICK, AND, NOR = 0, 1, 2
STEP_WORDS = 4


@jit
def fill_steps(template, instance, steps, bit_places, external_values, full_position, bits, values):
    """Fills the variables of one instance in `bits` and `values`."""
    own = instance.first_aux - template.first_own
    next_value = instance.first_value
    for number in range(len(steps) // STEP_WORDS):
        at = number * STEP_WORDS
        operation, s, x, y = (
            steps[at],
            np.int64(steps[at + 1]),
            np.int64(steps[at + 2]),
            np.int64(steps[at + 3]),
        )
        bit = bits[bit_places[s - 1] if s < template.first_own else own + s]
        if operation == PICK:
            picked = value_place(template, instance, external_values, full_position, x if bit else y)
            store(FR, values, next_value, load(FR, values, picked))
            next_value += 1
        else:
            other = bits[bit_places[x - 1] if x < template.first_own else own + x]
            bits[instance.first_aux + number] = bit & other if operation == AND else (1 - bit) & (1 - other)
