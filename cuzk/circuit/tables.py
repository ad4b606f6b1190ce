"""A circuit's templates as the flat arrays that kernels read, with coefficients split for fast evaluation.

A bit times +-2^k needs no field product, so a bit's coefficient that is a sum of at most three such powers
becomes that many terms. A multi-equation's coefficients are of this kind; its constants and Poseidon's
factors are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.r1cs import SIDES, Template
from cuzk.kernels.circuit.instances import GENERAL, SIGN, TEMPLATE, Templates
from cuzk.kernels.field_type import FR as ONE_LANE
from cuzk.kernels.fr_vector import from_integers, mont_rows
from cuzk.kernels.modulus import FR

MOST_POWERS = 3
"""A product costs about as much as eight additions; more powers than this save little."""


def flat_templates(templates: Sequence[Template]) -> Templates:
    """The tables of all templates of a circuit."""
    pool = CoefficientPool()
    programs = [row_program(template, pool) for template in templates]
    words = [template.witness.words for template in templates]
    numbers = [template.witness.numbers for template in templates]
    term_starts = starts([len(slots) for _, slots, _ in programs])
    bounds = [program[0] + start for program, start in zip(programs, term_starts, strict=True)]
    table = np.zeros(len(templates), dtype=TEMPLATE)
    table["kind"] = [template.witness.kind for template in templates]
    table["external_bits"] = [template.external_bits for template in templates]
    table["first_own"] = [template.first_own_slot for template in templates]
    table["aux"] = [template.aux for template in templates]
    table["rows"] = [template.rows for template in templates]
    table["positions_start"] = starts([template.aux for template in templates])
    table["words_start"] = starts([len(part) for part in words])
    table["words_end"] = table["words_start"] + [len(part) for part in words]
    table["numbers_start"] = starts([len(part) for part in numbers])
    table["bounds_start"] = starts([len(part) for part in bounds])
    return Templates(
        table=table,
        full_position=np.concatenate([full_position(template) for template in templates]),
        words=np.concatenate(words),
        numbers=mont_rows(ONE_LANE, chain.from_iterable(numbers)),
        bounds=np.concatenate(bounds).astype(np.uint32),
        term_slots=np.concatenate([slots for _, slots, _ in programs]).astype(np.uint32),
        term_codes=np.concatenate([codes for _, _, codes in programs]).astype(np.int32),
        coefficients=from_integers(pool.values),
        coefficients_mont=mont_rows(ONE_LANE, pool.values),
    )


def full_position(template: Template) -> NDArray[np.int32]:
    """(aux,) each own variable's place among the template's own numbers, -1 for a bit."""
    position = np.cumsum(~template.aux_is_bit) - 1
    return np.where(template.aux_is_bit, -1, position).astype(np.int32)


class CoefficientPool:
    """Numbers the coefficients that stay field elements."""

    def __init__(self) -> None:
        self._numbering: dict[int, int] = {}

    @property
    def values(self) -> list[int]:
        return list(self._numbering)

    def code(self, value: int) -> int:
        return GENERAL + self._numbering.setdefault(value, len(self._numbering))


def row_program(
    template: Template, pool: CoefficientPool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Bounds, slots and codes of a template's terms, from 0; a side's powers come by falling exponent."""
    number_slots = np.zeros(template.first_own_slot + template.aux, dtype=np.bool_)
    number_slots[1 + template.external_bits : template.first_own_slot] = True
    number_slots[template.first_own_slot :] = ~template.aux_is_bit
    codes_of_bit, codes_of_number = (
        [simple(value) or [pool.code(value)] if value else [] for value in template.values]
        for simple in (signed_powers, unit)
    )
    table, offsets, counts = ragged(codes_of_bit + codes_of_number)
    which = template.coefficients + np.where(number_slots[template.slots], len(template.values), 0)
    repeat = counts[which]
    within = np.arange(repeat.sum()) - np.repeat(np.cumsum(repeat) - repeat, repeat)
    codes = table[np.repeat(offsets[which], repeat) + within]
    slots = np.repeat(template.slots.astype(np.int64), repeat)
    is_other = number_slots[slots] | (codes >= GENERAL)
    part = 2 * np.repeat(template.term_side, repeat) + is_other
    order = np.lexsort((-(codes % SIGN), part))
    counts = np.bincount(part, minlength=2 * SIDES * template.rows)
    return np.concatenate([[0], np.cumsum(counts)]), slots[order], codes[order]


def starts(counts: Sequence[int]) -> NDArray[np.int64]:
    """(n,) where each of n consecutive ranges of these lengths begins."""
    return np.array([0, *accumulate(counts)][:-1], dtype=np.int64)


def ragged(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All lists one after the other, where each begins, and how long it is."""
    counts = [len(entry) for entry in lists]
    flat = np.array([value for entry in lists for value in entry], dtype=np.int64)
    return flat, starts(counts), np.array(counts, dtype=np.int64)


def unit(value: int) -> list[int]:
    """The code of 1 or -1; empty for others."""
    return {1: [0], FR.p - 1: [SIGN]}.get(value, [])


def signed_powers(value: int) -> list[int]:
    """Codes of at most MOST_POWERS signed powers of two that sum to the value mod r; else empty."""
    for start, flip in ((value, 0), (FR.p - value, SIGN)):
        codes: list[int] = []
        rest = start
        while rest and len(codes) < MOST_POWERS + 1:
            low = (rest & -rest).bit_length() - 1
            negative = rest >> low & 3 == 3  # a run of ones: its upper end less its lower
            rest += 1 << low if negative else -(1 << low)
            codes.append(low + (SIGN if negative else 0) ^ flip)
        if len(codes) <= MOST_POWERS:
            return codes
    return []
