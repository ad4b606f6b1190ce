"""Templates and their instances as flat arrays: what every kernel of a circuit reads.

Variables live in two arrays: `bits` (aux,) uint8, and `values` (inputs + full, 4) uint64, canonical, the
inputs (ONE first) before the variables that are no bits. Within a template a variable is a *slot*: 0 is ONE,
then the external bits, the external numbers, and the template's own variables.

What there is one of for each template or instance are records, of int64 only. Kernels are given their `table`
as plain words (`in_words`), since a GPU has bare pointers, and read a record by `template_at`, `instance_at`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.jit import jit


class TemplateRecord(NamedTuple):
    """One template: its witness kernel, counts, the first of its own slots, and where its tables begin."""

    kind: int
    external_bits: int
    first_own: int
    aux: int
    rows: int
    positions_start: int
    words_start: int
    words_end: int
    numbers_start: int
    bounds_start: int


class InstanceRecord(NamedTuple):
    """One instance: its template, first row, first own variable (an aux index), the place in `values` of its
    first own number, and where its external bits and numbers begin."""

    template: int
    first_row: int
    first_aux: int
    first_value: int
    bits_start: int
    numbers_start: int


def _record(fields: tuple[str, ...]) -> np.dtype[Any]:
    return np.dtype([(field, np.int64) for field in fields])


TEMPLATE, INSTANCE = _record(TemplateRecord._fields), _record(InstanceRecord._fields)
_TEMPLATE_WORDS, _INSTANCE_WORDS = len(TemplateRecord._fields), len(InstanceRecord._fields)


class Templates(NamedTuple):
    """The templates of a circuit and their tables, one after the other.

    table          (templates,) TEMPLATE
    full_position  for each own variable its place among the template's own numbers, -1 for a bit
    words          uint32 parameters of the witness kernels; `numbers` (n, 4) likewise, Montgomery form
    bounds         six a row and one more: where its terms begin; for A, B, C first bits times +-2^k, then
                   the others
    term_slots     slot of each term
    term_codes     its coefficient: k for 2^k, SIGN + k for -2^k, GENERAL + i for coefficient i
    coefficients   (n, 4) canonical; `coefficients_mont` the same in Montgomery form
    """

    table: NDArray[np.void]
    full_position: NDArray[np.int32]
    words: NDArray[np.uint32]
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


class Variables(NamedTuple):
    """The values of all variables, as kernels are given them.

    words  the memory of `values` once more, (8n,) uint32: a GPU has one pointer for both
    """

    bits: Any
    values: Any
    words: Any

    @classmethod
    def of(cls, bits: NDArray[np.uint8], values: NDArray[np.uint64]) -> Variables:
        return cls(bits, values, values.reshape(-1).view(np.uint32))


SIGN = 256
GENERAL = 512

Tables = TypeVar("Tables", Templates, Instances)


def in_words(tables: Tables) -> Tables:
    """The same arrays, the records of `table` as consecutive words."""
    return tables._replace(table=tables.table.view(np.int64))


def for_gpu(templates: Templates, instances: Instances) -> list[NDArray[Any]]:
    """All arrays in the order of the fields, as a GPU's kernels take them: field elements as uint32."""
    arrays = (*in_words(templates), *in_words(instances))
    return [array.view(np.uint32) if array.dtype == np.uint64 else array for array in arrays]


@jit
def template_at(table, i):
    """The record of template i."""
    at = i * _TEMPLATE_WORDS
    return TemplateRecord(
        table[at], table[at + 1], table[at + 2], table[at + 3], table[at + 4], table[at + 5], table[at + 6],
        table[at + 7], table[at + 8], table[at + 9],
    )  # fmt: skip


@jit
def instance_at(table, i):
    """The record of instance i."""
    at = i * _INSTANCE_WORDS
    return InstanceRecord(
        table[at], table[at + 1], table[at + 2], table[at + 3], table[at + 4], table[at + 5]
    )


@jit
def value_place(templates, template, instances, instance, slot):
    """Where in `values` the number `slot` of an instance is."""
    if slot < template.first_own:
        return np.int64(instances.external_values[instance.numbers_start + slot - 1 - template.external_bits])
    return (
        instance.first_value + templates.full_position[template.positions_start + slot - template.first_own]
    )
