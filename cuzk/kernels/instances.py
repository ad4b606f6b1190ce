"""Templates and their instances as flat arrays: what every kernel of a circuit reads.

Variables live in two arrays: `bits` (aux,) uint8, and `values` (inputs + full, 4) uint64, canonical, the
inputs (ONE first) before the variables that are no bits. Within a template a variable is a *slot*: 0 is
ONE, then the external bits, the external numbers, and the template's own variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.jit import jit

I64 = NDArray[np.int64]


class Templates(NamedTuple):
    """One entry a template, and behind `*_start` the tables of all of them.

    full_position  for each own variable its place among the template's own numbers, -1 for a bit
    words          parameters of the witness kernels; `numbers` (n, 4) likewise, Montgomery form
    bounds         six a row and one more: where its terms begin; for A, B, C first bits times +-2^k, then
                   the others
    term_slots     slot of each term
    term_codes     its coefficient: k for 2^k, SIGN + k for -2^k, GENERAL + i for coefficient i
    coefficients   (n, 4) canonical; `coefficients_mont` the same in Montgomery form
    """

    kind: I64
    external_bits: I64
    external_numbers: I64
    aux: I64
    rows: I64
    own_start: I64
    full_position: NDArray[np.int32]
    words_start: I64
    words: NDArray[np.uint64]
    numbers_start: I64
    numbers: NDArray[np.uint64]
    bounds_start: I64
    bounds: NDArray[np.uint32]
    term_slots: NDArray[np.uint32]
    term_codes: NDArray[np.int32]
    coefficients: NDArray[np.uint64]
    coefficients_mont: NDArray[np.uint64]


class Instances(NamedTuple):
    """One entry an instance, in the circuit's order, and the external variables of all of them.

    template          which
    first_row         row of its first constraint
    first_aux         aux index of its first own variable
    first_value       place in `values` of its first own number
    bits_start        where in `external_bits` its external bits begin; those are aux indices
    numbers_start     where in `external_numbers` and `external_values` its external numbers begin: as
                      variables (inputs, then aux) and as places in `values`
    """

    template: NDArray[np.uint16]
    first_row: NDArray[np.uint32]
    first_aux: NDArray[np.uint32]
    first_value: NDArray[np.uint32]
    bits_start: I64
    external_bits: NDArray[np.uint32]
    numbers_start: I64
    external_numbers: NDArray[np.uint32]
    external_values: NDArray[np.uint32]


SIGN = 256
GENERAL = 512


@jit
def value_place(templates, instances, i, slot):
    """Where in `values` the number `slot` of instance i is."""
    t = instances.template[i]
    first_number = 1 + templates.external_bits[t]
    first_own = first_number + templates.external_numbers[t]
    if slot < first_own:
        return np.int64(instances.external_values[instances.numbers_start[i] + slot - first_number])
    position = templates.full_position[templates.own_start[t] + slot - first_own]
    return np.int64(instances.first_value[i]) + position


@jit
def bit_place(templates, instances, i, slot):
    """Where in `bits` the bit `slot` of instance i is; slot 0, ONE, has no place."""
    t = instances.template[i]
    if slot <= templates.external_bits[t]:
        return np.int64(instances.external_bits[instances.bits_start[i] + slot - 1])
    first_own = 1 + templates.external_bits[t] + templates.external_numbers[t]
    return np.int64(instances.first_aux[i]) + slot - first_own
