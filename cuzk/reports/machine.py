"""What `cuzk doctor` reports: the facts about this machine that decide how cuzk runs here, as plain data.

Nothing is changed: the folders that are missing stay missing, and nothing is compiled.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cuzk
from cuzk.errors import CuzkError
from cuzk.units import format_size

if TYPE_CHECKING:
    from cuzk.kernels.device.cuda_card import Card

#: The packages whose versions decide results or speed.
PACKAGES = ("numba", "llvmlite", "numpy", "click", "rich", "tomli", "msgspec", "py-arkworks-bls12381")
Section = dict[str, Any]


def examine(params: Path | None) -> dict[str, Section]:
    """Every section by its name; values are strings, numbers or lists: they print and go into JSON. What ends
    in _bytes is a number."""
    from cuzk.reports.parameters import parameter_folders

    return {
        "software": _software(),
        "processor": _processor(),
        "memory": _memory(),
        "gpu": _gpu(),
        "compiled_code": _compiled_code(),
        "parameters": parameter_folders(params),
    }


def _software() -> Section:
    versions = {name: _version(name) for name in PACKAGES}
    return {
        "cuzk": cuzk.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        **versions,
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> Section:
    from cuzk.kernels.device.choose import choose_device
    from cuzk.kernels.device.cpu import has_ifma

    device = choose_device("auto")
    return {
        "model": cpu_model(_lines("/proc/cpuinfo")) or platform.processor() or "unknown",
        "cores": device.threads,
        "avx512_ifma": has_ifma(),
        "kernels": device.name,
        "lanes": device.lanes,
    }


def _gpu() -> Section:
    from cuzk.kernels.device.choose import choose
    from cuzk.kernels.device.cuda_card import all_cards, driver_release, version_text
    from cuzk.kernels.device.cuda_driver import load_api

    section: Section = {"auto": choose("auto").why}
    try:
        api = load_api()
        cards = all_cards(api)
    except CuzkError as error:
        return section | {"cards": f"none: {error.what}"}
    if not cards:
        return section | {"cards": "none: the driver shows no GPU to this process"}
    release = driver_release()
    section["driver"] = f"{release + ', ' if release else ''}CUDA up to {version_text(cards[0].driver_cuda)}"
    section["compiler"] = _gpu_compiler(cards[0])
    return section | {card.label: _card(api, card) for card in cards}


def _gpu_compiler(card: Card) -> str:
    """The compiler for the GPU, and whether the driver takes its code. PTX never leaves the compiler."""
    from cuzk.kernels.device.cuda_card import check_driver, version_text

    try:
        from cuzk.kernels.gpu.compiler import compiler_version, toolchain

        version = compiler_version()
        check_driver(card, version)
    except CuzkError as error:
        return f"unusable: {error.what}"
    return (
        f"numba-cuda {toolchain()['numba-cuda']}; its code, of CUDA {version_text(version)}, fits the driver"
    )


def _card(api: Any, card: Card) -> str:
    """One line on a card. To ask for its free memory it is opened, which takes some tenths of a second."""
    from cuzk.kernels.device.cuda import CudaDevice
    from cuzk.kernels.device.cuda_card import version_text

    try:
        with CudaDevice(card.label, api=api) as device:
            memory = f"{format_size(device.free_memory())} of {format_size(card.memory_bytes)} free"
    except CuzkError as error:
        memory = f"unusable: {error.what}"
    return (
        f"{card.name}, capability {version_text(card.capability)}, {card.multiprocessors} multiprocessors"
        f" at {card.clock_mhz} MHz, {memory}, {card.pci_id}, GPU-{card.uuid}"
    )


def cpu_model(lines: Iterable[str]) -> str:
    """The name of the first processor in /proc/cpuinfo's lines; empty when it has none."""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return ""


def _memory() -> Section:
    amounts = {}
    for line in _lines("/proc/meminfo"):
        name, _, value = line.partition(":")
        if name in ("MemTotal", "MemAvailable"):
            amounts[name] = int(value.split()[0]) * 1024
    limit = _lines("/sys/fs/cgroup/memory.max")
    section: Section = {
        "installed_bytes": amounts.get("MemTotal"),
        "available_bytes": amounts.get("MemAvailable"),
    }
    if limit and limit[0].strip().isdigit():
        section["group_limit_bytes"] = int(limit[0])
    return section


def _lines(path: str) -> list[str]:
    """The lines of a file of the kernel's; none where it does not exist."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _compiled_code() -> Section:
    from cuzk.kernels.jit import compiled_folder

    return describe_folder(compiled_folder())


def describe_folder(folder: Path) -> Section:
    """Path, state and size of a folder; its parent that exists decides whether it could be made."""
    existing = folder
    while not existing.exists():
        existing = existing.parent
    writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    return {
        "folder": str(folder),
        "state": ("" if folder.exists() else "not made yet, ") + ("writable" if writable else "NOT writable"),
        "files": len(files),
        "size_bytes": sum(path.stat().st_size for path in files),
    }
