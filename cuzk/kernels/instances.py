"""Templates and their instances as flat arrays: what every kernel of a circuit reads.

Variables live in two arrays: `bits` (aux,) uint8, and `values` (inputs + full, 4) uint64, canonical, the
inputs (ONE first) before the variables that are no bits. Within a template a variable is a *slot*: 0 is ONE,
then the external bits, the external numbers, and the template's own variables.

What there is one of for each template or instance are records: a kernel with few arrays compiles faster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.jit import jit


def _record(*fields: str) -> np.dtype[Any]:
    return np.dtype([(field, np.int64) for field in fields])


TEMPLATE = _record(
    "kind", "external_bits", "first_own", "aux", "rows",
    "positions_start", "words_start", "words_end", "numbers_start", "numbers_end", "bounds_start",
)  # fmt: skip
"""One template: its witness kernel, counts, the first of its own slots, and where its tables are."""

INSTANCE = _record("template", "first_row", "first_aux", "first_value", "bits_start", "numbers_start")
"""One instance: its template, first row, first own variable (an aux index), the place in `values` of its
first own number, and where its external bits and numbers begin."""


class Templates(NamedTuple):
    """The templates of a circuit and their tables, one after the other.

    table          (templates,) TEMPLATE
    full_position  for each own variable its place among the template's own numbers, -1 for a bit
    words          uint64 parameters of the witness kernels; `numbers` (n, 4) likewise, Montgomery form
    bounds         six a row and one more: where its terms begin; for A, B, C first bits times +-2^k, then
                   the others
    term_slots     slot of each term
    term_codes     its coefficient: k for 2^k, SIGN + k for -2^k, GENERAL + i for coefficient i
    coefficients   (n, 4) canonical; `coefficients_mont` the same in Montgomery form
    """

    table: NDArray[np.void]
    full_position: NDArray[np.int32]
    words: NDArray[np.uint64]
    numbers: NDArray[np.uint64]
    bounds: NDArray[np.uint32]
    term_slots: NDArray[np.uint32]
    term_codes: NDArray[np.int32]
    coefficients: NDArray[np.uint64]
    coefficients_mont: NDArray[np.uint64]


class Instances(NamedTuple):
    """The instances of a circuit in order, and the external variables of all of them.

    table             (instances,) INSTANCE
    external_bits     uint32 aux indices
    external_numbers  uint32 variables: inputs, then aux
    external_values   uint32, the same numbers as places in `values`
    """

    table: NDArray[np.void]
    external_bits: NDArray[np.uint32]
    external_numbers: NDArray[np.uint32]
    external_values: NDArray[np.uint32]


SIGN = 256
GENERAL = 512


@jit
def value_place(template, instance, external_values, full_position, slot):
    """Where in `values` the number `slot` of an instance is."""
    if slot < template.first_own:
        return np.int64(external_values[instance.numbers_start + slot - 1 - template.external_bits])
    return instance.first_value + full_position[template.positions_start + slot - template.first_own]
