"""Which cards there are, as the driver describes them, and the one that a name stands for.

    cuda, cuda:N       the N-th card that the driver shows to this process, after CUDA_VISIBLE_DEVICES
    0000:17:00.0       a PCI id; the domain may be left out
    GPU-..., MIG-...   a UUID; the prefix may be left out

There is no list of known cards: every limit comes from the driver.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzk.errors import DeviceError
from cuzk.kernels.device.cuda_driver import checked

#: The oldest that CUDA 13 compiles for.
MINIMUM_CAPABILITY = (7, 5)

_INDEX = re.compile(r"cuda(?::(\d+))?")
_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
_UUID = re.compile(r"(?:GPU-|MIG-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)
_RELEASE_FILE = Path("/proc/driver/nvidia/version")
_NAME_BYTES = 256
_PCI_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card, described by the driver. A multiprocessor is NVIDIA's SM; `shared` is its scratch memory."""

    index: int
    name: str
    uuid: str
    pci_id: str
    capability: tuple[int, int]
    driver_cuda: tuple[int, int]  # the newest CUDA that the driver knows
    multiprocessors: int
    clock_mhz: int
    memory_bytes: int
    l2_bytes: int
    threads_per_multiprocessor: int
    shared_per_block_bytes: int  # with the driver's consent, which a launch asks for

    @property
    def label(self) -> str:
        return f"cuda:{self.index}"


def names_a_card(name: str) -> bool:
    """Whether a name has one of the forms above; the card need not exist."""
    return any(form.fullmatch(name) for form in (_INDEX, _PCI, _UUID))


def all_cards(api: Any) -> list[Card]:
    """Every card that the driver shows to this process, in its order."""
    count = checked(api, "CUDA", "cuDeviceGetCount")
    return [describe(api, index) for index in range(count)]


def describe(api: Any, index: int) -> Card:
    """The card of that index, which exists."""
    label = f"cuda:{index}"
    device = checked(api, label, "cuDeviceGet", index)

    def attribute(name: str) -> int:
        which = getattr(api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(api, label, "cuDeviceGetAttribute", which, device))

    return Card(
        index=index,
        name=_text(checked(api, label, "cuDeviceGetName", _NAME_BYTES, device)),
        uuid=_uuid_text(bytes(checked(api, label, "cuDeviceGetUuid", device).bytes)),
        pci_id=_text(checked(api, label, "cuDeviceGetPCIBusId", _PCI_BYTES, device)).lower(),
        capability=(attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
        driver_cuda=driver_cuda(api),
        multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
        clock_mhz=attribute("CLOCK_RATE") // 1000,
        memory_bytes=int(checked(api, label, "cuDeviceTotalMem", device)),
        l2_bytes=attribute("L2_CACHE_SIZE"),
        threads_per_multiprocessor=attribute("MAX_THREADS_PER_MULTIPROCESSOR"),
        shared_per_block_bytes=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
    )


def driver_cuda(api: Any) -> tuple[int, int]:
    """The newest CUDA that the driver knows: 13000 means 13.0."""
    version = int(checked(api, "CUDA", "cuDriverGetVersion"))
    return version // 1000, version % 1000 // 10


def driver_release() -> str:
    """The version of the kernel's module, "580.65.06"; empty where it does not say."""
    try:
        said = _RELEASE_FILE.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"Kernel Module.*?\s(\d+\.\d[\d.]*)\s", said)
    return found[1] if found else ""


def _text(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode(errors="replace")


def _uuid_text(raw: bytes) -> str:
    digits = raw.hex()
    return "-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))


def find_card(api: Any, name: str) -> Card:
    """The card that a name of the forms above stands for. Raises DeviceError when it cannot be had."""
    cards = all_cards(api)
    found = [card for card in cards if _is_named(card, name)]
    if not found:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise DeviceError(
            "there is no such GPU"
            + (f" among those that CUDA_VISIBLE_DEVICES={hidden} leaves" if hidden else ""),
            where=name,
            next="there are " + ", ".join(f"{card.label} {card.name} {card.pci_id}" for card in cards)
            if cards
            else "the driver shows no GPU to this process",
        )
    card = found[0]
    if card.capability < MINIMUM_CAPABILITY:
        raise DeviceError(
            f"{card.name} has compute capability {version_text(card.capability)},"
            f" cuzk needs {version_text(MINIMUM_CAPABILITY)} or later",
            where=name,
            next="use another GPU or --device cpu",
        )
    return card


def _is_named(card: Card, name: str) -> bool:
    if index := _INDEX.fullmatch(name):
        return card.index == int(index[1] or 0)
    if pci := _PCI.fullmatch(name):
        domain, _, place = card.pci_id.partition(":")
        return place == pci[2].lower() and int(domain, 16) == int(pci[1] or "0", 16)
    uuid = _UUID.fullmatch(name)
    return uuid is not None and card.uuid == uuid[1].lower()


def check_driver(card: Card, compiler: tuple[int, int]) -> None:
    """Code of one major version of CUDA needs a driver of that version, or DeviceError is raised."""
    if card.driver_cuda[0] < compiler[0]:
        raise DeviceError(
            f"the driver knows CUDA up to {version_text(card.driver_cuda)},"
            f" the installed compiler is of CUDA {version_text(compiler)}",
            where=card.label,
            next=f"install a newer driver, or: pip install 'numba-cuda[cu{card.driver_cuda[0]}]'",
        )


def version_text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
