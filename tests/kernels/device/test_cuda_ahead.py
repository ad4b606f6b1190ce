"""A card that is opened before anybody needs it, over a stand-in driver."""

from __future__ import annotations

import pytest

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_ahead import OpenedAhead
from tests.kernels.device.fake_cuda import FakeDriver


@pytest.mark.parametrize("name", ["cuda:0", "auto"])
def test_a_card_opened_ahead_is_shared_and_given_back(name: str) -> None:
    driver = FakeDriver()
    with OpenedAhead(name, api=driver) as ahead:
        with CudaDevice("cuda:0", api=driver) as device:
            device.allocate(8, "uint8")
        ahead.close()
    assert driver.calls["cuDevicePrimaryCtxRetain"] == driver.calls["cuDevicePrimaryCtxRelease"] == 2
    assert driver.held == {}


@pytest.mark.parametrize("call", ["cuDeviceGetCount", "cuDevicePrimaryCtxRetain"])
def test_what_goes_wrong_ahead_is_left_to_those_who_need_the_card(call: str) -> None:
    driver = FakeDriver()
    driver.fail(call, "UNKNOWN")
    with OpenedAhead("cuda:0", api=driver):
        pass
    assert driver.held == {}


def test_no_card_of_that_name_is_no_error_ahead() -> None:
    driver = FakeDriver()
    with OpenedAhead("cuda:7", api=driver):
        pass
    assert driver.calls["cuDevicePrimaryCtxRetain"] == 0
