"""Witness of a sequence of steps, each of which makes one variable: picks of numbers, ANDs and NORs of bits.

A step is four words (operation, s, x, y), operands as slots: PICK gives number x if bit s is set, else number
y; AND and NOR combine the bits s and x. The k-th step makes the template's k-th own variable. A step may read
what the one before has made, so one member of a team makes them all.
"""

from __future__ import annotations

import numpy as np

from cuzk.kernels.circuit.instances import value_place
from cuzk.kernels.circuit.team import member
from cuzk.kernels.field import load, store
from cuzk.kernels.jit import jit

PICK, AND, NOR = 0, 1, 2
STEP_WORDS = 4


@jit
def bit_of(template, instances, instance, bits, slot):
    """The bit in a slot of an instance."""
    if slot < template.first_own:
        return bits[instances.external_bits[instance.bits_start + slot - 1]]
    return bits[instance.first_aux + slot - template.first_own]


@jit
def fill_steps(form, templates, template, instances, instance, variables):
    """Fills the variables of one instance."""
    if member():
        return
    bits, values = variables.bits, variables.values
    next_value = instance.first_value
    for number in range((template.words_end - template.words_start) // STEP_WORDS):
        at = template.words_start + number * STEP_WORDS
        operation, s = templates.words[at], np.int64(templates.words[at + 1])
        x, y = np.int64(templates.words[at + 2]), np.int64(templates.words[at + 3])
        bit = bit_of(template, instances, instance, bits, s)
        if operation == PICK:
            picked = value_place(templates, template, instances, instance, x if bit else y)
            store(form, values, next_value, load(form, values, picked))
            next_value += 1
        else:
            other = bit_of(template, instances, instance, bits, x)
            made = bit & other if operation == AND else np.uint8(1) & ~(bit | other)
            bits[instance.first_aux + number] = made
