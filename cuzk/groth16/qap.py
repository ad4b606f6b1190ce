"""What Groth16 makes of a circuit: the domain of its rows, and how many points its parameters have."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuzk.circuit.builder import Circuit
from cuzk.groth16.parameters import PointCounts
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
        a=circuit.num_inputs + int(np.count_nonzero(circuit.a_aux_density)),
        b=int(np.count_nonzero(circuit.occurs(1))),
    )
