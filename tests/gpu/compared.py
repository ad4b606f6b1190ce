"""What a card makes of free values against what the CPU makes of them, byte for byte."""

from __future__ import annotations

import numpy as np

from cuzk.circuit.rows import evaluate_side
from cuzk.circuit.witness import Assignment, FreeValues, assign
from cuzk.groth16.gpu.synthesis import DeviceSynthesis
from cuzk.groth16.query import selections
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from tests.circuit.plain import aux_is_full

HOST = CpuDevice()
SIDES = range(3)


def assert_equal(device: CudaDevice, synthesis: DeviceSynthesis, values: FreeValues) -> Assignment:
    """Variables and rows are the CPU's."""
    circuit = synthesis.circuit
    expected = assign(HOST, circuit, values)
    synthesis.assign(values)
    synthesis.synchronise()
    assert np.array_equal(device.download(synthesis.bits), expected.bits)
    assert np.array_equal(device.download(synthesis.values), expected.values)
    m = circuit.num_constraints + 1000
    with device.allocate((m, 4), np.uint64) as out:
        for side in SIDES:
            synthesis.rows(side, out)
            synthesis.synchronise()
            found = device.download(out)
            assert np.array_equal(
                found[: circuit.num_constraints], evaluate_side(HOST, circuit, expected, side)
            )
            assert not found[circuit.num_constraints :].any()
    return expected


def assert_a_flipped_bit_breaks_a_row(device: CudaDevice, synthesis: DeviceSynthesis) -> None:
    """After a partition whose rows hold: with the last variable that is a bit, one of the last rows."""
    circuit = synthesis.circuit
    last = int(np.flatnonzero(~aux_is_full(circuit))[-1])
    flipped = device.download(synthesis.bits.rows(last, last + 1)) ^ 1
    device.upload(flipped, into=synthesis.bits.rows(last, last + 1))
    device.synchronise()
    broken = synthesis.unsatisfied_row()
    assert broken is not None and broken[0] > circuit.rows - 1_000_000


def assert_scalars_equal(device: CudaDevice, synthesis: DeviceSynthesis, expected: Assignment) -> None:
    """Those of all sections, after `assert_equal`; where all are taken as numbers, those of bits are 0."""
    for section, scalars in synthesis.scalars.items():
        query = selections(synthesis.circuit).of(section).query(expected)
        assert np.array_equal(device.download(scalars.bits), query.bits)
        full = device.download(scalars.full_scalars)
        if scalars.full_index is None:
            assert len(full) == len(query.bits) and 2 * len(query.full_index) > len(full)
            assert not np.delete(full, query.full_index, axis=0).any()
            full = full[query.full_index]
        else:
            assert np.array_equal(scalars.full_index, query.full_index)
        assert np.array_equal(full, query.full_scalars)
