"""Waves of instances: none reads what its own wave or a later one fills, and none is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.digest import variables_of
from cuzk.circuit.numbers import (
    add,
    equate,
    free_bits,
    free_numbers,
    inputize,
    pack,
    pack_into_input,
    to_bits,
)
from cuzk.kernels.circuit.witness import COPY, FREE, NOTHING, PACK
from cuzk.proofs.kinds import circuit_of
from cuzk.sector.porep.shape import porep_shape
from cuzk.sector.shape import GIB, KIB
from tests.toy_circuit import toy_circuit


def small() -> Circuit:
    """An input that is read again, variables without readers, an instance that nothing comes before."""
    builder = CircuitBuilder("small")
    bits = free_bits(builder, 5)
    pack_into_input(builder, bits[1:4])
    x, y = free_numbers(builder, 2)
    inputize(builder, add(builder, x, y))
    packed = pack(builder, to_bits(builder, add(builder, y, -2)))
    equate(builder, packed, x)
    add(builder, packed, -3)
    return builder.circuit()


def read_and_filled(circuit: Circuit, i: int) -> tuple[np.ndarray, np.ndarray]:
    """The variables, inputs first, that instance i reads, and those that it fills."""
    template = circuit.templates[circuit.instances.table["template"][i]]
    variables, own = variables_of(circuit, i), template.first_own_slot
    if template.witness.kind in (COPY, PACK) and not template.aux:  # they fill an input
        own = 1 + template.external_bits
        return np.delete(variables, own), variables[own : own + 1]
    return variables[:own], variables[own:]


@pytest.mark.parametrize("made", [small, toy_circuit, lambda: circuit_of(porep_shape(2 * KIB))])
def test_what_a_wave_reads_is_there_before(made: Callable[[], Circuit]) -> None:
    circuit = made()
    waves = circuit.waves
    kinds = [circuit.templates[number].witness.kind for number in circuit.instances.table["template"]]
    assert sorted(waves.order.tolist()) == [i for i, kind in enumerate(kinds) if kind not in (FREE, NOTHING)]
    never = len(waves.starts)
    filled = np.full(circuit.num_inputs + circuit.num_aux, never)
    filled[0] = 0
    for i in (i for i, kind in enumerate(kinds) if kind == FREE):
        filled[read_and_filled(circuit, i)[1]] = 0
    for wave, (first, end) in enumerate(pairwise(waves.starts), start=1):
        assert first < end
        for i in waves.order[first:end].tolist():
            reads, fills = read_and_filled(circuit, i)
            assert (filled[reads] < wave).all()
            assert (filled[fills] == never).all()
            filled[fills] = wave
    assert (filled < never).all()


@pytest.mark.parametrize(("sector_bytes", "waves"), [(2 * KIB, 30), (32 * GIB, 150)])
def test_the_longest_chain_is_the_tree_of_data(sector_bytes: int, waves: int) -> None:
    """Insertion, bits, two SHA-256 blocks and packing, a level."""
    starts = circuit_of(porep_shape(sector_bytes)).waves.starts
    assert len(starts) - 1 == waves == 5 * porep_shape(sector_bytes).d_levels
    assert (np.diff(starts) > 0).all()
