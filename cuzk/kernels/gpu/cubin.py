"""numba-cuda makes PTX, nvJitLink the cubin. No GPU is needed.

nvJitLink holds the same assembler as ptxas, comes with numba-cuda, and reports registers and spills: so tests
check on any machine the very code that a card will run. The driver never sees PTX: a cubin runs on every
driver of the same major version of CUDA, however old, while PTX needs one as new as the compiler.

`compiler` imports this at the first compilation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba.core import types

from cuzk.errors import DeviceError

if not hasattr(np, "row_stack"):  # NumPy 2.5 took it away, numba-cuda 0.30 still names it when it is imported
    np.row_stack = np.vstack  # type: ignore[attr-defined]

from cuda.bindings import nvjitlink
from numba import cuda
from numba.cuda import dispatcher as _dispatcher
from numba.cuda.core.compiler_lock import global_compiler_lock

import cuzk.kernels.gpu.models  # noqa: F401  the data models, before anything is compiled

__all__ = ["Compiled", "assemble", "compile_kernel", "cuda"]

_ENTRY = re.compile(r"(\.visible \.entry )[\w$]+")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_STACK = re.compile(r"(\d+) bytes stack frame")
_SHARED = re.compile(
    r"\.shared \.align \d+ \.b8 \w+\[(\d+)\]"
)  # nvJitLink adds what the system takes, or not


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A kernel for one compute capability, and what the assembler says of it, for one thread.

    spill_bytes   stores and loads of registers that did not fit, in the whole kernel's code
    stack_bytes   local memory: spills, and arrays that are indexed by variables
    shared_bytes  static shared memory of a block, as declared
    """

    ptx: str
    cubin: bytes
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int


def compile_kernel(
    function: Callable[..., None],
    argument_types: tuple[types.Type, ...],
    capability: tuple[int, int],
    *,
    launch_bounds: tuple[int, ...] | None,
    max_registers: int | None,
) -> Compiled:
    """As `compiler.compile_kernel`."""
    with _compiling_for(capability):
        ptx, _ = cuda.compile(
            function,
            types.void(*argument_types),
            device=False,
            abi="numba",
            cc=capability,
            launch_bounds=launch_bounds,
        )
    ptx, entries = _ENTRY.subn(rf"\g<1>{function.__name__}", ptx)
    assert entries == 1, f"{function.__name__} compiled to {entries} entries"
    cubin, log = assemble(ptx, capability, max_registers)
    return Compiled(
        ptx=ptx,
        cubin=cubin,
        registers=max(int(count) for count in _REGISTERS.findall(log)),
        spill_bytes=sum(int(stores) + int(loads) for stores, loads in _SPILLS.findall(log)),
        stack_bytes=max(int(count) for count in _STACK.findall(log)),
        shared_bytes=sum(int(count) for count in _SHARED.findall(ptx)),
    )


@contextmanager
def _compiling_for(capability: tuple[int, int]) -> Iterator[None]:
    """Numba-cuda compiles the functions that a kernel calls for the current card: let it be the one we mean.

    Such a function is kept in its first form for all capabilities: right as long as it does not ask for one.
    """
    with global_compiler_lock:
        ask_driver = _dispatcher.get_current_device
        _dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
        try:
            yield
        finally:
            _dispatcher.get_current_device = ask_driver


def assemble(ptx: str, capability: tuple[int, int], max_registers: int | None = None) -> tuple[bytes, str]:
    """The cubin of some PTX, and the assembler's report. Raises DeviceError when it refuses."""
    major, minor = capability
    options = [f"-arch=sm_{major}{minor}", "-O3", "-verbose"]
    if max_registers is not None:
        options.append(f"-maxrregcount={max_registers}")
    code = ptx.encode()
    linker = None
    try:
        linker = nvjitlink.create(len(options), options)
        nvjitlink.add_data(linker, nvjitlink.InputType.PTX, code, len(code), "cuzk")
        nvjitlink.complete(linker)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, cubin)
        return bytes(cubin), _log(linker, nvjitlink.get_info_log_size, nvjitlink.get_info_log)
    except nvjitlink.nvJitLinkError as error:
        said = _log(linker, nvjitlink.get_error_log_size, nvjitlink.get_error_log) if linker else error
        raise DeviceError(
            f"the compiler makes no code for compute capability {major}.{minor}: {said}",
            where="compiler",
            next="install a newer numba-cuda, or use another device",
        ) from error
    finally:
        if linker:
            nvjitlink.destroy(linker)


def _log(linker: Any, size: Callable[[Any], int], read: Callable[[Any, bytearray], None]) -> str:
    text = bytearray(size(linker))
    if text:
        read(linker, text)
    return text.rstrip(b"\0").decode(errors="replace").strip()
