"""The GPU of these tests, opened once. Without one, or without numba-cuda, they are skipped and say why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuzk.errors import CuzkError
from cuzk.kernels.device.cuda import CudaDevice
from tests.gpu.upstream import parameters_in


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
    yield from parameters_in(tmp_path_factory.mktemp("sector"), device="cpu")
