"""Memory of the CPU for kernels: aligned arrays, and one block that the steps of a proof share.

It loads no compiler: memory can be made ready while the compiler loads.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

_CACHE_LINE_BYTES = 64
_PAGE_BYTES = 4096


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
