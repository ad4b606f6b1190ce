"""Which scalars meet the points of a section: found once for a circuit, filled for each assignment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import Assignment
from cuzk.groth16.parameters import SectionName
from cuzk.groth16.target import Query


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The variables of one section: some inputs, then some aux variables.

    inputs      (i,) which inputs
    aux         (num_aux,) bool: which aux variables
    full_index  (k,) uint32: the places, of the section's, of those that are no bits; inputs count as such
    full        (k - i,) which of `assignment.full` these are
    """

    inputs: NDArray[np.intp]
    aux: NDArray[np.bool_]
    full_index: NDArray[np.uint32]
    full: NDArray[np.intp]

    @classmethod
    def of(cls, circuit: Circuit, inputs: NDArray[np.bool_], aux: NDArray[np.bool_]) -> Selection:
        """The section that has points for these inputs, then for these aux variables."""
        chosen = np.flatnonzero(inputs)
        full = np.flatnonzero(aux[circuit.full_aux])
        places = len(chosen) + _ranks(aux, circuit.full_aux[full])
        return cls(
            inputs=chosen,
            aux=aux,
            full_index=np.concatenate([np.arange(len(chosen)), places]).astype(np.uint32),
            full=full,
        )

    def query(self, assignment: Assignment) -> Query:
        """Its scalars under an assignment."""
        return Query(
            bits=np.concatenate([np.zeros(len(self.inputs), np.uint8), assignment.bits[self.aux]]),
            full_index=self.full_index,
            full_scalars=np.concatenate([assignment.inputs[self.inputs], assignment.full[self.full]]),
        )


def _ranks(chosen: NDArray[np.bool_], places: NDArray[np.uint32]) -> NDArray[np.intp]:
    """(k,) how many are chosen before each of the places, which ascend.

    Sums between places, as a sum up to every place would take eight bytes a variable.
    """
    if len(places) == 0:
        return np.zeros(0, np.intp)
    between: NDArray[np.intp] = np.add.reduceat(chosen.view(np.uint8), places, dtype=np.intp)
    return np.cumsum(between) - between + np.count_nonzero(chosen[: places[0]])


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
    inputs = circuit.num_inputs
    in_b = circuit.occurs(1)
    none, every = np.zeros(inputs, np.bool_), np.ones(inputs, np.bool_)
    return Selections(
        l=Selection.of(circuit, none, np.ones(circuit.num_aux, np.bool_)),
        a=Selection.of(circuit, every, circuit.a_aux_density),
        b=Selection.of(circuit, in_b[:inputs], in_b[inputs:]),
    )
