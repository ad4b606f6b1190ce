"""Every kernel of the GPU that a proof launches, so that all can be compiled before it begins."""

from __future__ import annotations

from types import ModuleType

from cuzk.kernels import (
    bucket_sort_gpu,
    digits_gpu,
    integrate_gpu,
    msm_gpu,
    ntt_gpu_kernels,
    rounds_gpu,
    selected_sum_gpu,
    selection_gpu,
    staged_sort_gpu,
    subset_sums_gpu,
    template_rows_gpu,
    witness_gpu,
)
from cuzk.kernels.cuda_jit import CudaKernel
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.ntt_gpu_kernels import pass_kernel
from cuzk.kernels.ntt_schedule import Schedule, pass_shapes
from cuzk.kernels.pair_add_gpu import pair_add_kernel
from cuzk.kernels.points_gpu import decode_kernel, gather_kernel
from cuzk.kernels.sum_plan import msm_plan
from cuzk.kernels.sum_schedule import Form, selected_plan
from cuzk.kernels.tail_sum_gpu import sum_lists_kernel

_MODULES: tuple[ModuleType, ...] = (
    witness_gpu,
    template_rows_gpu,
    selection_gpu,
    ntt_gpu_kernels,
    bucket_sort_gpu,
    digits_gpu,
    staged_sort_gpu,
    rounds_gpu,
    integrate_gpu,
    msm_gpu,
    selected_sum_gpu,
    subset_sums_gpu,
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
