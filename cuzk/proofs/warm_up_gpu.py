"""Compiling the GPU's kernels of a task before it begins: as `warm_up`, one kernel at a time in each process.

No card is needed to compile. Code is kept for each compute capability, kernel by kernel: a kernel whose file
is there is compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from cuzk.events import OnEvent, stage
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda_card import Card
from cuzk.kernels.gpu.fixed_base import kernels_of_multiples
from cuzk.kernels.gpu.jit import CudaKernel
from cuzk.kernels.gpu.proof_kernels import proof_kernels
from cuzk.kernels.jit import cache_is_writable
from cuzk.proofs.warm_up import compile_in_processes, report_failed

#: The kernels of each task, given log2 of the domain of rows.
TASKS: dict[str, Callable[[int], list[CudaKernel]]] = {
    "prove": proof_kernels,
    "generate": lambda _: kernels_of_multiples(),
}


def warm_up_gpu(host: CpuDevice, card: Card, task: str, log2: int, on_event: OnEvent) -> None:
    """Compile what the cache folder lacks for a task over 2^log2 rows, on all threads of the host."""
    kernels = _by_name(task, log2)
    missing = [name for name, one in kernels.items() if not one.cache_file(card.capability).exists()]
    if not missing or not cache_is_writable():
        return
    title = "compile kernels for the GPU (first start)"
    with stage(on_event, title, total=len(missing), unit="kernels") as progress:
        serve = f"from cuzk.proofs.warm_up_gpu import serve; serve({task!r}, {log2}, {card.capability})"
        failed = compile_in_processes(missing, host.threads, serve, progress)
    report_failed(failed, on_event)


def _by_name(task: str, log2: int) -> dict[str, CudaKernel]:
    """The kernels under names that are the same in every process."""
    return {f"{i} {kernel.name}": kernel for i, kernel in enumerate(TASKS[task](log2))}


def serve(task: str, log2: int, capability: tuple[int, int]) -> None:
    """The compiling process: reads names of kernels, compiles each and answers with its name."""
    kernels = _by_name(task, log2)
    for line in sys.stdin:
        name = line.strip()
        kernels[name].cubin(capability)
        print(name, flush=True)
