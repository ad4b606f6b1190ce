"""Parameters that live on the card alone: the same key and proofs as from the file of the same trapdoors."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

import cuzk
from cuzk.benchmarks.partitions import INPUT_FILE, bench_partitions
from cuzk.events import ignore
from cuzk.groth16.gpu.ephemeral import EphemeralParameters
from cuzk.groth16.gpu.target import GpuTarget, release
from cuzk.groth16.parameters.development import MARK_SUFFIX
from cuzk.groth16.parameters.verifying_key import read_verifying_key
from cuzk.groth16.proof import PROOF_BYTES, split_proofs
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.parameters import try_parameters
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.sector.porep.c1_reader import read_c1
from cuzk.sector.porep.public_inputs import public_inputs
from tests.groth16.proving import upstreams_proof

POREP = Path(__file__).resolve().parents[1] / "vectors" / "porep"
KNOWN = json.loads((POREP / "vectors.json").read_text(encoding="utf-8"))
TRAPDOORS = [KNOWN["trapdoors"][name] for name in ("alpha", "beta", "gamma", "delta", "tau")]
CASE = next(case for case in KNOWN["cases"] if "proof_r13_s17" in case)


def test_key_and_proof_are_upstreams_to_the_byte(device: CudaDevice) -> None:
    release()
    host, card = CpuDevice(), CudaDevice(device.name)
    c1 = read_c1(POREP / CASE["file"])
    circuit = circuit_of(c1.shape)
    parameters = EphemeralParameters.of(host, card, circuit, Trapdoors.of(TRAPDOORS))
    assert hashlib.sha256(parameters.key.to_bytes()).hexdigest() == KNOWN["params_2k"]["vk_sha256"]
    with closing(GpuTarget(host, "cuda:0", lambda: card, parameters)) as target:
        target.prepare()
        target.opened(circuit)
        target.require_good_points(ignore)
        public = public_inputs(c1.statement, 0)
        proof = upstreams_proof(target, parameters, circuit, free_values(c1, 0), public)
    assert proof.to_bytes().hex() == CASE["proof_r13_s17"]
    assert card.memory.used_bytes == 0


def test_parameters_that_are_tried_leave_nothing_but_their_key(device: CudaDevice, tmp_path: Path) -> None:
    release()
    tried = try_parameters(2048, trapdoors=TRAPDOORS, device=device.name, out=tmp_path)
    vk, meta = tried.written
    assert hashlib.sha256(vk.read_bytes()).hexdigest() == KNOWN["params_2k"]["vk_sha256"]
    assert set(tmp_path.iterdir()) == {vk, meta, vk.with_suffix(MARK_SUFFIX)}
    assert {"load points", "points in the subgroup", "check of the rows", "verify"} <= tried.seconds.keys()
    assert sum(tried.seconds.values()) < 2 * tried.total_s, "some overlap"
    assert try_parameters(2048, device=device.name).written == ()


def test_a_key_alone_is_upstreams_too(device: CudaDevice, tmp_path: Path) -> None:
    vk, _ = cuzk.generate_parameters(
        2048, trapdoors=TRAPDOORS, vk_only=True, out=tmp_path, device=device.name
    )
    assert hashlib.sha256(vk.read_bytes()).hexdigest() == KNOWN["params_2k"]["vk_sha256"]


def test_the_stages_of_a_partition_are_timed_by_the_card(device: CudaDevice) -> None:
    release()
    for limit in (None, 2150 << 20):  # the second lets the points of h pass in slices
        result = bench_partitions(2048, seed=3, device=device.name, vram_limit=limit)
        table = {name: (clock, first) for name, clock, first, _ in result.stage_table()}
        assert [name for name, (clock, _) in table.items() if clock == "card"] == [
            "witness", "rows", "C to coefficients", "A to coefficients", "A on the coset",
            "B to coefficients", "B on the coset", "quotient to coefficients",
            "sum l", "sum a", "sum b_g1", "sum b_g2", "sum h",
        ]  # fmt: skip
        assert all(seconds > 0 for name, (_, seconds) in table.items() if name != "rest")
        assert table["rest"][1] > -0.05 * table["whole"][1], "no span is counted twice"


def test_a_synthetic_sector_is_proven_and_others_can_check_it(device: CudaDevice, tmp_path: Path) -> None:
    release()
    result = bench_partitions(2048, seed=3, device=device.name, out=tmp_path)
    (vk,) = tmp_path.glob("*.vk")
    c1 = read_c1(tmp_path / INPUT_FILE)
    proof = (tmp_path / "proof.bin").read_bytes()
    assert proof == result.proof and len(proof) == PROOF_BYTES * len(c1.partitions)
    verifier = Verifier(read_verifying_key(vk))
    inputs = [public_inputs(c1.statement, k) for k in range(len(c1.partitions))]
    assert verifier.verify_partitions(inputs, split_proofs(proof, where="proof.bin"))
    other = bench_partitions(2048, seed=3, device=device.name)
    assert not verifier.verify_partitions(inputs, split_proofs(other.proof, where="another key's"))
