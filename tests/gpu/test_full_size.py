"""Circuits of production size on the card: every row against its equation, and proofs that verify."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.benchmarks.partitions import bench_partitions
from cuzk.groth16.gpu.synthesis import DeviceSynthesis
from cuzk.groth16.gpu.target import release
from cuzk.groth16.proof import PROOF_BYTES
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.parameters import try_parameters
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.sector.porep.registered_proof import registered_proof
from cuzk.sector.porep.synthesize import synthesize
from tests.gpu.compared import assert_a_flipped_bit_breaks_a_row

pytestmark = pytest.mark.slow
CONSTRAINTS = {"StackedDrg32GiBV1_1": 130_278_869, "StackedDrg64GiBV1_1": 131_186_177}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_row_of_a_partition_holds_and_a_flipped_bit_breaks_one(name: str, device: CudaDevice) -> None:
    release()
    c1 = synthesize(registered_proof(name), seed=7, device=CpuDevice(), progress=lambda done, total: None)
    circuit = circuit_of(c1.shape)
    assert circuit.num_constraints == CONSTRAINTS[name]
    synthesis = DeviceSynthesis(device, circuit)
    synthesis.assign(free_values(c1, c1.partition_count - 1))
    assert synthesis.unsatisfied_row() is None
    assert_a_flipped_bit_breaks_a_row(device, synthesis)
    synthesis.close()


@pytest.mark.parametrize("name", ["StackedDrg32GiBV1", "StackedDrg32GiBV1_1", "StackedDrg64GiBV1_1"])
def test_a_partition_of_production_size_is_proven(name: str, device: CudaDevice) -> None:
    release()
    size = registered_proof(name).sector_bytes
    result = bench_partitions(size, registered_proof=name, seed=11, partitions=1, device=device.name)
    assert len(result.proof) == PROOF_BYTES, "it verified, or nothing would have come back"
    assert result.peak_host["proving"] < 16 << 30
    print(name, {stage: f"{seconds:.4f} s" for stage, _, seconds, _ in result.stage_table()})


@pytest.mark.parametrize("gib", [32, 64])
def test_partitions_of_an_update_are_proven(gib: int, device: CudaDevice) -> None:
    release()
    result = bench_partitions(gib << 30, kind="snap", seed=11, partitions=2, device=device.name)
    assert len(result.proof) == 2 * PROOF_BYTES, "both verified, or nothing would have come back"
    print(gib, {stage: f"{seconds:.4f} s" for stage, _, seconds, _ in result.stage_table()})


def test_parameters_of_production_size_are_tried(device: CudaDevice) -> None:
    """Every point of order r, every row of a partition, one proof."""
    release()
    tried = try_parameters(32 << 30, device=device.name)
    print({name: f"{seconds:.2f} s" for name, seconds in tried.seconds.items()}, f"{tried.total_s:.1f} s")
    assert {"points in the subgroup", "check of the rows", "verify"} <= tried.seconds.keys()
