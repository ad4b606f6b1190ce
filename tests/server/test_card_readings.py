"""Readings of cards by a driver that plays: what it tells, what it does not, and when it hangs."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

from cuzk.server.card_readings import STALE_S, CardReading, CardReadings

UUID = "01234567-89ab-cdef-0123-456789abcdef"


class Driver:
    """As much of NVML as is asked for. While `answers` is not set it hangs, and `is_hanging` tells that."""

    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    def __init__(self, **without: bool) -> None:
        self.without = without
        self.is_lost = self.is_shut = False
        self.answers, self.is_hanging = threading.Event(), threading.Event()
        self.answers.set()

    def nvmlInit(self) -> None:
        if self.without.get("driver"):
            raise self.NVMLError("no driver")

    def nvmlShutdown(self) -> None:
        self.is_shut = True

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        while not self.answers.wait(0.01):
            self.is_hanging.set()
        if self.is_lost or uuid != f"GPU-{UUID}":
            raise self.NVMLError("lost")
        return "card"

    def _tell(self, name: str, value: Any) -> Any:
        if self.without.get(name):
            raise self.NVMLError("not supported")
        return value

    def nvmlDeviceGetName(self, card: str) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, card: str) -> Any:
        return self._tell("memory", SimpleNamespace(total=1000, used=400))

    def nvmlDeviceGetUtilizationRates(self, card: str) -> Any:
        return self._tell("utilisation", SimpleNamespace(gpu=97))

    def nvmlDeviceGetTemperature(self, card: str, sensor: int) -> int:
        return 61

    def nvmlDeviceGetPowerUsage(self, card: str) -> int:
        return self._tell("power", 512_500)  # type: ignore[no-any-return]

    def nvmlDeviceGetEnforcedPowerLimit(self, card: str) -> int:
        return 700_000


def readings(driver: Driver, uuids: dict[str, str] | None = None, **given: Any) -> CardReadings:
    cards = CardReadings({"cuda:0": UUID} if uuids is None else uuids, nvml=driver, **given)
    cards.start()
    return cards


def until(holds: Any) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


def test_a_card_is_read_in_the_background() -> None:
    cards = readings(Driver())
    until(cards.latest)
    cards.close()
    assert cards.latest() == {
        "cuda:0": CardReading(
            name="NVIDIA H200",
            memory_total_bytes=1000,
            memory_used_bytes=400,
            utilisation_percent=97,
            temperature_c=61,
            power_w=512.5,
            power_limit_w=700.0,
        )
    }


def test_what_a_card_does_not_tell_is_missing_and_nothing_else() -> None:
    cards = readings(Driver(power=True, utilisation=True, memory=True))
    until(cards.latest)
    cards.close()
    reading = cards.latest()["cuda:0"]
    assert (reading.power_w, reading.utilisation_percent, reading.memory_used_bytes) == (None, None, None)
    assert (reading.temperature_c, reading.power_limit_w) == (61, 700.0)


def test_without_a_driver_or_a_card_there_are_no_readings_and_no_thread() -> None:
    for cards in (readings(Driver(driver=True)), readings(Driver(), {})):
        cards.join(20)
        assert not cards.is_alive() and cards.latest() == {}


def test_a_card_that_is_lost_disappears_and_the_others_stay() -> None:
    driver = Driver()
    cards = readings(driver, {"cuda:0": UUID, "cuda:1": "another"}, every_s=0.01)
    until(cards.latest)
    assert list(cards.latest()) == ["cuda:0"]
    driver.is_lost = True
    until(lambda: not cards.latest())
    driver.is_lost = False
    until(cards.latest)
    cards.close()
    cards.join(20)
    assert driver.is_shut


def test_a_driver_that_hangs_keeps_nobody_waiting_and_its_last_answer_gets_old() -> None:
    driver, now = Driver(), [0.0]
    cards = readings(driver, every_s=0.01, clock=lambda: now[0])
    until(cards.latest)
    driver.answers.clear()
    assert driver.is_hanging.wait(20)
    begin = time.monotonic()
    assert cards.latest() != {}
    now[0] = STALE_S
    assert cards.latest() == {}
    cards.close()
    assert time.monotonic() - begin < 5
    driver.answers.set()
