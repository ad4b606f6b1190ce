"""The kernels of fixed-base multiples, compiled without a GPU: registers, spills, no floating point."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.fixed_base_gpu import digit_pairs, encode_kernel, place_kernel, table_pairs

H200 = (9, 0)


@pytest.mark.parametrize(
    ("kernel", "registers"),
    [
        (table_pairs, 32),
        (digit_pairs, 32),
        (encode_kernel(FQ_GPU), 96),
        (encode_kernel(FQ2_GPU), 128),
        (place_kernel(FQ_GPU), 64),
        (place_kernel(FQ2_GPU), 64),
    ],
    ids=["table", "digits", "encode G1", "encode G2", "place G1", "place G2"],
)
def test_kernels_keep_their_values_in_registers_and_are_integer_code(kernel: Any, registers: int) -> None:
    compiled = kernel.compile(H200)
    assert compiled.registers <= registers
    assert compiled.spill_bytes == compiled.stack_bytes == 0
    assert "f64" not in compiled.ptx, "a signed and an unsigned 64-bit integer met: Numba makes that a float"
