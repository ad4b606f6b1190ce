"""Rows of one template, recorded while a gadget runs once on symbolic variables.

A template's variables are *slots*: 0 is ONE, then the external bits, the external numbers, and the variables
that the template allocates itself, in the order of allocation. A row is A * B = C, each side a linear
combination {slot: coefficient}. Rows keep their order, as do allocations: the first decides the evaluation
domain, the second the parameters. Coefficients are stored once and rows refer to them by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.modulus import FR

LC = dict[int, int]
"""A linear combination: slot -> coefficient, any integer, taken mod r. A 0 is a term that digests and counts
have, since upstream has it, and that nothing is computed with."""

ONE = 0
SIDES = 3


@dataclass(frozen=True, slots=True)
class Witness:
    """How a template's own variables follow from its externals: a kernel, and the tables it reads.

    kind     one of the kinds of `kernels.circuit.witness`
    words    uint32 parameters, laid out as that kernel says
    numbers  canonical field elements, likewise
    """

    kind: int
    words: NDArray[np.uint32]
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    """The rows and variables that every instance of one gadget has.

    aux_is_bit    (aux,) bool: which own variables are bits
    outputs       (n,) int64: own variables, counted from the template's first, that the gadget hands on
    ends          (3 * rows,) uint32: where the terms of A, B, C of each row end; side 3 * row + 0, 1, 2
    slots         (terms,) uint32, ascending within a side
    coefficients  (terms,) uint32, into `values`
    values        the different coefficients, canonical
    labels        (first row, what begins there), ascending: names for messages
    """

    name: str
    witness: Witness
    external_bits: int
    external_numbers: int
    aux_is_bit: NDArray[np.bool_]
    outputs: NDArray[np.int64]
    ends: NDArray[np.uint32]
    slots: NDArray[np.uint32]
    coefficients: NDArray[np.uint32]
    values: tuple[int, ...]
    labels: tuple[tuple[int, str], ...]

    def __getstate__(self) -> dict[str, Any]:
        """The fields: what follows from them is not worth its room where circuits are kept."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def rows(self) -> int:
        return len(self.ends) // SIDES

    @property
    def aux(self) -> int:
        return len(self.aux_is_bit)

    @property
    def externals(self) -> int:
        return self.external_bits + self.external_numbers

    @property
    def first_own_slot(self) -> int:
        return 1 + self.externals

    @cached_property
    def full(self) -> NDArray[np.int64]:
        """Own variables that are no bits, ascending."""
        return np.flatnonzero(~self.aux_is_bit)

    @cached_property
    def term_side(self) -> NDArray[np.int64]:
        """(terms,) the side, 3 * row + 0, 1 or 2, that each term belongs to."""
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=np.uint32(0)))

    @cached_property
    def nonzeros(self) -> tuple[int, int, int]:
        """Terms in A, B and C."""
        a, b, c = np.bincount(self.term_side % SIDES, minlength=SIDES).tolist()
        return a, b, c

    def occurs(self, side: int) -> NDArray[np.bool_]:
        """(slots,) bool: which variables occur in A (0), B (1) or C (2)."""
        seen = np.zeros(self.first_own_slot + self.aux, dtype=np.bool_)
        seen[self.slots[self.term_side % SIDES == side]] = True
        return seen

    def label_of(self, row: int) -> str:
        """What row `row` of the template is, empty if the gadget names no parts."""
        names = [label for first, label in self.labels if first <= row]
        return names[-1] if names else ""


class Tracer:
    """Records one template. `bits` and `numbers` are the counts of its external variables."""

    def __init__(self, *, bits: int = 0, numbers: int = 0) -> None:
        self._external_bits = bits
        self._external_numbers = numbers
        self._first_own = 1 + bits + numbers
        self._aux_is_bit: list[bool] = []
        self._ends: list[int] = []
        self._slots: list[int] = []
        self._coefficients: list[int] = []
        self._labels: list[tuple[int, str]] = []

    @property
    def bits(self) -> range:
        """Slots of the external bits."""
        return range(1, 1 + self._external_bits)

    @property
    def numbers(self) -> range:
        """Slots of the external numbers."""
        return range(1 + self._external_bits, self._first_own)

    @property
    def allocated(self) -> int:
        return len(self._aux_is_bit)

    def alloc_bit(self) -> int:
        """The slot of a new variable whose value is 0 or 1; what makes it so is the caller's row."""
        self._aux_is_bit.append(True)
        return self._first_own + len(self._aux_is_bit) - 1

    def alloc(self) -> int:
        """The slot of a new variable of any value."""
        self._aux_is_bit.append(False)
        return self._first_own + len(self._aux_is_bit) - 1

    def enforce(self, a: LC, b: LC, c: LC) -> None:
        """Append the row a * b = c."""
        for side in (a, b, c):
            self._slots.extend(side)
            self._coefficients.extend(side.values())
            self._ends.append(len(self._slots))

    def enforce_bit(self, slot: int) -> None:
        """Append (1 - v) * v = 0."""
        self._append((ONE, slot, slot), (1, -1, 1), 2, 1)

    def enforce_xor(self, x: int, y: int, out: int) -> None:
        """Append 2x * y = x + y - out."""
        self._append((x, y, x, y, out), (2, 1, 1, 1, -1), 1, 1)

    def _append(self, slots: tuple[int, ...], coefficients: tuple[int, ...], in_a: int, in_b: int) -> None:
        """As `enforce`, twice as fast: nine rows in ten of SHA-256 come through here."""
        before = len(self._slots)
        self._slots += slots
        self._coefficients += coefficients
        self._ends += (before + in_a, before + in_a + in_b, before + len(slots))

    def label(self, text: str) -> None:
        """Name the rows from here on."""
        self._labels.append((len(self._ends) // SIDES, text))

    def template(self, name: str, witness: Witness, outputs: Sequence[int] = ()) -> Template:
        """Everything recorded so far; `outputs` are own slots."""
        ends = np.array(self._ends, dtype=np.uint32)
        slots = np.array(self._slots, dtype=np.uint32)
        numbering = {value: number for number, value in enumerate(dict.fromkeys(self._coefficients))}
        numbers = np.array([numbering[value] for value in self._coefficients], dtype=np.uint32)
        side = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=np.uint32(0)))
        order = np.lexsort((slots, side))
        values = tuple(value % FR.p for value in numbering)
        return Template(
            name=name,
            witness=witness,
            external_bits=self._external_bits,
            external_numbers=self._external_numbers,
            aux_is_bit=np.array(self._aux_is_bit, dtype=np.bool_),
            outputs=np.array(outputs, dtype=np.int64) - self._first_own,
            ends=ends,
            slots=slots[order],
            coefficients=numbers[order],
            values=values,
            labels=tuple(self._labels),
        )
