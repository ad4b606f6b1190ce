"""The GPU's self-test without a GPU: on a card that computes nothing every family is found out."""

from __future__ import annotations

from collections import defaultdict
from importlib.util import find_spec

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.errors import DeviceError
from cuzk.events import ignore
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu import self_test as of_kernels
from cuzk.kernels.gpu.jit import CudaKernel
from cuzk.reports.self_test import families, self_test
from tests.kernels.device.fake_cuda import FakeDriver, card


def test_a_card_that_computes_nothing_is_found_out_by_every_family_and_given_back(
    compiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = FakeDriver(card(memory_bytes=8 << 30))
    driver.effects = defaultdict(lambda: lambda *_: None)
    monkeypatch.setattr(CudaKernel, "cubin", lambda self, capability: b"code")
    monkeypatch.setattr(of_kernels, "TRANSFORM_LOG2", 12)
    with CudaDevice("cuda:0", api=driver) as device:
        verdicts = dict(families(CpuDevice(threads=2), device))
        assert device.memory.used_bytes == 0
    assert driver.held == {}
    assert set(verdicts.values()) == {False}
    assert list(verdicts) == [
        "transforms",
        *(
            f"{family}, {group}"
            for group in ("G1", "G2")
            for family in ("multiples and points", "multi-scalar multiplication", "sums over bits")
        ),
        "variables, rows and scalars",
    ]


def test_the_cpu_has_no_self_test() -> None:
    with pytest.raises(DeviceError, match="has no self-test"):
        self_test("cpu", None, ignore)
