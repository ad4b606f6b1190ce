"""Sector updates on the card: variables and rows are the CPU's, parameters and proof are upstream's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

import cuzk
from cuzk.groth16.gpu.synthesis import DeviceSynthesis
from cuzk.groth16.gpu.target import release
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.sector.shape import GIB
from cuzk.sector.update import read_update
from cuzk.sector.update_shape import update_shape_of
from cuzk.sector.update_synthesis import synthesize_update
from tests.gpu.compared import HOST, assert_a_flipped_bit_breaks_a_row, assert_equal
from tests.gpu.upstream import parameters_in
from tests.sector.other_vectors import EXPECT, pieces_of

SNAP_2K = EXPECT["vectors"]["snap-2k"]


@pytest.mark.parametrize("name", ["snap-2k", "snap-16k"])
def test_variables_and_rows_of_every_partition_are_those_of_the_cpu(name: str, device: CudaDevice) -> None:
    update = read_update(pieces_of(name))
    synthesis = DeviceSynthesis(device, circuit_of(update.shape))
    for partition in range(update.partition_count):
        assert_equal(device, synthesis, free_values(update, partition))
        assert synthesis.unsatisfied_row() is None
    synthesis.close()


@pytest.fixture(scope="module")
def update_params(device: CudaDevice, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the 2 KiB parameters of the trapdoors 2, 3, 5, 7, 11, made on the card: 656 MB."""
    yield from parameters_in(tmp_path_factory.mktemp("update"), kind="snap", device=device.name)


def test_parameters_from_the_card_are_upstreams_to_the_byte(update_params: Path) -> None:
    path = update_params / f"{SNAP_2K['param_file']}.params"
    for file, expected in (
        (path, SNAP_2K["params"]["params"]),
        (path.with_suffix(".vk"), SNAP_2K["params"]["vk"]),
    ):
        assert hashlib.sha256(np.memmap(file, np.uint8).data).hexdigest() == expected["sha256"]


def test_a_proof_is_upstreams_to_the_byte(update_params: Path, device: CudaDevice) -> None:
    pieces = pieces_of("snap-2k")
    for _ in range(2):  # from the file, then from points that are on the card
        result = cuzk.prove(pieces, params=update_params, device=device.name, insecure_rs=(13, 17))
        assert result.proof.hex() == SNAP_2K["proof"]["bytes"]
    assert cuzk.verify(pieces, result.proof, params=update_params).partitions == 1


@pytest.mark.slow
@pytest.mark.parametrize("gib", [32, 64])
def test_every_row_of_production_size_holds_and_a_flipped_bit_breaks_one(
    gib: int, device: CudaDevice
) -> None:
    release()
    shape = update_shape_of(gib * GIB)
    update = read_update(synthesize_update(shape, seed=7, device=HOST, progress=lambda done, total: None))
    circuit = circuit_of(shape)
    synthesis = DeviceSynthesis(device, circuit)
    for partition in (0, shape.partitions - 1):
        synthesis.assign(free_values(update, partition))
        assert synthesis.unsatisfied_row() is None
        inputs = device.download(synthesis.values.rows(1, circuit.num_inputs))
        assert np.array_equal(inputs, update.public_inputs(partition))
    assert_a_flipped_bit_breaks_a_row(device, synthesis)
    synthesis.close()
