"""What `cuzk doctor` reports: the facts about this machine that decide how cuzk runs here, as plain data.

Nothing is changed: the folders that are missing stay missing, and nothing is compiled.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import cuzk
from cuzk.errors import CuzkError
from cuzk.units import format_size

#: The packages whose versions decide results or speed.
PACKAGES = ("numba", "llvmlite", "numpy", "click", "rich", "tomli", "msgspec", "py-arkworks-bls12381")
Section = dict[str, Any]


def examine(params: Path | None) -> dict[str, Section]:
    """Every section by its name; values are strings, numbers or lists: they print and go into JSON."""
    return {
        "software": _software(),
        "processor": _processor(),
        "memory": _memory(),
        "gpu": {"used": "none", "note": "this version has no CUDA target: it proves on the CPU only"},
        "compiled code": _compiled_code(),
        "parameters": _parameter_folders(params),
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
        "AVX-512 IFMA": "yes" if has_ifma() else "no",
        "kernels": f"{device.name}, {device.lanes} lane{'s' if device.lanes > 1 else ''}",
    }


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
        "installed": format_size(amounts["MemTotal"]) if "MemTotal" in amounts else "unknown",
        "available": format_size(amounts["MemAvailable"]) if "MemAvailable" in amounts else "unknown",
    }
    if limit and limit[0].strip().isdigit():
        section["limit of this group"] = format_size(int(limit[0]))
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
        "size": f"{format_size(sum(path.stat().st_size for path in files))} in {len(files)} files",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFacts:
    """One `.params` file that a search would find: what it is for, and what it claims to be."""

    sector_size: str
    kind: str
    size_bytes: int
    path: str


def parameter_files(params: Path | None, sector_bytes: int | None = None) -> Iterator[ParameterFacts]:
    """Every parameter file in the folders of the search, in its order; `sector_bytes` keeps one size only."""
    from cuzk.groth16.locate import search_folders

    for folder in dict.fromkeys(search_folders(params)):
        yield from _files_in(folder, sector_bytes)


def _files_in(folder: Path, sector_bytes: int | None = None) -> Iterator[ParameterFacts]:
    from cuzk.groth16.locate import find_parameters
    from cuzk.sector.shape import all_shapes

    for shape in all_shapes():
        path = folder / f"{shape.parameter_stem}.params"
        if sector_bytes not in (None, shape.sector_bytes) or not path.is_file():
            continue
        try:
            found = find_parameters(shape.parameter_stem, sector_size=shape.name, explicit=folder)
            kind = "development" if found.is_development else "published"
        except CuzkError as error:
            kind = f"unusable: {error.what}"
        yield ParameterFacts(
            sector_size=shape.name, kind=kind, size_bytes=path.stat().st_size, path=str(path)
        )


def _parameter_folders(params: Path | None) -> Section:
    from cuzk.groth16.locate import search_folders

    section: Section = {}
    for folder in search_folders(params):
        held = [
            f"{facts.sector_size}, {facts.kind}, {format_size(facts.size_bytes)}"
            for facts in _files_in(folder)
        ]
        section[str(folder)] = held or ("no parameters" if folder.is_dir() else "does not exist")
    return section
