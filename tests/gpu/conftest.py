"""The GPU of these tests, opened once. Without one, or without numba-cuda, they are skipped and say why."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import cuzk
from cuzk.errors import CuzkError
from cuzk.kernels.device.cuda import CudaDevice


@pytest.fixture(scope="session")
def device() -> Iterator[CudaDevice]:
    """The first card that the driver shows. Tests that spoil it do so in a process of their own."""
    try:
        opened = CudaDevice("cuda:0")
    except CuzkError as error:
        pytest.skip(f"no GPU: {error}")
    with opened:
        yield opened
        assert opened.is_usable
        assert opened.memory.used_bytes == 0, "a test left memory behind"


@pytest.fixture(scope="module")
def params(device: CudaDevice, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the 2 KiB parameters of the trapdoors 2, 3, 5, 7, 11, made on the CPU; used before."""
    from cuzk.groth16.target_gpu import release  # needs numba-cuda

    folder = tmp_path_factory.mktemp("sector")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        environment.setenv("FIL_PROOFS_PARAMETER_CACHE", str(folder / "none"))
        release()
        cuzk.generate_parameters(2048, trapdoors=(2, 3, 5, 7, 11), out=folder / "parameters", device="cpu")
        yield folder / "parameters"
    release()
    shutil.rmtree(folder)
