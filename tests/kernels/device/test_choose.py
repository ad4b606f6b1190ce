"""Which device a name stands for, and that none is swapped for another."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NoReturn

import pytest

from cuzk.errors import DeviceError, UsageError
from cuzk.kernels.device import cuda_driver
from cuzk.kernels.device.choose import choose, choose_device
from cuzk.kernels.device.cpu import has_ifma
from tests.kernels.device.fake_cuda import FakeDriver, card

needs_compiler = pytest.mark.skipif(
    find_spec("numba_cuda") is None, reason="numba-cuda is not installed: pip install 'cuzk[cuda]'"
)


def no_driver() -> NoReturn:
    raise DeviceError("no NVIDIA driver is installed")


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_auto_is_the_cpu_with_the_kernels_that_suit_it(name: str) -> None:
    assert choose_device(name).lanes == (8 if has_ifma() else 1)


def test_scalar_kernels_can_be_had_on_every_cpu() -> None:
    assert choose_device("cpu:scalar", threads=3).lanes == 1
    assert choose_device("cpu:scalar", threads=3).threads == 3


def test_eight_lanes_are_had_or_refused() -> None:
    if has_ifma():
        assert choose_device("cpu:ifma").lanes == 8
    else:
        with pytest.raises(DeviceError, match="IFMA"):
            choose_device("cpu:ifma")


GPU_NAMES = [
    "cuda",
    "cuda:0",
    "cuda:12",
    "0000:17:00.0",
    "GPU-4f3c1d2e-0a1b-2c3d-4e5f-0123456789ab",
    "4f3c1d2e-0a1b-2c3d-4e5f-0123456789AB",
]


@pytest.mark.parametrize("name", GPU_NAMES)
def test_where_only_the_cpu_computes_a_gpu_is_refused(name: str) -> None:
    with pytest.raises(DeviceError, match="on the CPU only"):
        choose_device(name)


@pytest.mark.parametrize("name", GPU_NAMES)
def test_a_gpu_that_is_not_there_is_not_replaced_by_the_cpu(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_driver, "load_api", no_driver)
    with pytest.raises(DeviceError, match="no NVIDIA driver"):
        choose(name)


def test_auto_says_why_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "load_api", no_driver)
    choice = choose("auto")
    assert choice.card is None
    assert choice.why == f"no GPU is used, no NVIDIA driver is installed: computing on {choice.host.name}"


@needs_compiler
def test_auto_is_the_first_gpu_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "load_api", lambda: FakeDriver(card(), card(name="Other")))
    choice = choose("auto")
    assert choice.card is not None and choice.card.index == 0
    assert choice.why == "computing on cuda:0, Imaginary GPU"


@needs_compiler
@pytest.mark.parametrize("name", ["cuda:0", "0000:17:00.0", "GPU-4f3c1d2e-0a1b-2c3d-4e5f-0123456789ab"])
def test_a_gpu_is_had_by_its_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "load_api", lambda: FakeDriver(card()))
    choice = choose(name, threads=3)
    assert choice.card is not None and choice.card.name == "Imaginary GPU"
    assert choice.host.threads == 3 and choice.why == ""


@needs_compiler
def test_a_gpu_that_the_compiler_cannot_serve_is_refused_by_name_and_explained_by_auto(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_driver, "load_api", lambda: FakeDriver(card(), version=11080))
    with pytest.raises(DeviceError, match="driver knows CUDA up to 11.8"):
        choose("cuda:0")
    choice = choose("auto")
    assert choice.card is None and "driver knows CUDA up to 11.8" in choice.why


@pytest.mark.parametrize("name", ["", "gpu", "CPU", "cpu:", "cuda:x", "cuda:-1", "cpu:avx2"])
def test_what_names_no_device_is_a_mistake_of_usage(name: str) -> None:
    with pytest.raises(UsageError, match="names no device"):
        choose_device(name)
