"""Small keys and parameter files, and upstream's proofs with their public inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit
from cuzk.groth16.generate import generate
from cuzk.groth16.parameters.params_file import PointCounts
from cuzk.groth16.parameters.verifying_key import VerifyingKey
from cuzk.groth16.proof import Proof
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.kernels.device.cpu import CpuDevice, has_ifma
from tests.kernels.device.fake_cuda import FakeDriver
from tests.py_ecc_points import g1_times, g2_times
from tests.toy_circuit import toy_circuit

VECTORS = Path(__file__).parents[1] / "vectors" / "porep"


@dataclass(frozen=True)
class UpstreamProof:
    file: str
    proof: Proof
    public_inputs: np.ndarray


@pytest.fixture(scope="session")
def upstream_proofs() -> list[UpstreamProof]:
    """filecoin-proofs 19.1.0, 2 KiB, r = 13, s = 17, under the key 2k.vk."""
    cases = json.loads((VECTORS / "vectors.json").read_text())["cases"]
    return [
        UpstreamProof(
            case["file"],
            Proof.from_bytes(bytes.fromhex(case["proof_r13_s17"])),
            np.frombuffer(
                bytes.fromhex("".join(case["partitions"][0]["public_inputs"])), dtype=np.uint64
            ).reshape(-1, 4),
        )
        for case in cases
        if "proof_r13_s17" in case
    ]


@pytest.fixture(scope="session")
def upstream_key_path() -> Path:
    return VECTORS / "2k.vk"


@pytest.fixture
def small_key() -> VerifyingKey:
    return VerifyingKey(
        alpha_g1=g1_times(2),
        beta_g1=g1_times(3),
        beta_g2=g2_times(3),
        gamma_g2=g2_times(5),
        delta_g1=g1_times(7),
        delta_g2=g2_times(7),
        ic=(g1_times(11), g1_times(12)),
    )


@pytest.fixture
def small_counts() -> PointCounts:
    return PointCounts(ic=2, h=7, l=5, a=4, b=3)


@pytest.fixture
def small_sections() -> dict[str, np.ndarray]:
    """Points that can be told apart by their bytes; whether they are on the curve is not asked here."""
    rows = {"h": (7, 96), "l": (5, 96), "a": (4, 96), "b_g1": (3, 96), "b_g2": (3, 192)}
    random = np.random.default_rng(1)
    return {name: random.integers(0, 256, shape, dtype=np.uint8) for name, shape in rows.items()}


@pytest.fixture
def small_params(tmp_path: Path, small_key: VerifyingKey, small_sections: dict[str, np.ndarray]) -> Path:
    """A `.params` file put together by hand, not by the writer."""
    path = tmp_path / "small.params"
    content = small_key.to_bytes()
    for points in small_sections.values():
        content += len(points).to_bytes(4, "big") + points.tobytes()
    path.write_bytes(content)
    return path


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(1, id="scalar"),
        pytest.param(
            8, id="ifma", marks=pytest.mark.skipif(not has_ifma(), reason="this CPU has no AVX-512 IFMA")
        ),
    ],
)
def device(request: pytest.FixtureRequest, compiled: None) -> CpuDevice:
    return CpuDevice(threads=2, lanes=request.param)


@pytest.fixture(scope="session")
def toy() -> Circuit:
    return toy_circuit()


@pytest.fixture(scope="session")
def toy_params(device: CpuDevice, toy: Circuit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy circuit's parameters of the trapdoors 2, 3, 5, 7, 11."""
    folder = tmp_path_factory.mktemp("toy")
    trapdoors = Trapdoors.of([2, 3, 5, 7, 11])
    return generate(device, toy, trapdoors, folder=folder, stem="toy", sector_bytes=0, given=True)


@pytest.fixture
def idle_driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """A stand-in for a GPU's driver: memory is real, kernels do nothing. Needs numba-cuda."""
    from tests.groth16.gpu import played_target

    return played_target.idle_driver(monkeypatch)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """The same, on which targets prove: `played_target`."""
    from tests.groth16.gpu import played_target

    return played_target.playing_driver(monkeypatch)
