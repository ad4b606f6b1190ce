"""What `cuzk doctor` says of GPUs, those it can use and those it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuzk.errors import DeviceError
from cuzk.kernels.device import cuda_card, cuda_driver
from cuzk.reports.machine import examine
from tests.kernels.device.fake_cuda import FakeDriver, card


def gpu(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> dict[str, Any]:
    monkeypatch.setattr(cuda_driver, "load_api", lambda: driver)
    section = examine(None)["gpu"]
    assert driver.held == {}
    return section


def test_cards_are_described_with_their_free_memory(
    monkeypatch: pytest.MonkeyPatch, own_home: Path, tmp_path: Path
) -> None:
    release = tmp_path / "version"
    release.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@host)\n"
        "GCC version:  gcc version 13.3.0\n"
    )
    monkeypatch.setattr(cuda_card, "_RELEASE_FILE", release)
    said = gpu(monkeypatch, FakeDriver(card(), card(name="Other"), taken=256 << 20))
    assert said["driver"] == "580.65.06, CUDA up to 13.0"
    assert said["cuda:0"] == (
        "Imaginary GPU, capability 9.0, 7 multiprocessors at 1980 MHz, 768 MiB of 1 GiB free, 0000:17:00.0,"
        " GPU-4f3c1d2e-0a1b-2c3d-4e5f-0123456789ab"
    )
    assert said["cuda:1"].startswith("Other, ")


def test_a_card_that_cannot_be_used_says_why(monkeypatch: pytest.MonkeyPatch, own_home: Path) -> None:
    said = gpu(monkeypatch, FakeDriver(card(COMPUTE_CAPABILITY_MAJOR=5)))
    assert "unusable: Imaginary GPU has compute capability 5.0, cuzk needs 7.5 or later" in said["cuda:0"]
    driver = FakeDriver()
    driver.fail("cuDevicePrimaryCtxRetain", "OUT_OF_MEMORY")
    assert "unusable: the GPU has no memory left" in gpu(monkeypatch, driver)["cuda:0"]


def test_a_compiler_that_does_not_fit_says_so(monkeypatch: pytest.MonkeyPatch, own_home: Path) -> None:
    assert gpu(monkeypatch, FakeDriver(version=11080))["compiler"].startswith("unusable: ")


def test_without_a_driver_there_are_no_cards(monkeypatch: pytest.MonkeyPatch, own_home: Path) -> None:
    def refuse() -> None:
        raise DeviceError("no NVIDIA driver is installed")

    monkeypatch.setattr(cuda_driver, "load_api", refuse)
    assert examine(None)["gpu"]["cards"] == "none: no NVIDIA driver is installed"
