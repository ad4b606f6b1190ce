"""Every kernel of the GPU, compiled for every kind of card without one: registers, spills, shared memory.

Ordinarily all kernels are compiled for capability 9.0 and those that are hardest on registers and shared
memory for the others, 90 s of one core; the rest are slow tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from bench import gpu_curve
from cuzk.groth16.gpu.card_plan import STACK_BYTES
from cuzk.kernels.circuit.template_rows import DIGITS
from cuzk.kernels.gpu.ntt_schedule import Schedule, pass_shapes
from tests.kernels.gpu.offline import DOMAINS, Capability, Report, compiling, every_kernel

H200 = (9, 0)
CAPABILITIES = [H200, (7, 5), (8, 0), (8, 6), (8, 9), (10, 0), (12, 0)]
HARDEST = (
    "add_pairs FQ_GPU 256",
    "decode_points FQ2_GPU",
    "ntt_inverse_9_11_strided_2_times",
    "scatter_bins",
    "spread_entries",
)
SHARED_BYTES = 48 << 10  # of a block, that every card gives unasked
LEAST_SHARED_BYTES = 64 << 10  # that the least card gives when asked


class Budget(NamedTuple):
    """At most, on any card: of a thread; spills are bytes of stores and loads in all of a kernel's code."""

    registers: int
    spill_bytes: int = 0
    stack_bytes: int = 0


ORDINARY = Budget(64)
PASS = Budget(128, 128, 64)  # of a transform: a value and a half
BUDGETS = {
    "add_pairs FQ_GPU 256": Budget(128, 416, 144),  # 16 warps on a multiprocessor are worth some spills
    "add_pairs FQ_GPU 64": Budget(255),
    "add_pairs FQ2_GPU 128": Budget(255, 256, 96),
    "add_pairs FQ2_GPU 64": Budget(255, 256, 96),
    "sum_lists FQ_GPU 64": Budget(255),
    "sum_lists FQ2_GPU 64": Budget(255, 3600, STACK_BYTES),  # few threads, once a sum
    "spread_digits": Budget(64, 160, 72),  # four blocks on a multiprocessor; 10.0 alone spills
    "decode_points FQ_GPU": Budget(168),
    "decode_points FQ2_GPU": Budget(255, 96, 48),
    "encode_points FQ_GPU": Budget(96),
    "encode_points FQ2_GPU": Budget(128),
    "ntt_fill_table": Budget(80),
    "ntt_small": Budget(80),
    "evaluate_rows": Budget(80, 0, 8 * DIGITS),
    "fill_wave": Budget(168),
}


def budget_of(name: str) -> Budget:
    is_pass = name.startswith(("ntt_inverse", "ntt_forward"))
    return BUDGETS.get(name, PASS if is_pass else ORDINARY)


def cases() -> list[Any]:
    """The longest to compile first."""
    ordinary = {name for log2 in (22, 27) for name in names_of_passes(log2)}
    return [
        pytest.param(
            (name, capability),
            id=f"{name} {capability[0]}.{capability[1]}",
            marks=()
            if name in HARDEST or (capability == H200 and (not name.startswith("ntt_") or name in ordinary))
            else pytest.mark.slow,
        )
        for capability in CAPABILITIES
        for name in every_kernel()
    ]


def names_of_passes(log2: int) -> set[str]:
    return {shape.name for shape in pass_shapes(Schedule(log2))} | {
        "ntt_fill_table",
        "ntt_small",
        "ntt_reorder",
    }


@pytest.fixture(scope="module")
def reports(request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, Capability], Future[Report]]]:
    """Of the cases that this session asks for."""
    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    with compiling([params["kernel_and_card"] for params in asked if "kernel_and_card" in params]) as futures:
        yield futures


@pytest.mark.parametrize("kernel_and_card", cases())
def test_a_kernel_keeps_to_its_budget(
    reports: dict[tuple[str, Capability], Future[Report]], kernel_and_card: tuple[str, Capability]
) -> None:
    name, _ = kernel_and_card
    found, budget = reports[kernel_and_card].result(), budget_of(name)
    assert found.registers <= budget.registers
    assert found.spill_bytes <= budget.spill_bytes
    assert found.stack_bytes <= budget.stack_bytes <= STACK_BYTES
    assert found.shared_bytes <= SHARED_BYTES
    assert not found.has_floats, "a signed and an unsigned 64-bit integer met: Numba makes that a float"


def test_mixed_additions_spill_nothing_with_8_warps_on_a_multiprocessor() -> None:
    compiled = gpu_curve.adding(gpu_curve.SHAPES[0]).compile(H200)
    assert compiled.registers <= 65536 // (8 * 32)
    assert compiled.spill_bytes == 0 and compiled.stack_bytes <= 16  # differs between compilers


def test_budgets_are_of_kernels_that_exist() -> None:
    assert BUDGETS.keys() | set(HARDEST) <= every_kernel().keys()


@pytest.mark.parametrize("log2", DOMAINS)
def test_the_exchange_of_a_pass_fits_the_shared_memory_of_every_card(log2: int) -> None:
    for shape in pass_shapes(Schedule(log2)):
        assert shape.shared_bytes <= LEAST_SHARED_BYTES
