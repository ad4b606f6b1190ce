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
        instance = instances.table[i]
        template = templates.table[instance.template]
        kind, at_bit, at_value = template.kind, instance.first_aux, instance.first_value
        start = instance.bits_start
        bit_places = instances.external_bits[start : start + template.external_bits]
        start = instance.numbers_start
        places = instances.external_values[start : start + template.first_own - 1 - template.external_bits]
        words = templates.words[template.words_start : template.words_end]
        numbers = templates.numbers[template.numbers_start : template.numbers_end]
        if kind == SHA256_BLOCK:
            fill_sha256_block(words, bit_places, bits, at_bit)
        elif kind == POSEIDON:
            fill_poseidon(np.int64(words[0]), np.int64(words[1]), numbers, places, values, at_value)
        elif kind == STEPS:
            external_values, position = instances.external_values, templates.full_position
            fill_steps(template, instance, words, bit_places, external_values, position, bits, values)
        elif kind == TO_BITS:
            fill_bits(values, places[0], bits, at_bit, template.aux)
        elif kind == PACK:
            pack_bits(bits, bit_places, values, np.int64(places[0]) if len(places) else at_value)
        elif kind == COPY:
            store(FR, values, places[0], load(FR, values, places[1]))
        elif kind == ADD:
            store(FR, values, at_value, load(FR, values, places[0]) + load(FR, values, places[1]))
