"""Which device a name stands for, and that none is swapped for another."""

from __future__ import annotations

import pytest

from cuzk.errors import DeviceError, UsageError
from cuzk.kernels.device.choose import choose_device
from cuzk.kernels.device.cpu import has_ifma


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


@pytest.mark.parametrize(
    "name",
    [
        "cuda",
        "cuda:0",
        "cuda:12",
        "0000:17:00.0",
        "GPU-4f3c1d2e-0a1b-2c3d-4e5f-0123456789ab",
        "4f3c1d2e-0a1b-2c3d-4e5f-0123456789AB",
    ],
)
def test_a_gpu_is_refused_and_not_replaced_by_the_cpu(name: str) -> None:
    with pytest.raises(DeviceError, match="cannot prove on a GPU yet"):
        choose_device(name)


@pytest.mark.parametrize("name", ["", "gpu", "CPU", "cpu:", "cuda:x", "cuda:-1", "cpu:avx2"])
def test_what_names_no_device_is_a_mistake_of_usage(name: str) -> None:
    with pytest.raises(UsageError, match="names no device"):
        choose_device(name)
