"""The kernels of a circuit, compiled without a GPU: registers, spills, no floating point."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.selection_gpu import take_marked, take_numbers
from cuzk.kernels.template_rows import DIGITS
from cuzk.kernels.template_rows_gpu import evaluate_rows, find_unsatisfied
from cuzk.kernels.witness_gpu import fill_wave, place_bits, place_numbers

H200 = (9, 0)


@pytest.mark.parametrize(
    ("kernel", "registers", "stack"),
    [
        (fill_wave, 168, 0),
        (evaluate_rows, 80, 8 * DIGITS),
        (find_unsatisfied, 64, 0),
        (place_numbers, 32, 0),
        (place_bits, 32, 0),
        (take_marked, 32, 0),
        (take_numbers, 32, 0),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_kernels_keep_their_values_in_registers_and_are_integer_code(
    kernel: Any, registers: int, stack: int
) -> None:
    compiled = kernel.compile(H200)
    assert compiled.registers <= registers
    assert compiled.spill_bytes == 0
    assert compiled.stack_bytes == stack
    assert "f64" not in compiled.ptx, "a signed and an unsigned 64-bit integer met: Numba makes that a float"
