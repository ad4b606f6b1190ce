"""The CPU as a target: sections are decoded a slice at a time, each into the place of the one before.

Memory      `proof_memory`: transforms and the point rows of all sums, slice by slice, take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from py_arkworks_bls12381 import G1Point, G2Point

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import A, B, C, evaluate_rows, evaluate_side, unsatisfied_row
from cuzk.circuit.witness import Assignment, FreeValues, assign
from cuzk.events import OnEvent, Progress, ignore
from cuzk.groth16.memory_limits import available_memory
from cuzk.groth16.memory_plan import MemoryPlan
from cuzk.groth16.parameters.params_file import ParameterFile, SectionName
from cuzk.groth16.point_rows import PointRows, require_good_points, slices, words_of_rows
from cuzk.groth16.proof_memory import ProofMemory
from cuzk.groth16.query import selections
from cuzk.groth16.target import End, Pending, Query, group_point
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.fr_vector import Vector
from cuzk.kernels.msm import msm
from cuzk.kernels.msm import scratch_rows as msm_scratch_rows
from cuzk.kernels.ntt import quotient
from cuzk.kernels.selected_sum import mostly_bits_sum
from cuzk.kernels.selected_sum import scratch_rows as bits_scratch_rows


class CpuTarget:
    """See `target.Target`. Sums begin when they are asked for: nothing is gained by beginning earlier.

    memory  for a domain of this size, if it has been made ready before
    """

    def __init__(
        self, device: CpuDevice, parameters: ParameterFile, memory: ProofMemory | None = None
    ) -> None:
        self.host = device
        self.name = device.name
        self._counts = parameters.counts
        self._memory = memory or ProofMemory(self._counts.h + 1, words_of_rows(device, self._counts))
        self._points = PointRows(device, parameters, self._memory.arena)
        self._scratch: list[Vector] = []  # of the transforms, from `rows` on

    def require_memory(self) -> None:
        MemoryPlan.of(self.host, self._counts).require(available_memory())

    def prepare(self, on_event: OnEvent = ignore) -> None:
        self._memory.touch_ahead()

    def opened(self, circuit: Circuit) -> None:
        """There is nothing to wait for."""

    def loaded(self) -> None:
        """Nor here: points stay in the file."""

    def ready(self, circuit: Circuit) -> None:
        selections(circuit)

    def assign(self, circuit: Circuit, free: FreeValues) -> Assignment:
        return assign(self.host, circuit, free)

    def rows(self, circuit: Circuit, assignment: Assignment) -> tuple[Vector, Vector]:
        m = self._counts.h + 1
        (a,) = self._memory.vector.take((m, 4))
        b, *self._scratch = self._memory.arena.take((m, 4), (m, 4), (m, 4))
        return evaluate_rows(self.host, circuit, assignment, out=(a, b))

    def unsatisfied_row(self, circuit: Circuit, assignment: Assignment) -> tuple[int, str] | None:
        """In the memory of the transforms, which come later."""
        m = self._counts.h + 1
        sides = [*self._memory.vector.take((m, 4)), *self._memory.arena.take((m, 4), (m, 4))]
        for side, out in zip((A, B, C), sides, strict=True):
            evaluate_side(self.host, circuit, assignment, side, out=out)
        return unsatisfied_row(self.host, circuit, *sides)

    def quotient(self, rows: tuple[Vector, Vector], progress: Progress) -> Vector:
        return quotient(self.host, *rows, scratch=self._scratch, progress=progress)

    def sum_of_h(self, h: Vector, progress: Progress) -> End:
        form = self.host.g1

        def sum_of(part: slice) -> Any:
            spare = msm_scratch_rows(self.host, form, part.stop - part.start)
            return msm(self.host, form, self._points.decoded("h", part, spare), h[part])

        return self._over_slices("h", len(h), sum_of, progress)

    def sum_over(self, section: SectionName, circuit: Circuit, assignment: Assignment) -> Pending:
        """Points whose scalar is 0, about half of them, are not even decoded."""
        query = selections(circuit).of(section).query(assignment)
        return lambda progress: self.sum_under(section, query, progress)

    def sum_under(self, section: SectionName, query: Query, progress: Progress) -> End:
        """The sum of a section's points under a query."""
        form = self._points.form_of(section)

        def sum_of(part: slice) -> Any:
            chosen, q = query.part(part).without_zeros()
            spare = bits_scratch_rows(self.host, form, len(q.bits), len(q.full_index))
            rows = self._points.decoded(section, chosen + np.uint32(part.start), spare)
            return mostly_bits_sum(self.host, form, rows, q.bits, q.full_index, q.full_scalars)

        return self._over_slices(section, len(query.bits), sum_of, progress)

    def _over_slices(
        self, section: SectionName, count: int, sum_of: Callable[[slice], Any], progress: Progress
    ) -> End:
        total = G2Point.identity() if section == "b_g2" else G1Point.identity()
        for part in slices(count):
            total += group_point(section, sum_of(part))
            progress(part.stop, count)
        return lambda: total

    def require_good_points(self, on_event: OnEvent) -> None:
        require_good_points(self._points, on_event)

    def computed_ms(self) -> None:
        """Its clock is the host's."""

    def close(self) -> None:
        """Its memory goes with it."""
