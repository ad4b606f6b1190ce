"""Fills the variables of instances by the kernels of their gadgets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cuzk.kernels.circuit.instances import instance_at, template_at
from cuzk.kernels.circuit.packing import fill_bits, pack_bits
from cuzk.kernels.circuit.poseidon_witness import fill_poseidon
from cuzk.kernels.circuit.products import fill_products
from cuzk.kernels.circuit.sha256 import PATTERN_BITS, TRACE_WORDS, W_WORDS, fill_sha256_block
from cuzk.kernels.circuit.steps import fill_steps
from cuzk.kernels.circuit.team import member
from cuzk.kernels.circuit.template_rows import DIGITS
from cuzk.kernels.field import FR, load, store
from cuzk.kernels.jit import jit
from cuzk.kernels.poseidon import LARGEST_WIDTH

FREE, NOTHING, COPY, PRODUCTS, TO_BITS, PACK, STEPS, POSEIDON, SHA256_BLOCK = range(9)
"""What a template's variables follow from. FREE: given from outside. NOTHING: it has none. COPY: its first
external number is an input and becomes the second. PRODUCTS: of the sides of their rows. PACK: the number is
its own, or else an external input."""


class Scratch(NamedTuple):
    """What a team works in: for `sha256` the bits given, words and trace; for Poseidon two states; for
    `products` the digits of a sum, and `given` for the bits of up to PATTERN_BITS slots."""

    given: Any
    w: Any
    trace: Any
    state: Any
    product: Any
    digits: Any


@jit
def fill_instance(form, templates, instances, i, variables, scratch):
    """Fills the variables of instance i; what it reads has been filled before."""
    instance = instance_at(instances.table, i)
    template = template_at(templates.table, instance.template)
    kind, words = template.kind, template.words_start
    bits, values = variables.bits, variables.values
    externals, bits_start = instances.external_bits, instance.bits_start
    places, at = instances.external_values, instance.numbers_start
    if kind == SHA256_BLOCK:
        fill_sha256_block(
            templates.words, words, externals, bits_start, bits, instance.first_aux, template.aux,
            scratch.given, scratch.w, scratch.trace,
        )  # fmt: skip
    elif kind == POSEIDON:
        arity, partial_rounds = np.int64(templates.words[words]), np.int64(templates.words[words + 1])
        fill_poseidon(
            form, arity, partial_rounds, templates.numbers, template.numbers_start, places, at, values,
            instance.first_value, scratch.state, scratch.product,
        )  # fmt: skip
    elif kind == STEPS:
        fill_steps(form, templates, template, instances, instance, variables)
    elif kind == TO_BITS:
        fill_bits(variables.words, np.int64(places[at]), bits, instance.first_aux, template.aux)
    elif kind == PACK:
        has_own = template.first_own == 1 + template.external_bits
        row = instance.first_value if has_own else np.int64(places[at])
        pack_bits(bits, externals, bits_start, template.external_bits, variables.words, row)
    elif kind == PRODUCTS:
        fill_products(
            form, templates, template, instances, instance, variables, scratch.given, scratch.digits
        )
    elif kind == COPY and member() == 0:
        store(form, values, places[at], load(form, values, places[at + 1]))


@jit
def fill_instances(templates, instances, begin, end, variables):
    """Fills instances begin..end-1 in their order."""
    scratch = Scratch(
        np.empty(PATTERN_BITS, dtype=np.uint8),
        np.empty(W_WORDS, dtype=np.uint32),
        np.empty(TRACE_WORDS, dtype=np.uint64),
        np.empty((LARGEST_WIDTH, 4), dtype=np.uint64),
        np.empty((LARGEST_WIDTH, 4), dtype=np.uint64),
        np.empty(DIGITS, dtype=np.int64),
    )
    for i in range(begin, end):
        fill_instance(FR, templates, instances, i, variables, scratch)
