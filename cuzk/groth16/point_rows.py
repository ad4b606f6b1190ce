"""The sections of a parameter file as point rows for kernels: decoded, checked, a slice at a time, one array.

Every decoding checks that coordinates are canonical and points on the curve. Whether they lie in the subgroup
of order r is checked once for a file, by random sums (`subset_sums`), and remembered by `checked`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.groth16.parameters import SECTIONS, ParameterFile, SectionName
from cuzk.groth16.target import bad_point, require_subgroup
from cuzk.kernels.device.cpu import Arena, CpuDevice
from cuzk.kernels.msm import scratch_rows as msm_scratch_rows
from cuzk.kernels.points import BadPoint, decode_points, padded
from cuzk.kernels.subset_sums import random_subset_sums
from cuzk.kernels.subset_sums import scratch_rows as subset_scratch_rows

SLICE = 1 << 21
"""Points that lie decoded at once: 268 MB in G1. Of h at 2^22, a second slice costs 3 % of its sum in
buckets."""


def slices(count: int) -> list[slice]:
    """The slices of a section of `count` points."""
    return [slice(begin, min(begin + SLICE, count)) for begin in range(0, count, SLICE)]


class PointRows:
    """Decodes slices of the sections of one file, each into the place of the one before: into `arena`.

    check_subgroup  also check that the points are of order r
    """

    def __init__(self, device: CpuDevice, parameters: ParameterFile, *, check_subgroup: bool) -> None:
        self._device, self._parameters = device, parameters
        self._check_subgroup = check_subgroup
        points = min(SLICE, len(parameters.h))
        largest = (padded(points) + msm_scratch_rows(device, device.g1, points)) * 2 * device.g1.words
        self.arena = Arena(largest)  # lent to whoever works while no rows are in use
        self._checked: set[tuple[SectionName, int]] = set()

    def all_checked(self) -> bool:
        """Whether the points of every section have been found good, subgroup included."""
        counts = self._parameters.counts
        return self._checked == {
            (name, part.start) for name, _ in SECTIONS for part in slices(counts.of(name))
        }

    def decoded(self, section: SectionName, form: Any, part: slice, spare: int) -> NDArray[np.uint64]:
        """Rows of one of the section's slices and `spare` rows behind them; they hold until the next call.

        Raises ParameterError with the number of a point that is bad.
        """
        encoded: NDArray[np.uint8] = getattr(self._parameters, section)[part]
        if self._check_subgroup:
            spare = max(spare, subset_scratch_rows(self._device, form, len(encoded)))
        (rows,) = self.arena.take((padded(len(encoded)) + spare, 2 * form.words))
        bad = decode_points(self._device, form, encoded, rows)
        if bad is not None:
            raise bad_point(self._parameters.where, section, BadPoint(part.start + bad.index, bad.reason))
        if self._check_subgroup and (section, part.start) not in self._checked:
            sums = random_subset_sums(self._device, form, rows, len(encoded))
            require_subgroup(self._parameters.where, section, sums)
            self._checked.add((section, part.start))
        return rows
