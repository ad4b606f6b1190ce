"""The CPU as a device: which kernels it can run, its threads, its memory.

Eight-lane kernels need AVX-512 IFMA; the choice is made once, from the CPU's flags, and can be forced for
comparison.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from llvmlite import binding

from cuzk.errors import DeviceError
from cuzk.kernels.field_type import FQ, FQ2, FQ2_8, FQ8, FR, FR8

T = TypeVar("T")
R = TypeVar("R")

IFMA_FLAG = "avx512ifma"
_CACHE_LINE_BYTES = 64
_PAGE_BYTES = 4096


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


class Arena:
    """One block of memory that the steps of a proof use in turn: touching fresh memory is what costs.

    What `take` returns holds until the next call.

    least_words  the block's size in uint64, if it is known; otherwise it grows, and is fresh each time
    """

    def __init__(self, least_words: int = 0) -> None:
        self._least_words = least_words
        self._words = aligned_empty(0, 1)
        self._toucher: threading.Thread | None = None

    def touch_ahead(self, words: int) -> None:
        """Touch the first `words` of the block in a thread of its own, while Python does something else.

        On virtual machines the first touch of a page can cost ten times what it costs on bare metal.
        """
        self._words = aligned_empty(max(words, self._least_words), 1)
        pages = self._words.reshape(-1)[: words : _PAGE_BYTES // 8]
        self._toucher = threading.Thread(target=pages.fill, args=(0,), daemon=True)
        self._toucher.start()

    def take(self, *shapes: tuple[int, int]) -> list[np.ndarray[Any, np.dtype[np.uint64]]]:
        """An uninitialised uint64 array for each (rows, words), each beginning on a cache line."""
        if self._toucher is not None:
            self._toucher.join()
            self._toucher = None
        line = _CACHE_LINE_BYTES // 8
        sizes = [-(-rows * words // line) * line for rows, words in shapes]
        if len(self._words) < sum(sizes):
            self._words = aligned_empty(0, 1)  # the smaller block goes before the larger one comes
            self._words = aligned_empty(max(sum(sizes), self._least_words), 1)
        starts = np.cumsum([0, *sizes])
        flat = self._words.reshape(-1)
        return [
            flat[start : start + rows * words].reshape(rows, words)
            for start, (rows, words) in zip(starts, shapes, strict=False)
        ]


def aligned_empty(rows: int, words: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """An uninitialised (rows, words) uint64 array that begins on a cache line, as eight-lane loads need."""
    spare = _CACHE_LINE_BYTES // 8
    raw = np.empty(rows * words + spare, np.uint64)
    first = -(raw.ctypes.data // 8) % spare
    return raw[first : first + rows * words].reshape(rows, words)
