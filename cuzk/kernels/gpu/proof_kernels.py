"""Every kernel of the GPU that a proof launches, so that all can be compiled before it begins."""

from __future__ import annotations

from types import ModuleType

from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.gpu import (
    bucket_sort,
    digits,
    integrate,
    msm,
    ntt_kernels,
    rounds,
    selected_sum,
    selection,
    staged_sort,
    subset_sums,
    template_rows,
    witness,
)
from cuzk.kernels.gpu.jit import CudaKernel
from cuzk.kernels.gpu.ntt_kernels import pass_kernel
from cuzk.kernels.gpu.ntt_schedule import Schedule, pass_shapes
from cuzk.kernels.gpu.pair_add import pair_add_kernel
from cuzk.kernels.gpu.points import decode_kernel, gather_kernel
from cuzk.kernels.gpu.sum_plan import msm_plan
from cuzk.kernels.gpu.sum_schedule import Form, selected_plan
from cuzk.kernels.gpu.tail_sum import sum_lists_kernel

_MODULES: tuple[ModuleType, ...] = (
    witness,
    template_rows,
    selection,
    ntt_kernels,
    bucket_sort,
    digits,
    staged_sort,
    rounds,
    integrate,
    msm,
    selected_sum,
    subset_sums,
)


def proof_kernels(log2: int) -> list[CudaKernel]:
    """Those for a domain of 2^log2 rows, each once, the slow ones to compile first."""
    sums = [kernel for form in (FQ2_GPU, FQ_GPU) for kernel in sum_kernels(form, 1 << log2)]
    passes = [pass_kernel(shape) for shape in pass_shapes(Schedule(log2))]
    lists = [held for module in _MODULES for held in vars(module).values() if isinstance(held, CudaKernel)]
    return list(dict.fromkeys([*sums, *passes, *lists]))


def sum_kernels(form: Form, n: int) -> list[CudaKernel]:
    """Those of one group."""
    plan, selected = msm_plan(form, n), selected_plan(form, n)
    shapes = dict.fromkeys([plan.shape, plan.small_shape, selected.shape, selected.small_shape])
    tails = dict.fromkeys([plan.tail_threads, selected.tail_threads])
    return [
        *(pair_add_kernel(form, shape) for shape in shapes),
        *(sum_lists_kernel(form, threads) for threads in tails),
        decode_kernel(form),
        gather_kernel(form),
    ]
