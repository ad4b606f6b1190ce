"""Variables, rows and scalars of circuits on the card, each byte that of the CPU; rows that do not hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.numbers import free_numbers, inputize
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.rows import evaluate_side, unsatisfied_row
from cuzk.circuit.witness import Assignment, FreeValues
from cuzk.groth16.gpu.synthesis import DeviceSynthesis
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.modulus import FR
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.sector.porep.c1_reader import read_c1
from tests.circuit.plain import aux_is_full, free
from tests.cli.running import run
from tests.gpu.compared import HOST, SIDES, assert_equal, assert_scalars_equal
from tests.sector.porep import documents
from tests.sector.porep.documents import POREP

CASES = [case for name, case in documents.CASES.items() if name not in documents.MADE_UP]


def sector(file: str) -> tuple[Circuit, FreeValues]:
    c1 = read_c1(POREP / file)
    return circuit_of(c1.shape), free_values(c1, 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_digests_of_what_the_card_computes_are_upstreams(case: dict[str, Any], device: CudaDevice) -> None:
    result = run("circuit", "digest", POREP / case["file"], "--check", "--device", device.name, "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    for k, expected in enumerate(case["partitions"]):
        found = facts[f"partition_{k}"]
        for name in ("inputs", "aux", "a", "b", "c"):
            assert found[f"{name}_digest"] == expected[f"{name}_digest"]
        assert found["unsatisfied"] is None


@pytest.fixture(scope="module")
def synthesis(device: CudaDevice) -> Iterator[DeviceSynthesis]:
    """Of the 2 KiB circuit."""
    synthesis = DeviceSynthesis(device, sector("2k-zero.json")[0])
    yield synthesis
    synthesis.close()


@pytest.mark.parametrize("file", ["2k-random.json", "2k-zero.json", "2k-synthetic.json"])
def test_variables_and_rows_of_a_sector_are_those_of_the_cpu(
    file: str, device: CudaDevice, synthesis: DeviceSynthesis
) -> None:
    assert_equal(device, synthesis, sector(file)[1])
    assert synthesis.unsatisfied_row() is None


@pytest.mark.parametrize("arity", [2, 4, 8, 11])
@pytest.mark.parametrize("value", [0, FR.p - 1])
def test_hashes_at_the_edges_are_those_of_the_cpu(arity: int, value: int, device: CudaDevice) -> None:
    builder = CircuitBuilder("hash")
    inputize(builder, poseidon(builder, free_numbers(builder, arity)))
    synthesis = DeviceSynthesis(device, builder.circuit())
    assert_equal(device, synthesis, free([value] * arity))
    synthesis.close()


def test_values_that_follow_from_nothing_are_the_cpus_too(
    device: CudaDevice, synthesis: DeviceSynthesis
) -> None:
    """Random free values: paths that lead nowhere, sums of bits as before, equalities that do not hold."""
    random = np.random.default_rng(5)
    _, like = sector("2k-zero.json")
    numbers = random.integers(0, 256, like.numbers.shape, dtype=np.uint8)
    numbers[:, -1] &= 0x3F
    bits = random.integers(0, 2, like.bits.shape, dtype=np.uint8)
    assignment = assert_equal(device, synthesis, FreeValues(numbers=numbers, bits=bits))
    sides = [evaluate_side(HOST, synthesis.circuit, assignment, side) for side in SIDES]
    expected = unsatisfied_row(HOST, synthesis.circuit, *sides)
    assert expected is not None
    assert synthesis.unsatisfied_row() == expected


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_a_flipped_bit_is_found_by_its_row(
    part: float, device: CudaDevice, synthesis: DeviceSynthesis
) -> None:
    circuit, values = sector("2k-random.json")
    synthesis.assign(values)
    synthesis.synchronise()
    bits = device.download(synthesis.bits)
    are_bits = np.flatnonzero(~aux_is_full(circuit))
    bits[are_bits[int(part * len(are_bits))]] ^= 1
    device.upload(bits, into=synthesis.bits)
    device.synchronise()
    assignment = Assignment(
        values=device.download(synthesis.values), bits=bits, num_inputs=circuit.num_inputs
    )
    sides = [evaluate_side(HOST, circuit, assignment, side) for side in SIDES]
    expected = unsatisfied_row(HOST, circuit, *sides)
    assert expected is not None
    assert synthesis.unsatisfied_row() == expected


def test_scalars_of_the_sections_are_the_cpus(device: CudaDevice, synthesis: DeviceSynthesis) -> None:
    circuit, values = sector("2k-random.json")
    assert_scalars_equal(device, synthesis, assert_equal(device, synthesis, values))
