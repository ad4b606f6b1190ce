"""Arrays of this floor: their types, bytes and limbs of the same memory, views, and what nobody may write."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]
Limbs = NDArray[np.uint64]


def as_limbs(hashes: Bytes) -> Limbs:
    """(..., 32) uint8 as (..., 4) uint64."""
    limbs: Limbs = np.ascontiguousarray(hashes).view("<u8")
    return limbs


def as_hashes(limbs: Limbs) -> Bytes:
    """(..., 4) uint64 as (..., 32) uint8: the reverse."""
    hashes: Bytes = np.ascontiguousarray(limbs).view(np.uint8)
    return hashes


def reshaped_view(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """The same memory in another shape, to write through; numpy's `reshape` may copy and not say so."""
    view = array.reshape(shape)
    assert np.may_share_memory(view, array), array.strides
    return view


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Contiguous, and as the reader of Commit 1 outputs yields arrays: to the compiler a writable one is
    another type."""
    contiguous = np.ascontiguousarray(array)
    contiguous.flags.writeable = False
    return contiguous
