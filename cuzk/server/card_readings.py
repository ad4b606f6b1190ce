"""What the driver says of the cards, read in the background: memory, use, temperature, power.

NVML answers in a millisecond, or in seconds, or not at all when a card hangs. So a thread of its own asks,
and everyone else gets the last answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

EVERY_S = 2.0
#: An older answer is no answer: the driver hangs.
STALE_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReading:
    """One card at a moment; None for what it does not tell, as parts of a MIG card do not.

    utilisation_percent  of the last second or so, in which some kernel ran: NVML's own figure, which one warp
                         on the whole card makes 100
    """

    name: str | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    utilisation_percent: int | None
    temperature_c: int | None
    power_w: float | None
    power_limit_w: float | None


class CardReadings(threading.Thread):
    """Reads cards again and again.

    owns   NVML, from the first line of run to its last
    talks  answers `latest` at once, with what it read last
    ends   on `close`; where there is no driver, at once
    """

    def __init__(
        self,
        uuids: Mapping[str, str],
        *,
        every_s: float = EVERY_S,
        nvml: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """uuids: of cards, without a prefix, by the names of their devices. nvml: of tests."""
        super().__init__(name="cuzk card readings", daemon=True)
        self._uuids, self._every_s, self._clock = dict(uuids), every_s, clock
        self._nvml = nvml
        self._is_closing = threading.Event()
        self._latest: tuple[float, Mapping[str, CardReading]] = (clock(), {})  # replaced whole

    def latest(self) -> Mapping[str, CardReading]:
        """By name of the device; cards that did not answer lately are missing."""
        at, readings = self._latest
        return readings if self._clock() - at < STALE_S else {}

    def close(self) -> None:
        """Does not wait for a driver that hangs."""
        self._is_closing.set()

    def run(self) -> None:
        nvml = self._nvml or _installed()
        if nvml is None or not self._uuids:
            return
        try:
            nvml.nvmlInit()
        except nvml.NVMLError:  # no driver
            return
        try:
            while True:
                self._latest = self._clock(), self._read(nvml)
                if self._is_closing.wait(self._every_s):
                    return
        finally:
            nvml.nvmlShutdown()

    def _read(self, nvml: Any) -> dict[str, CardReading]:
        readings = {}
        for name, uuid in self._uuids.items():
            handle = _handle(nvml, uuid)
            if handle is not None:
                readings[name] = _reading(nvml, handle)
        return readings


def _installed() -> Any:
    """The module nvidia-ml-py, or None."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def _handle(nvml: Any, uuid: str) -> Any:
    """None for a card that has fallen off the bus, or is not shown to this process."""
    for kind in ("GPU", "MIG"):
        with suppress(nvml.NVMLError):
            return nvml.nvmlDeviceGetHandleByUUID(f"{kind}-{uuid}")
    return None


def _reading(nvml: Any, handle: Any) -> CardReading:
    def asked(question: Callable[[], T]) -> T | None:
        try:
            return question()
        except nvml.NVMLError:  # this card does not tell
            return None

    memory = asked(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    used = asked(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    power_mw = asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    limit_mw = asked(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    return CardReading(
        name=asked(lambda: nvml.nvmlDeviceGetName(handle)),
        memory_total_bytes=None if memory is None else memory.total,
        memory_used_bytes=None if memory is None else memory.used,
        utilisation_percent=None if used is None else used.gpu,
        temperature_c=asked(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        power_w=None if power_mw is None else power_mw / 1000,
        power_limit_w=None if limit_mw is None else limit_mw / 1000,
    )
