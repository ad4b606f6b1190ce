"""Scratch memory of one computation on the GPU: its parts are laid out before anything is allocated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuzk.kernels.device.cuda_memory import DeviceArray

_ALIGNMENT = 256  # of every part: rows are read 16 bytes at a time, and whole lines are better


class Layout:
    """Named arrays one after another. `nbytes` is known before there is memory; `carve` cuts it."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._parts: dict[str, tuple[int, tuple[int, ...], np.dtype[Any]]] = {}

    def add(self, name: str, shape: int | tuple[int, ...], dtype: Any = np.uint32) -> None:
        extents = (shape,) if isinstance(shape, int) else shape
        kind = np.dtype(dtype)
        self._parts[name] = (self.nbytes, extents, kind)
        self.nbytes += -(-math.prod(extents) * kind.itemsize // _ALIGNMENT) * _ALIGNMENT

    def carve(self, memory: DeviceArray) -> dict[str, DeviceArray]:
        """The parts of `memory`, which has at least `nbytes`."""
        return {
            name: memory.carve(shape, dtype, offset_bytes=offset)
            for name, (offset, shape, dtype) in self._parts.items()
        }
