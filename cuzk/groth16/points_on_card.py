"""Where a prover on a GPU has its points from: a parameter file, or parameters that never leave the card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cuzk.groth16.card_plan import form_of
from cuzk.groth16.parameters import ParameterFile, Parameters, PointCounts, SectionName
from cuzk.groth16.target import bad_point
from cuzk.groth16.verifying_key import VerifyingKey
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.points import BadPoint
from cuzk.kernels.points_gpu import GpuPoints, decode_to_gpu


class PointSource(Parameters, Protocol):
    """Parameters whose points can be had on a card."""

    def on_card(self, device: CudaDevice, section: SectionName, order: tuple[int, int, int]) -> GpuPoints:
        """The points of a section, in rows that are reversed by digits of `order` bits."""


@dataclass(frozen=True, slots=True, eq=False)
class PointsOfFile:
    """The points of a parameter file, decoded on the card."""

    file: ParameterFile

    @property
    def where(self) -> str:
        return self.file.where

    @property
    def key(self) -> VerifyingKey:
        return self.file.key

    @property
    def counts(self) -> PointCounts:
        return self.file.counts

    def on_card(self, device: CudaDevice, section: SectionName, order: tuple[int, int, int]) -> GpuPoints:
        """Raises ParameterError for the first point that is not on the curve."""
        points = decode_to_gpu(device, form_of(section), getattr(self.file, section), order=order)
        if isinstance(points, BadPoint):
            raise bad_point(self.where, section, points)
        return points
