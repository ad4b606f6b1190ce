"""Two real cards: points go from one to the other, and both prove."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

import cuzk
from cuzk.errors import DeviceError
from cuzk.events import Event, StageDone
from cuzk.kernels.device.cuda import CudaDevice
from tests.gpu.upstream import POREP, UPSTREAM


@pytest.fixture(scope="module")
def other(device: CudaDevice) -> Iterator[CudaDevice]:
    try:
        opened = CudaDevice("cuda:1")
    except DeviceError as error:
        pytest.skip(f"no second GPU: {error}")
    with opened:
        yield opened


@pytest.mark.parametrize("nbytes", [1, 4096, (1 << 28) + 3])
def test_what_is_copied_from_card_to_card_is_the_same(
    device: CudaDevice, other: CudaDevice, nbytes: int
) -> None:
    given = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    for source, target in ((device, other), (other, device)):
        with source.upload(given) as there, target.allocate(nbytes, np.uint8) as taken:
            source.stream.synchronise()
            target.copy_from(source, there, taken)
            assert np.array_equal(target.download(taken), given)


def test_an_engine_on_two_cards_gives_upstreams_proofs_on_both(
    device: CudaDevice, other: CudaDevice, params: Path
) -> None:
    heard: list[Event] = []
    names = [device.name, other.name]
    with cuzk.Engine(devices=names, params=params, on_event=heard.append) as engine:
        assert engine.preload(2048)
        jobs = [
            (file, engine.submit(POREP / file, insecure_rs=(13, 17), request_id=f"{file} {k}"))
            for k in range(8)
            for file in UPSTREAM
        ]
        for file, job in jobs:
            result = job.wait()
            assert result is not None and result.require_proof().hex() == UPSTREAM[file]
        status = engine.status()
    assert [device.wrong_proofs for device in status.devices] == [0, 0]
    loads = [event.name for event in heard if isinstance(event, StageDone) and "load points" in event.name]
    assert sorted(loads) == [f"{name}: load points" for name in sorted(names)]
