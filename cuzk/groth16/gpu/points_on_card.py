"""Where a prover on a GPU has its points from: a parameter file, or parameters that never leave the card."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cuzk.groth16.gpu.card_plan import form_of, of_decoder
from cuzk.groth16.parameters.params_file import ParameterFile, Parameters, PointCounts, SectionName
from cuzk.groth16.parameters.verifying_key import VerifyingKey
from cuzk.groth16.target import bad_point
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.keeper import Closable
from cuzk.kernels.gpu.points import NATURAL_ORDER, Advance, GpuPoints, PointDecoder
from cuzk.kernels.points import BadPoint

_AHEAD_BYTES = 64 << 20
"""That the disk is asked for before they are read: all threads of a card have some 40 MB at a time."""


class SectionReader(Closable, Protocol):
    """Brings points of one section to the card, any part of it at a time."""

    def read(
        self,
        first: int,
        count: int,
        points: GpuPoints,
        advance: Advance,
        order: tuple[int, int, int] = NATURAL_ORDER,
    ) -> None:
        """Rows of `points` := points first to first + count, reversed by digits of `order` bits.

        advance  may raise, which ends it
        """


class PointSource(Parameters, Protocol):
    """Parameters whose points can be had on a card."""

    def reader(self, device: CudaDevice, section: SectionName, largest: int) -> SectionReader:
        """For parts of at most `largest` points."""

    def reader_bytes(self, section: SectionName, largest: int, multiprocessors: int) -> int:
        """What it takes of a card's memory."""


def on_card(
    source: PointSource,
    device: CudaDevice,
    section: SectionName,
    advance: Advance,
    order: tuple[int, int, int],
) -> GpuPoints:
    """All points of a section, in rows that are reversed by digits of `order` bits."""
    count = source.counts.of(section)
    points = GpuPoints(device, form_of(section), count)
    try:
        with closing(source.reader(device, section, count)) as reader:
            reader.read(0, count, points, advance, order)
    except BaseException:
        points.close()
        raise
    return points


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

    def reader(self, device: CudaDevice, section: SectionName, largest: int) -> SectionReader:
        return _FileReader(self.file, section, PointDecoder(device, form_of(section), largest))

    def reader_bytes(self, section: SectionName, largest: int, multiprocessors: int) -> int:
        return of_decoder(section, largest, multiprocessors)


@dataclass(frozen=True, slots=True, eq=False)
class _FileReader:
    file: ParameterFile
    section: SectionName
    decoder: PointDecoder

    def read(
        self,
        first: int,
        count: int,
        points: GpuPoints,
        advance: Advance,
        order: tuple[int, int, int] = NATURAL_ORDER,
    ) -> None:
        """Raises ParameterError for the first point that is not on the curve, and for a file that changed;
        ResourceError when the disk fails.
        """
        file, beyond = self.file.file, self.file.first_byte(self.section, first + count)

        def read(number: int, out: NDArray[np.uint8]) -> None:
            place = self.file.first_byte(self.section, first + number)
            ahead = place + _AHEAD_BYTES
            if ahead < beyond:
                file.will_need(ahead, min(out.nbytes, beyond - ahead))
            file.read_into(place, out)

        bad = self.decoder.decode(count, read, points, order, advance)
        file.require_same()
        if bad is not None:
            raise bad_point(self.file.where, self.section, BadPoint(first + bad.index, bad.reason))

    def close(self) -> None:
        self.decoder.close()
