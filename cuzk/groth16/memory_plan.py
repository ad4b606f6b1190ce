"""How much memory proofs and parameters take: worked out before, and refused when the machine has less."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cuzk.errors import ResourceError
from cuzk.groth16.parameters.params_file import PointCounts
from cuzk.groth16.point_rows import SLICE
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.fixed_base import BATCH, best_window, windows_of
from cuzk.kernels.msm import scratch_rows
from cuzk.kernels.points import padded
from cuzk.units import format_size

_SCALAR_BYTES = 32
_WORD_BYTES = 8
_INDEX_BYTES_A_POINT = 4
_WITNESS_BYTES_A_VARIABLE = 2  # a byte for a bit, and 32 for each of the few that are none
_SELECTION_BYTES_A_VARIABLE = 2  # a bit a section, counts, places of those that are no bits; a byte at first
_PROCESS_BYTES = 400 << 20  # interpreter, compiler and compiled kernels, measured
_DRIVER_BYTES = 600 << 20  # what CUDA's driver takes of the host for one card


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Bytes by purpose. `transforms` and `sums` do not overlap in time; the rest stays."""

    process: int
    witness: int
    transforms: int
    sums: int

    @classmethod
    def of(cls, device: CpuDevice, counts: PointCounts) -> MemoryPlan:
        """The plan of one partition after another, for a circuit whose parameters have so many points."""
        m = counts.h + 1
        rows = max(
            (padded(n) + scratch_rows(device, form, n)) * 2 * form.words * _WORD_BYTES
            for form, n in ((device.g1, min(SLICE, counts.h)), (device.g2, min(SLICE, counts.b)))
        )
        return cls(
            process=_PROCESS_BYTES,
            witness=counts.l * _WITNESS_BYTES_A_VARIABLE,
            transforms=4 * _SCALAR_BYTES * m,
            sums=(_SCALAR_BYTES + _INDEX_BYTES_A_POINT) * m + rows,
        )

    @classmethod
    def beside_a_gpu(cls, counts: PointCounts) -> MemoryPlan:
        """The host's part when all is computed on a GPU: which variables each section has."""
        return cls(
            process=_PROCESS_BYTES + _DRIVER_BYTES,
            witness=counts.l * _SELECTION_BYTES_A_VARIABLE,
            transforms=0,
            sums=0,
        )

    @property
    def peak(self) -> int:
        return self.process + self.witness + max(self.transforms, self.sums)

    def __str__(self) -> str:
        return _listed(self, ("process", "witness", "transforms", "sums"))

    def require(self, available: int) -> None:
        """Raises ResourceError with the plan when `available` bytes are too few."""
        _require("a proof takes", self, available)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPlan:
    """Bytes by purpose. `values` are the scalars while they are computed; `points` come after that."""

    process: int
    values: int
    points: int

    @classmethod
    def of(cls, device: CpuDevice | None, counts: PointCounts) -> GenerationPlan:
        """The plan for parameters of so many points; without a device the points are computed on a GPU."""
        m, variables = counts.h + 1, counts.ic + counts.l
        kept = counts.ic + counts.l + counts.a + counts.b
        table = (
            0
            if device is None
            else max(_table_bytes(device, device.g1, counts.l + m), _table_bytes(device, device.g2, counts.b))
        )
        return cls(
            process=_PROCESS_BYTES + (_DRIVER_BYTES if device is None else 0),
            values=_SCALAR_BYTES * max(2 * m, m + 3 * variables, 3 * variables + kept),
            points=_SCALAR_BYTES * kept + table,
        )

    @property
    def of_key(self) -> GenerationPlan:
        """What it takes when no points are made on the host but those of the key."""
        return replace(self, points=0)

    @property
    def peak(self) -> int:
        return self.process + max(self.values, self.points)

    def __str__(self) -> str:
        return _listed(self, ("process", "values", "points"))

    def require(self, available: int) -> None:
        """Raises ResourceError with the plan when `available` bytes are too few."""
        _require("generating parameters takes", self, available)


def _table_bytes(device: CpuDevice, form: Any, count: int) -> int:
    """Of the multiples that `count` points are made from, and of the batches of all threads."""
    bits = best_window(count)
    rows = windows_of(bits) * ((1 << bits) + bits) + device.threads * BATCH
    return rows * 2 * int(form.words) * _WORD_BYTES


def _listed(plan: MemoryPlan | GenerationPlan, parts: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {format_size(getattr(plan, name))}" for name in parts)


def _require(what: str, plan: MemoryPlan | GenerationPlan, available: int) -> None:
    if plan.peak > available:
        raise ResourceError(
            f"{what} {format_size(plan.peak)} of memory, {format_size(available)} are available",
            where=f"the plan: {plan}",
            next="close other programs, raise the limit of memory, or use a machine with more",
        )
