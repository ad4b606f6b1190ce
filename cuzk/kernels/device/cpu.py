"""The CPU as a device: which kernels it can run, its threads, its memory.

Eight-lane kernels need AVX-512 IFMA; the choice is made once, from the CPU's flags, and can be forced for
comparison.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from llvmlite import binding

from cuzk.errors import DeviceError
from cuzk.kernels.device.memory import Arena, aligned_empty
from cuzk.kernels.field_type import FQ, FQ2, FQ2_8, FQ8, FR, FR8

__all__ = ["Arena", "CpuDevice", "aligned_empty", "has_ifma"]

T = TypeVar("T")
R = TypeVar("R")

IFMA_FLAG = "avx512ifma"


def has_ifma() -> bool:
    """Whether this CPU has the 52-bit multiply-add that eight-lane kernels are made of."""
    return bool(binding.get_host_cpu_features().get(IFMA_FLAG, False))


class CpuDevice:
    """Threads of this process and the field forms that suit the CPU.

    threads  how many work at once; by default one for each CPU that this process may use
    lanes    8 with AVX-512 IFMA, else 1; None asks the CPU

    Raises DeviceError when eight lanes are asked for and the CPU lacks the flag.
    """

    def __init__(self, threads: int | None = None, lanes: int | None = None) -> None:
        lanes = (8 if has_ifma() else 1) if lanes is None else lanes
        if lanes == 8 and not has_ifma():
            raise DeviceError(
                "this CPU has no AVX-512 IFMA",
                where="cpu:ifma",
                next="use --device cpu or --device cpu:scalar",
            )
        self.threads = threads or len(os.sched_getaffinity(0))
        self.lanes = lanes
        self.name = "cpu:ifma" if lanes == 8 else "cpu:scalar"
        self.fr = FR8 if lanes == 8 else FR
        self.g1 = FQ8 if lanes == 8 else FQ  # a group is named by the form of its coordinates
        self.g2 = FQ2_8 if lanes == 8 else FQ2

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """`function` of every item, in order, on this device's threads; the first exception stops the rest.

        Items are taken one by one from a shared queue, so uneven ones balance. Compiled work (`nogil`) runs
        in parallel; the calling thread takes part.
        """
        work = list(items)
        results: list[Any] = [None] * len(work)
        errors: list[BaseException] = []
        lock = threading.Lock()
        queue = iter(range(len(work)))

        def run() -> None:
            while not errors:
                with lock:
                    i = next(queue, None)
                if i is None:
                    return
                try:
                    results[i] = function(work[i])
                except BaseException as error:  # handed to the caller below
                    errors.append(error)

        helpers = [threading.Thread(target=run, daemon=True) for _ in range(min(self.threads, len(work)) - 1)]
        for helper in helpers:
            helper.start()
        run()
        for helper in helpers:
            helper.join()
        if errors:
            raise errors[0]
        return results
