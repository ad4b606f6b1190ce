"""Which card a name stands for, what the driver says of it, and why one cannot be had."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from cuzk.errors import DeviceError
from cuzk.kernels.device.cuda_card import all_cards, check_driver, find_card, names_a_card
from cuzk.kernels.device.cuda_driver import load_api
from tests.kernels.device.fake_cuda import FakeDriver, card

SECOND = card(name="Second", pci_id="0001:A3:00.0", uuid="00112233-4455-6677-8899-aabbccddeeff")


@pytest.fixture
def two_cards() -> FakeDriver:
    return FakeDriver(card(name="First"), SECOND)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cuda", "First"),
        ("cuda:0", "First"),
        ("cuda:1", "Second"),
        ("17:00.0", "First"),
        ("0000:17:00.0", "First"),
        ("00000000:17:00.0", "First"),
        ("0001:a3:00.0", "Second"),
        ("0001:A3:00.0", "Second"),
        ("GPU-00112233-4455-6677-8899-aabbccddeeff", "Second"),
        ("MIG-00112233-4455-6677-8899-aabbccddeeff", "Second"),
        ("00112233-4455-6677-8899-AABBCCDDEEFF", "Second"),
    ],
)
def test_a_card_is_found_by_index_pci_id_and_uuid(two_cards: FakeDriver, name: str, expected: str) -> None:
    assert names_a_card(name)
    assert find_card(two_cards, name).name == expected


@pytest.mark.parametrize("name", ["", "cuda:", "cuda:-1", "cuda:x", "gpu", "17:00", "17:00.9", "GPU-0011"])
def test_other_names_stand_for_no_card(name: str) -> None:
    assert not names_a_card(name)


@pytest.mark.parametrize("name", ["cuda:2", "a3:00.0", "GPU-00112233-4455-6677-8899-aabbccddee00"])
def test_a_card_that_is_not_there_is_refused_with_those_that_are(two_cards: FakeDriver, name: str) -> None:
    with pytest.raises(DeviceError, match="no such GPU") as raised:
        find_card(two_cards, name)
    assert raised.value.where == name
    assert "cuda:0 First 0000:17:00.0" in str(raised.value.next)


def test_a_hidden_card_is_explained(two_cards: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(DeviceError, match="CUDA_VISIBLE_DEVICES=3"):
        find_card(two_cards, "cuda:7")


def test_a_card_is_what_the_driver_says() -> None:
    (found,) = all_cards(FakeDriver(card(), version=12040))
    assert (found.capability, found.driver_cuda) == ((9, 0), (12, 4))
    assert (found.multiprocessors, found.clock_mhz, found.l2_bytes) == (7, 1980, 50 << 20)
    assert (found.memory_bytes, found.shared_per_block_bytes) == (1 << 30, 232448)
    assert (found.pci_id, found.uuid) == ("0000:17:00.0", "4f3c1d2e-0a1b-2c3d-4e5f-0123456789ab")


@pytest.mark.parametrize(
    ("major", "minor", "is_enough"), [(7, 0, False), (7, 5, True), (6, 9, False), (12, 0, True)]
)
def test_a_capability_below_7_5_is_refused(major: int, minor: int, is_enough: bool) -> None:
    driver = FakeDriver(card(COMPUTE_CAPABILITY_MAJOR=major, COMPUTE_CAPABILITY_MINOR=minor))
    if is_enough:
        assert find_card(driver, "cuda:0").capability == (major, minor)
    else:
        with pytest.raises(DeviceError, match=rf"capability {major}\.{minor}"):
            find_card(driver, "cuda:0")


def test_a_driver_older_than_the_compiler_is_refused() -> None:
    (old,) = all_cards(FakeDriver(card(), version=12080))
    check_driver(old, (12, 9))  # within a major version older drivers run newer code
    with pytest.raises(DeviceError, match=r"up to 12\.8.*CUDA 13\.0.*numba-cuda\[cu12\]"):
        check_driver(old, (13, 0))


def pretend_binding(monkeypatch: pytest.MonkeyPatch, driver: object) -> None:
    """Let `from cuda.bindings import driver` give that object."""
    bindings = ModuleType("cuda.bindings")
    bindings.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)


def test_the_driver_is_loaded_and_initialised(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    pretend_binding(monkeypatch, driver)
    assert load_api() is driver
    assert driver.calls["cuInit"] == 1


def test_without_the_binding_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(DeviceError, match=r"numba-cuda is not installed.*cuzk\[cuda\]"):
        load_api()


def test_without_a_driver_the_cpu_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoLibrary:
        def cuInit(self, flags: int) -> None:
            raise RuntimeError("libcuda.so was not found")

    pretend_binding(monkeypatch, NoLibrary())
    with pytest.raises(DeviceError, match="no NVIDIA driver is installed.*--device cpu"):
        load_api()


def test_a_machine_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    driver.fail("cuInit", "NO_DEVICE")
    pretend_binding(monkeypatch, driver)
    with pytest.raises(DeviceError, match="no NVIDIA GPU"):
        load_api()
