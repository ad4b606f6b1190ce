"""Synthesis on a GPU, over a stand-in driver whose kernels are the CPU's code: waves, rows, scalars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from random import Random
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.merkle_path import merkle_path, sha256_node
from cuzk.circuit.numbers import free_numbers, inputize
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.rows import evaluate_side, unsatisfied_row
from cuzk.circuit.witness import Assignment, FreeValues, free_places
from cuzk.errors import ResourceError
from cuzk.groth16.gpu.synthesis import DeviceSynthesis, HostSynthesis
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu.jit import CudaKernel
from cuzk.kernels.modulus import FR
from cuzk.proofs.kinds import built_circuit, circuit_of, free_values
from cuzk.proofs.synthesis import CpuSynthesis
from cuzk.sector.porep.c1_reader import read_c1
from cuzk.sector.post import read_post
from cuzk.sector.update import read_update
from tests.circuit.plain import free
from tests.gpu.compared import HOST, assert_equal, assert_scalars_equal
from tests.groth16.gpu.played_circuit import EFFECTS
from tests.kernels.device.fake_cuda import FakeDriver, card
from tests.sector.other_vectors import pieces_of
from tests.sector.porep.documents import POREP
from tests.toy_circuit import toy_circuit, toy_values


def toy() -> tuple[Circuit, FreeValues]:
    return toy_circuit(), toy_values(1, 2)


def paths() -> tuple[Circuit, FreeValues]:
    """One level of each kind of hash. The roots are not what the leaves hash to."""
    builder = CircuitBuilder("path")
    leaf, root = free_numbers(builder, 2)
    inputize(builder, root)
    for arity, hash_ in ((2, sha256_node), (8, poseidon)):
        builder.begin_strand()
        with builder.section(f"path of {arity}"):
            merkle_path(builder, leaf, root, [arity], hash_)
    random = Random(1)
    numbers = [FR.p - 1, 7, *(random.randrange(FR.p) for _ in range(8))]
    return builder.circuit(), free(numbers, [1, 0, 1, 1])


def sector() -> tuple[Circuit, FreeValues]:
    c1 = read_c1(POREP / "2k-random.json")
    return circuit_of(c1.shape), free_values(c1, 0)


def update() -> tuple[Circuit, FreeValues]:
    """One challenge of a sector update: none of its free values is a bit."""
    pieces = read_update(pieces_of("snap-2k"))
    shape, whole = replace(pieces.shape, challenges=1), free_values(pieces, 0)
    circuit = built_circuit(shape)
    return circuit, replace(whole, numbers=whole.numbers[: len(free_places(circuit)[0])])


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = FakeDriver(card(memory_bytes=2 << 30))
    driver.effects = dict(EFFECTS)
    monkeypatch.setattr(CudaKernel, "cubin", lambda self, capability: b"code")
    return driver


@pytest.fixture
def device(driver: FakeDriver) -> Iterator[CudaDevice]:
    with CudaDevice("cuda:0", api=driver) as device:
        yield device
    assert driver.held == {}


def window() -> tuple[Circuit, FreeValues]:
    given = read_post(pieces_of("window-2k"))
    return circuit_of(given.shape), free_values(given, 0)


def winning() -> tuple[Circuit, FreeValues]:
    given = read_post(pieces_of("winning-2k"))
    return circuit_of(given.shape), free_values(given, 0)


@pytest.mark.parametrize("made", [toy, paths, sector, update, window, winning])
def test_variables_rows_and_scalars_are_those_of_the_cpu(made: Any, device: CudaDevice) -> None:
    circuit, values = made()
    synthesis = DeviceSynthesis(device, circuit)
    for _ in range(2):  # nothing is left of the partition before
        expected = assert_equal(device, synthesis, values)
        assert_scalars_equal(device, synthesis, expected)
    synthesis.close()
    assert device.memory.used_bytes == 0


def test_an_unsatisfied_row_is_named(device: CudaDevice) -> None:
    circuit, values = paths()
    synthesis = DeviceSynthesis(device, circuit)
    synthesis.assign(values)
    assert synthesis.unsatisfied_row() == (45384, "path of 2, root")
    bits = device.download(synthesis.bits)
    for place in (0, 20_000, 45_000):
        flipped = bits.copy()
        flipped[circuit.instances.table["first_aux"][2] + place] ^= 1
        device.upload(flipped, into=synthesis.bits)
        assignment = Assignment(
            values=device.download(synthesis.values), bits=flipped, num_inputs=circuit.num_inputs
        )
        sides = [evaluate_side(HOST, circuit, assignment, side) for side in range(3)]
        expected = unsatisfied_row(HOST, circuit, *sides)
        assert expected is not None and expected[0] < 45384
        assert synthesis.unsatisfied_row() == expected
    synthesis.close()


@pytest.mark.parametrize("made", [toy, paths])
def test_what_a_card_computes_can_be_looked_at_on_the_host(made: Any, device: CudaDevice) -> None:
    """A partition whose rows do not hold, then one whose rows do, where there is one."""
    circuit, values = made()
    with closing(HostSynthesis(device, circuit)) as there:
        here = CpuSynthesis(HOST, circuit)
        for free in (values, values):
            seen, expected = there.assign(free), here.assign(free)
            assert np.array_equal(seen.values, expected.values) and np.array_equal(seen.bits, expected.bits)
            assert seen.num_inputs == expected.num_inputs
            for side in range(3):
                assert np.array_equal(there.rows(side), here.rows(side))
                assert np.array_equal(here.rows(side), evaluate_side(HOST, circuit, expected, side))
            assert there.unsatisfied_row() == here.unsatisfied_row()
            assert there.unsatisfied_row() == (None if made is toy else (45384, "path of 2, root"))
    assert device.memory.used_bytes == 0


def test_rows_that_hold_are_told_so(device: CudaDevice) -> None:
    circuit, values = toy()
    synthesis = DeviceSynthesis(device, circuit)
    synthesis.assign(values)
    assert synthesis.unsatisfied_row() is None
    synthesis.close()


@pytest.mark.parametrize("call", ["cuMemAlloc", "cuStreamCreate", "cuMemcpyHtoDAsync", "cuGraphInstantiate"])
def test_a_failure_midway_gives_the_memory_back(call: str, driver: FakeDriver, device: CudaDevice) -> None:
    driver.fail(call, "OUT_OF_MEMORY")
    with pytest.raises(ResourceError):
        DeviceSynthesis(device, toy()[0])
    assert device.memory.used_bytes == 0
