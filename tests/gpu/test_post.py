"""Proofs of spacetime on the card: synthesis is the CPU's, proofs are upstream's; a window of 32 GiB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.circuit.builder import Circuit
from cuzk.events import ignore
from cuzk.groth16.gpu.ephemeral import EphemeralParameters
from cuzk.groth16.gpu.synthesis import DeviceSynthesis
from cuzk.groth16.gpu.target import GpuTarget, release
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.proofs.kinds import built_circuit, circuit_of, free_values
from cuzk.sector.claim import WINDOW, WINNING
from cuzk.sector.post import PostInput, read_post, synthesize_post
from cuzk.sector.post_shape import PostShape, post_shape
from cuzk.sector.shape import GIB
from tests.gpu.compared import HOST, assert_equal, assert_scalars_equal
from tests.groth16.proving import upstreams_proof
from tests.sector.other_vectors import EXPECT, POSTS, pieces_of

PROVEN = [name for name in POSTS if "proof" in EXPECT["vectors"][name]]


def made_up(shape: PostShape) -> PostInput:
    return read_post(synthesize_post(shape, seed=3, device=HOST, progress=lambda *_: None))


@pytest.fixture
def given(request: pytest.FixtureRequest) -> PostInput:
    """Upstream's by name, or one sector of a production size."""
    if isinstance(request.param, str):
        return read_post(pieces_of(request.param))
    kind, sector_bytes = request.param
    shape = post_shape(kind, sector_bytes)
    return made_up(replace(shape, sector_count=3) if kind == WINDOW else shape)


@pytest.mark.parametrize(
    "given",
    [*POSTS, (WINDOW, 32 * GIB), (WINDOW, 64 * GIB), (WINNING, 32 * GIB), (WINNING, 64 * GIB)],
    indirect=True,
    ids=str,
)
def test_variables_rows_and_scalars_are_those_of_the_cpu(given: PostInput, device: CudaDevice) -> None:
    with closing(DeviceSynthesis(device, built_circuit(given.shape))) as synthesis:
        expected = assert_equal(device, synthesis, free_values(given, 0))
        assert_scalars_equal(device, synthesis, expected)
        assert synthesis.unsatisfied_row() is None


def target_of(device: CudaDevice, circuit: Circuit) -> Iterator[tuple[GpuTarget, EphemeralParameters]]:
    """With the parameters of the trapdoors 2, 3, 5, 7, 11 on the card."""
    release()
    card = CudaDevice(device.name)
    parameters = EphemeralParameters.of(HOST, card, circuit, Trapdoors.of([2, 3, 5, 7, 11]))
    with closing(GpuTarget(HOST, "cuda:0", lambda: card, parameters)) as target:
        target.prepare()
        target.opened(circuit)
        target.require_good_points(ignore)
        yield target, parameters
    assert card.memory.used_bytes == 0


@pytest.fixture
def target(given: PostInput, device: CudaDevice) -> Iterator[tuple[GpuTarget, EphemeralParameters]]:
    yield from target_of(device, circuit_of(given.shape))


def proof_of(given: PostInput, target: GpuTarget, parameters: EphemeralParameters) -> str:
    public = given.public_inputs(0)
    proof = upstreams_proof(target, parameters, circuit_of(given.shape), free_values(given, 0), public)
    return proof.to_bytes().hex()


@pytest.mark.parametrize("given", PROVEN, indirect=True)
def test_a_proof_is_upstreams_to_the_byte(
    given: PostInput, target: tuple[GpuTarget, EphemeralParameters]
) -> None:
    for _ in range(2):
        assert proof_of(given, *target) == EXPECT["vectors"][given.origin]["proof"]["bytes"]


@pytest.mark.parametrize("given", [(WINNING, 32 * GIB)], indirect=True, ids=str)
def test_a_winning_proof_of_32_gib_verifies(
    given: PostInput, target: tuple[GpuTarget, EphemeralParameters]
) -> None:
    assert proof_of(given, *target) == proof_of(given, *target)


@pytest.mark.slow
def test_a_whole_window_of_32_gib_is_synthesized_and_proven(device: CudaDevice) -> None:
    """125 million rows over 2349 sectors: every row holds, and the proof verifies."""
    given = made_up(post_shape(WINDOW, 32 * GIB))
    circuit = circuit_of(given.shape)
    with closing(DeviceSynthesis(device, circuit)) as synthesis:
        synthesis.assign(free_values(given, 0))
        assert synthesis.unsatisfied_row() is None
    for target, parameters in target_of(device, circuit):
        assert target.is_resident
        assert len(bytes.fromhex(proof_of(given, target, parameters))) == 192
