"""Proofs of sector updates at 2 KiB and their parameters, to the byte of upstream's."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit
from cuzk.events import ignore
from cuzk.groth16.files import file_digest
from cuzk.groth16.generate import generate
from cuzk.groth16.parameters.params_file import open_parameters
from cuzk.groth16.qap import domain_log2, point_counts
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.proofs.kinds import built_circuit, free_values
from cuzk.sector.shape import GIB, KIB, MIB
from cuzk.sector.update import read_update
from cuzk.sector.update_shape import update_shape_of
from tests.groth16.proving import UPSTREAMS, upstreams_proof
from tests.sector.other_vectors import EXPECT, pieces_of

SNAP_2K = EXPECT["vectors"]["snap-2k"]
#: Sizes of .params, and log2 of the domain.
SIZES = {
    2 * KIB: (655789464, 21),
    8 * MIB: (4268165208, 24),
    512 * MIB: (21741422712, 26),
    32 * GIB: (34453501368, 27),
    64 * GIB: (35507495352, 27),
}


@pytest.fixture(scope="module")
def circuit() -> Circuit:
    return built_circuit(update_shape_of(2 * KIB))


@pytest.fixture(scope="module")
def params(compiled: None, circuit: Circuit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of the trapdoors 2, 3, 5, 7, 11: 656 MB."""
    folder, trapdoors = tmp_path_factory.mktemp("update"), Trapdoors.of([2, 3, 5, 7, 11])
    yield generate(
        CpuDevice(), circuit, trapdoors, folder=folder, stem="snap", sector_bytes=2 * KIB, given=True
    )
    shutil.rmtree(folder)


@pytest.mark.slow
def test_the_parameters_are_upstreams_to_the_byte(params: Path) -> None:
    expected = SNAP_2K["params"]
    for path, file in ((params.with_suffix(".vk"), expected["vk"]), (params, expected["params"])):
        assert path.stat().st_size == file["size"]
        assert hashlib.sha256(np.memmap(path, np.uint8).data).hexdigest() == file["sha256"]
        assert file_digest(path) == file["manifest"]
    counts = open_parameters(params).counts
    assert (counts.h, counts.l, counts.a, counts.b, counts.ic) == (2097151, 1703569, 1697194, 444404, 5)


@pytest.mark.slow
def test_a_proof_is_upstreams_to_the_byte(params: Path, circuit: Circuit) -> None:
    given, device, parameters = read_update(pieces_of("snap-2k")), CpuDevice(), open_parameters(params)
    given.check_statement()
    given.check_partition(0, device)
    target = CpuTarget(device, parameters)
    target.require_good_points(ignore)
    proof = upstreams_proof(target, parameters, circuit, free_values(given, 0), given.public_inputs(0))
    assert (UPSTREAMS.r, UPSTREAMS.s) == (SNAP_2K["proof"]["r"], SNAP_2K["proof"]["s"])
    assert proof.to_bytes().hex() == SNAP_2K["proof"]["bytes"]


@pytest.mark.parametrize("sector_bytes", SIZES)
def test_parameters_of_published_sizes_have_the_size_of_upstreams(sector_bytes: int) -> None:
    circuit = built_circuit(update_shape_of(sector_bytes))
    counts, (size, log2) = point_counts(circuit), SIZES[sector_bytes]
    assert domain_log2(circuit) == log2
    assert counts.key_bytes == 1348
    assert size == 1348 + 5 * 4 + 96 * (counts.h + counts.l + counts.a + counts.b) + 192 * counts.b
