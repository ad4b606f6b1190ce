"""Which scalars meet the points of a section: found once for a circuit, filled for each assignment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.marks import Marks
from cuzk.circuit.witness import Assignment
from cuzk.groth16.parameters.params_file import SectionName
from cuzk.groth16.target import Query


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The variables of one section: some inputs, then some aux variables.

    marks       which variables
    full_index  (k,) uint32: the places, of the section's, of those that are no bits; inputs count as such
    values      (k,) uint32: which of `assignment.values` these are
    """

    marks: Marks
    full_index: NDArray[np.uint32]
    values: NDArray[np.uint32]

    @classmethod
    def of(cls, circuit: Circuit, chosen: Marks) -> Selection:
        """The section that has points for these variables."""
        count = circuit.num_inputs + circuit.num_aux
        is_full, is_chosen = (
            np.unpackbits(part, count=count).view(np.bool_) for part in (circuit.full, chosen)
        )
        return cls(
            marks=chosen,
            full_index=np.flatnonzero(is_full[is_chosen]).astype(np.uint32),
            values=np.flatnonzero(is_chosen[is_full]).astype(np.uint32),
        )

    def query(self, assignment: Assignment) -> Query:
        """Its scalars under an assignment."""
        bits = np.concatenate([np.zeros(assignment.num_inputs, np.uint8), assignment.bits])
        return Query(
            bits=bits[np.unpackbits(self.marks, count=len(bits)).view(np.bool_)],
            full_index=self.full_index,
            full_scalars=assignment.values[self.values],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selections:
    """Those of L, A and B; B's serves both groups."""

    l: Selection  # noqa: E741  the section's own name
    a: Selection
    b: Selection

    def of(self, section: SectionName) -> Selection:
        return {"l": self.l, "a": self.a, "b_g1": self.b, "b_g2": self.b}[section]


@lru_cache(maxsize=2)
def selections(circuit: Circuit) -> Selections:
    """L has every aux variable; A every input, and the aux variables that occur in A; B what occurs in B."""
    every_aux = np.ones(circuit.num_inputs + circuit.num_aux, np.bool_)
    every_aux[: circuit.num_inputs] = False
    sections = (np.packbits(every_aux), *circuit.packed_occurrences)
    l, a, b = (Selection.of(circuit, section) for section in sections)  # noqa: E741
    return Selections(l=l, a=a, b=b)
