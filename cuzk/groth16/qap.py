"""What Groth16 makes of a circuit: the domain of its rows, and how many points its parameters have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cuzk.circuit import marks
from cuzk.circuit.builder import Circuit
from cuzk.groth16.parameters.params_file import PointCounts, SectionName
from cuzk.kernels.modulus import FR_TWO_ADICITY


def domain_log2(circuit: Circuit) -> int:
    """log2 of m, the least power of two that holds every row, those of the inputs included."""
    log2 = (circuit.num_constraints - 1).bit_length()
    assert log2 <= FR_TWO_ADICITY, log2
    return log2


@lru_cache(maxsize=2)
def point_counts(circuit: Circuit) -> PointCounts:
    """How many points each section of the circuit's parameter file has."""
    return PointCounts(
        ic=circuit.num_inputs,
        h=(1 << domain_log2(circuit)) - 1,
        l=circuit.num_aux,
        a=marks.count(circuit.packed_occurrences[0]),
        b=marks.count(circuit.packed_occurrences[1]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FullCounts:
    """How many points of a section a GPU takes with full scalars, others with bits; `b` serves both groups.

    Where most of a section's scalars are full, all of them are taken so: its points need not be collected,
    which would nearly double them.
    """

    l: int  # noqa: E741  the format's own name
    a: int
    b: int

    def of(self, section: SectionName) -> int:
        return {"h": 0, "l": self.l, "a": self.a, "b_g1": self.b, "b_g2": self.b}[section]


@lru_cache(maxsize=2)
def full_counts(circuit: Circuit) -> FullCounts:
    """Of a circuit's sections; inputs count as full."""
    points = point_counts(circuit)
    in_a, in_b = (marks.count(side & circuit.full) for side in circuit.packed_occurrences)
    return FullCounts(
        l=_all_or_few(circuit.num_full, points.l),
        a=_all_or_few(in_a, points.a),
        b=_all_or_few(in_b, points.b),
    )


def _all_or_few(full: int, points: int) -> int:
    return points if 2 * full > points else full
