"""Fills the variables of instances, in their order, by the kernels of their gadgets."""

from __future__ import annotations

import numpy as np

from cuzk.kernels.field import FR, load, store
from cuzk.kernels.jit import jit
from cuzk.kernels.packing import fill_bits, pack_bits
from cuzk.kernels.poseidon_witness import fill_poseidon
from cuzk.kernels.sha256 import fill_sha256_block
from cuzk.kernels.steps import fill_steps

FREE, NOTHING, COPY, ADD, TO_BITS, PACK, STEPS, POSEIDON, SHA256_BLOCK = range(9)
"""What a template's variables follow from. FREE: given from outside. NOTHING: it has none. COPY: its first
external number is an input and becomes the second. PACK: the number is its own, or else an external input."""


@jit
def fill_instances(templates, instances, begin, end, bits, values):
    """Fills instances begin..end-1; what they read has been filled before."""
    for i in range(begin, end):
        t = instances.template[i]
        kind = templates.kind[t]
        at_bit, at_value = np.int64(instances.first_aux[i]), np.int64(instances.first_value[i])
        bits_start, numbers_start = instances.bits_start[i], instances.numbers_start[i]
        bit_places = instances.external_bits[bits_start : bits_start + templates.external_bits[t]]
        places = instances.external_values[numbers_start : numbers_start + templates.external_numbers[t]]
        tables = templates.words[templates.words_start[t] : templates.words_start[t + 1]]
        numbers = templates.numbers[templates.numbers_start[t] : templates.numbers_start[t + 1]]
        if kind == SHA256_BLOCK:
            fill_sha256_block(tables, bit_places, bits, at_bit)
        elif kind == POSEIDON:
            fill_poseidon(np.int64(tables[0]), np.int64(tables[1]), numbers, places, values, at_value)
        elif kind == STEPS:
            fill_steps(templates, instances, i, tables, bits, values)
        elif kind == TO_BITS:
            fill_bits(values, places[0], bits, at_bit, templates.aux[t])
        elif kind == PACK:
            target = np.int64(places[0]) if len(places) else at_value
            pack_bits(bits, bit_places, values, target)
        elif kind == COPY:
            store(FR, values, places[0], load(FR, values, places[1]))
        elif kind == ADD:
            store(FR, values, at_value, load(FR, values, places[0]) + load(FR, values, places[1]))
