"""The sections of a parameter file as point rows for kernels: decoded, checked, a slice at a time, one array.

Every decoding checks that coordinates are canonical and points on the curve. Whether all lie in the subgroup
of order r, `require_good_points` finds out once for a file, which `checked` remembers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.events import OnEvent, stage
from cuzk.groth16.parameters.params_file import SECTIONS, ParameterFile, PointCounts, SectionName
from cuzk.groth16.target import bad_point, require_subgroup
from cuzk.kernels.device.cpu import Arena, CpuDevice
from cuzk.kernels.msm import scratch_rows as msm_scratch_rows
from cuzk.kernels.points import decode_points, padded
from cuzk.kernels.subset_sums import random_subset_sums
from cuzk.kernels.subset_sums import scratch_rows as subset_scratch_rows

SLICE = 1 << 21
"""Points that lie decoded at once: 268 MB in G1. Of h at 2^22, a second slice costs 3 % of its sum in
buckets."""


def slices(count: int) -> list[slice]:
    """The slices of a section of `count` points."""
    return [slice(begin, min(begin + SLICE, count)) for begin in range(0, count, SLICE)]


def words_of_rows(device: CpuDevice, counts: PointCounts) -> int:
    """What the largest slice takes, with all that its sum needs."""
    points = min(SLICE, counts.h)
    rows = padded(points) + msm_scratch_rows(device, device.g1, points)
    return rows * 2 * int(device.g1.words)


class PointRows:
    """Decodes points of the sections of one file, each time into the place of those before.

    arena  where to: others may use it while no rows are in use
    """

    def __init__(self, device: CpuDevice, parameters: ParameterFile, arena: Arena | None = None) -> None:
        self.device, self.parameters = device, parameters
        self._arena = Arena(words_of_rows(device, parameters.counts)) if arena is None else arena

    def form_of(self, section: SectionName) -> Any:
        """The form of the section's group."""
        return self.device.g2 if section == "b_g2" else self.device.g1

    def decoded(
        self, section: SectionName, chosen: slice | NDArray[np.uint32], spare: int
    ) -> NDArray[np.uint64]:
        """Rows of a slice or of some of the section's points, `spare` rows behind; until the next call.

        Raises ParameterError with the number of a point that is bad, ResourceError when the disk fails.
        """
        encoded, form = self.parameters.section(section), self.form_of(section)
        index = np.arange(chosen.start, chosen.stop, dtype=np.uint32) if isinstance(chosen, slice) else chosen
        (rows,) = self._arena.take((padded(len(index)) + spare, 2 * form.words))
        readable = partial(self.parameters.require_readable, section)
        bad = decode_points(self.device, form, encoded, rows, index, readable)
        if bad is not None:
            raise bad_point(self.parameters.where, section, bad)
        return rows


def require_good_points(points: PointRows, on_event: OnEvent) -> None:
    """Raises ParameterError unless every point of the file is on the curve and of order r.

    A damaged coordinate is no point of the curve: what is cheap comes first, for all sections.
    """
    counts = points.parameters.counts
    total = sum(counts.of(section) for section, _ in SECTIONS)
    with stage(on_event, "points on the curve", total=total, unit="points") as progress:
        done = 0
        for section, _ in SECTIONS:
            for part in slices(counts.of(section)):
                points.decoded(section, part, spare=0)
                done += part.stop - part.start
                progress(done, total)
    with stage(on_event, "points in the subgroup", total=total, unit="points") as progress:
        done = 0
        for section, _ in reversed(SECTIONS):  # the shorter ones first
            for part in slices(counts.of(section)):
                _require_subgroup(points, section, part)
                done += part.stop - part.start
                progress(done, total)


def _require_subgroup(points: PointRows, section: SectionName, part: slice) -> None:
    form, count = points.form_of(section), part.stop - part.start
    rows = points.decoded(section, part, subset_scratch_rows(points.device, form, count))
    sums = random_subset_sums(points.device, form, rows, count)
    require_subgroup(points.parameters.where, section, sums)
