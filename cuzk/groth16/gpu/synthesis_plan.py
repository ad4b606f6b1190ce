"""Where the synthesis of a circuit lies in a GPU's memory: known without a card.

At 32 GiB 130 MB of bits and 54 MB of numbers; 220 MB to take from them the bits of two sections, 60 MB what
else sums are given; 50 MB of tables.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import free_places
from cuzk.groth16.parameters.params_file import SectionName
from cuzk.groth16.qap import full_counts, point_counts
from cuzk.kernels.circuit.instances import for_gpu
from cuzk.kernels.gpu.workspace import Layout

NUMBER_WORDS = 8
MARKS_A_WORD = 32
_ALIGNMENT = 16  # of the first aux variable's bit: sums read bits eight at a time

#: Sections whose scalars are taken from the variables; b_g2 has those of b_g1. L has the bits of all.
TAKEN: tuple[SectionName, ...] = ("l", "a", "b_g1")
MARKED: tuple[SectionName, ...] = ("a", "b_g1")


def lead_bytes(circuit: Circuit) -> int:
    """Zeros before the bits of aux variables, at least one for each input."""
    return -(-circuit.num_inputs // _ALIGNMENT) * _ALIGNMENT


def zero_row(circuit: Circuit) -> int:
    """Which row of the values is 0 for ever: behind all others."""
    return circuit.num_inputs + circuit.num_full


def mark_words(circuit: Circuit) -> int:
    """Words with a bit for each variable."""
    return -(-(circuit.num_inputs + circuit.num_aux) // MARKS_A_WORD)


def tables_of(circuit: Circuit) -> dict[str, NDArray[Any]]:
    """What does not depend on a partition: places of free values, the instances in waves, all tables."""
    numbers, bits = free_places(circuit)
    tables = for_gpu(circuit.flat_templates, circuit.instances)
    return {
        "places of numbers": numbers,
        "places of bits": bits,
        "order": circuit.waves.order,
        **{f"table {number}": table for number, table in enumerate(tables)},
    }


@lru_cache(maxsize=2)
def synthesis_layout(circuit: Circuit) -> Layout:
    """All that a card holds of a circuit's variables."""
    parts, points, full = Layout(), point_counts(circuit), full_counts(circuit)
    parts.add("bits", lead_bytes(circuit) + circuit.num_aux, np.uint8)
    parts.add("values", (zero_row(circuit) + 1, 4), np.uint64)
    tables = tables_of(circuit)
    for name, table in tables.items():
        parts.add(name, table.shape, table.dtype)
    parts.add("free numbers", (len(tables["places of numbers"]), NUMBER_WORDS))
    parts.add("free bits", len(tables["places of bits"]), np.uint8)
    for section in TAKEN:
        parts.add(f"index of {section}", full.of(section))
        parts.add(f"full of {section}", (full.of(section), 4), np.uint64)
    for section in MARKED:
        parts.add(f"marks of {section}", mark_words(circuit))
        parts.add(f"starts of {section}", mark_words(circuit))
        parts.add(f"bits of {section}", points.of(section), np.uint8)
    return parts
