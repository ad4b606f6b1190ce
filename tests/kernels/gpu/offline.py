"""The kernels of the GPU compiled without one: in processes side by side, each kernel once for its sources.

What the assembler says of a kernel is kept beside compiled code, in the folder that is named by all sources.
"""

from __future__ import annotations

import inspect
import json
import multiprocessing
import os
import pkgutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module

import cuzk.kernels.gpu
from cuzk.kernels.gpu.fixed_base import kernels_of_multiples
from cuzk.kernels.gpu.jit import CudaKernel
from cuzk.kernels.gpu.proof_kernels import proof_kernels

Capability = tuple[int, int]
#: log2 of the domains of all sector sizes.
DOMAINS = (22, 23, 27)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """As `cubin.Compiled`, without the code."""

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    has_floats: bool


@cache
def every_kernel() -> dict[str, CudaKernel]:
    """All that the package can launch, under names that tell them apart."""
    made = [kernel for log2 in DOMAINS for kernel in proof_kernels(log2)] + kernels_of_multiples()
    for module in pkgutil.iter_modules(cuzk.kernels.gpu.__path__, "cuzk.kernels.gpu."):
        held = vars(import_module(module.name)).values()
        made += [value for value in held if isinstance(value, CudaKernel)]
    kernels = list(dict.fromkeys(made))
    named = {name_of(kernel): kernel for kernel in kernels}
    assert len(named) == len(kernels)
    return named


def name_of(kernel: CudaKernel) -> str:
    """With the field and the size of a block, where a kernel is made for several."""
    closed_over = inspect.getclosurevars(kernel.function).nonlocals
    parts = [closed_over["form"].name] if "form" in closed_over else []
    parts += [str(closed_over["threads"])] if "form" in closed_over and "threads" in closed_over else []
    return " ".join([kernel.name, *parts])


def report(name: str, capability: Capability) -> Report:
    """Of a kernel, from the folder or by compiling it."""
    kernel = every_kernel()[name]
    file = kernel.cache_file(capability).with_suffix(".json")
    try:
        return Report(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        compiled = kernel.compile(capability)
    found = Report(
        registers=compiled.registers,
        spill_bytes=compiled.spill_bytes,
        stack_bytes=compiled.stack_bytes,
        shared_bytes=compiled.shared_bytes,
        has_floats="f64" in compiled.ptx,
    )
    part = file.with_suffix(f".{os.getpid()}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps(asdict(found)))
    part.replace(file)
    return found


@contextmanager
def compiling(
    cases: Sequence[tuple[str, Capability]],
) -> Iterator[dict[tuple[str, Capability], Future[Report]]]:
    """Reports to come, in the order of the cases: name and capability."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=fresh) as processes:
        yield {case: processes.submit(report, *case) for case in cases}
        processes.shutdown(cancel_futures=True)
