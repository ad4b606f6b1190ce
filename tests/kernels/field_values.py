"""Field values as arrays of each form, and back: plain integers on the test's side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cuzk.kernels.device.cpu import aligned_empty, has_ifma
from cuzk.kernels.field_type import FieldForm

needs_ifma = pytest.mark.skipif(not has_ifma(), reason="this CPU has no AVX-512 IFMA")


def to_rows(form: FieldForm, values: Sequence[int]) -> np.ndarray[Any, Any]:
    rows = aligned_empty(len(values), form.words)
    for row, value in zip(rows, values, strict=True):
        row[:] = form.modulus.limbs(value, form.words, form.word_bits)
    return rows


def to_ints(form: FieldForm, rows: np.ndarray[Any, Any]) -> list[int]:
    width = form.word_bits
    return [sum(int(word) << (width * i) for i, word in enumerate(row)) for row in rows]


def edge_values(p: int) -> list[int]:
    """0, 1, p-1 and values whose limbs are all ones or all zeros."""
    saturated = [(1 << k) - 1 for k in (32, 52, 64, 104, 128, 250)] + [
        1 << k for k in (51, 52, 63, 64, 208, 253)
    ]
    return [0, 1, 2, p - 1, p - 2, (p - 1) // 2, (p + 1) // 2, *(v % p for v in saturated)]
