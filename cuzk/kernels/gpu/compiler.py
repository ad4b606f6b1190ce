"""From a Python function to code for a card: what it takes and gives; `cubin` does it.

Kernels say `from cuzk.kernels.gpu.compiler import cuda`, which is `numba.cuda` from the first compilation on.
Until then something stands in its place: to import numba-cuda takes 0.2 s, and a process that finds its
kernels in the cache needs nothing of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from numba.core import types

from cuzk.errors import DeviceError

if TYPE_CHECKING:
    from cuzk.kernels.gpu.cubin import Compiled

if find_spec("numba_cuda") is None:  # `numba.cuda` alone may be Numba's own, which nobody maintains
    raise DeviceError("numba-cuda is not installed", where="CUDA", next="pip install 'cuzk[cuda]'")

__all__ = ["compile_kernel", "compiler_version", "cuda", "pointer", "toolchain"]

#: Packages that decide what code comes out.
_PACKAGES = ("numba", "llvmlite", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink")


class _NumbaCuda:
    """Stands for `numba.cuda` in the modules of kernels."""


_STAND_IN = _NumbaCuda()
cuda: Any = _STAND_IN
pointer = types.CPointer  # the type of a kernel's parameter that takes a DeviceArray


def compiler_version() -> tuple[int, int]:
    """The CUDA version of the assembler, which a driver must match in its first number."""
    from cuda.bindings import nvjitlink

    major, minor = nvjitlink.version()
    return int(major), int(minor)


@lru_cache(maxsize=1)
def toolchain() -> dict[str, str]:
    """Versions of the packages that decide what code comes out; a toolkit of the system has no package."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "the system's"
    return found


def compile_kernel(
    function: Callable[..., None],
    argument_types: tuple[types.Type, ...],
    capability: tuple[int, int],
    *,
    launch_bounds: tuple[int, ...] | None = None,
    max_registers: int | None = None,
) -> Compiled:
    """The function as a kernel, whose entry has the function's own name.

    launch_bounds  threads a block at most, and optionally blocks that a multiprocessor must hold at once
    max_registers  of a thread, at the price of spills
    """
    from cuzk.kernels.gpu import cubin

    _name_in_modules(cubin.cuda, function.__globals__)
    return cubin.compile_kernel(
        function, argument_types, capability, launch_bounds=launch_bounds, max_registers=max_registers
    )


def _name_in_modules(numba_cuda: Any, names: dict[str, Any]) -> None:
    """Put numba.cuda where modules, this one too, and some more names have what stands for it."""
    for held in (names, *(getattr(module, "__dict__", {}) for module in list(sys.modules.values()))):
        if held.get("cuda") is _STAND_IN:
            held["cuda"] = numba_cuda
