"""Development parameters that live on the card of one process and never on a disk: for tests and benchmarks.

1 scalars  the discrete logarithms of all points, on the host: `values_at_tau`
2 key      the few points of the verifying key
3 points   each section by a fixed-base table, straight into the rows where a prover looks for them
Cost       32 bytes a scalar over the bus, 15 batched additions a point: some 5 ns each in G1.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.circuit.builder import Circuit
from cuzk.groth16.generate import key_alone
from cuzk.groth16.gpu.card_plan import form_of
from cuzk.groth16.gpu.points_on_card import SectionReader
from cuzk.groth16.parameters.params_file import PointCounts, SectionName
from cuzk.groth16.parameters.verifying_key import VerifyingKey
from cuzk.groth16.qap import point_counts
from cuzk.groth16.values_at_tau import Trapdoors, ValuesAtTau
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu.fixed_base import GpuFixedBase, fixed_base_layout
from cuzk.kernels.gpu.points import NATURAL_ORDER, Advance, GpuPoints

_BATCH = 1 << 20
"""Points at a time: 15 launches of some 0.3 ms each, 0.5 GB of working memory in G2."""


@dataclass(slots=True, kw_only=True, eq=False)
class EphemeralParameters:
    """What a `ParameterFile` tells, and its points from their discrete logarithms.

    values  32 bytes a point on the host: 12 GB for sectors of 32 GiB; None once they were let go
    """

    key: VerifyingKey
    counts: PointCounts
    host: CpuDevice
    values: ValuesAtTau | None

    @property
    def where(self) -> str:
        return "development parameters in memory"

    @classmethod
    def of(
        cls, host: CpuDevice, gpu: CudaDevice, circuit: Circuit, trapdoors: Trapdoors
    ) -> EphemeralParameters:
        """Scalars and key; the points are made when they are asked for."""
        values = ValuesAtTau.of(host, circuit, trapdoors)
        key = key_alone(host, gpu, values, trapdoors)
        return cls(key=key, counts=point_counts(circuit), host=host, values=values)

    def reader(self, device: CudaDevice, section: SectionName, largest: int) -> SectionReader:
        assert self.values is not None, "they were let go"
        multiples = GpuFixedBase(device, form_of(section), self.counts.of(section), min(largest, _BATCH))
        return _Multiples(self.host, self.values, section, multiples)

    def reader_bytes(self, section: SectionName, largest: int, multiprocessors: int) -> int:
        count, most = self.counts.of(section), min(largest, _BATCH)
        return fixed_base_layout(form_of(section), count, most, multiprocessors).nbytes

    def let_go(self) -> None:
        """Free the host's memory, when all sections are on the card."""
        self.values = None


@dataclass(frozen=True, slots=True, eq=False)
class _Multiples:
    """See `points_on_card.SectionReader`: the points are computed, each time again."""

    host: CpuDevice
    values: ValuesAtTau
    section: SectionName
    multiples: GpuFixedBase

    def read(
        self,
        first: int,
        count: int,
        points: GpuPoints,
        advance: Advance,
        order: tuple[int, int, int] = NATURAL_ORDER,
    ) -> None:
        done = 0
        part = slice(first, first + count)
        for scalars in self.values.chunks(self.host, self.section, self.multiples.most, part):
            self.multiples.put(scalars, points, done, order)
            done += len(scalars)
            advance(len(scalars))

    def close(self) -> None:
        self.multiples.close()
