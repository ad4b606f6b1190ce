"""Kernels of the GPU's transforms, compiled without one: registers, spills, no floating point by accident."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.ntt_gpu_kernels import ntt_fill_table, ntt_reorder, ntt_small, pass_kernel
from cuzk.kernels.ntt_schedule import PassShape, Schedule, pass_shapes

H200 = (9, 0)
WIDEST = PassShape(bits=9, tile=11, strided=True, inverse=True, tables=2, times=True)
NARROWEST = PassShape(bits=6, tile=6, strided=False, inverse=False, tables=0)
SPILL_BYTES = 80  # a thread, in all of a pass: one value and a half, stored and loaded


@pytest.mark.parametrize("kernel", [ntt_fill_table, ntt_small, ntt_reorder], ids=lambda kernel: kernel.name)
def test_small_kernels_spill_nothing(kernel) -> None:  # type: ignore[no-untyped-def]
    compiled = kernel.compile(H200)
    assert compiled.registers <= 80
    assert compiled.spill_bytes == 0
    assert "f64" not in compiled.ptx, "a signed and an unsigned 64-bit integer met: Numba makes that a float"


def check_budget(shape: PassShape) -> None:
    compiled = pass_kernel(shape).compile(H200)
    assert compiled.registers <= 128
    assert compiled.spill_bytes <= SPILL_BYTES
    assert compiled.shared_bytes == 0, "the exchange is dynamic shared memory"
    assert "f64" not in compiled.ptx


@pytest.mark.parametrize("shape", [WIDEST, NARROWEST], ids=lambda shape: shape.name)
def test_a_pass_fits_its_registers(shape: PassShape) -> None:
    check_budget(shape)


@pytest.mark.slow
@pytest.mark.parametrize("log2_n", [13, 20, 22, 24, 27])
def test_every_pass_of_a_proof_fits_its_registers(log2_n: int) -> None:
    for shape in pass_shapes(Schedule(log2_n)):
        check_budget(shape)


@pytest.mark.slow
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 6), (8, 9), (10, 0), (12, 0)])
def test_the_widest_pass_compiles_for_other_cards(capability: tuple[int, int]) -> None:
    assert pass_kernel(WIDEST).compile(capability).registers <= 128
