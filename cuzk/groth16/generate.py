"""Development parameters of a circuit from trapdoors. Whoever knows the trapdoors can forge proofs.

1 scalars  the discrete logarithms of all points: `values_at_tau`
2 points   each times a generator, by a fixed-base table
3 file     encoded in chunks on all threads or a GPU, written by another thread meanwhile
Cost       10.2 M points of G1 and 0.7 M of G2 for the smallest PoRep circuit, 15 batched additions each.
Source     bellperson, groth16/generator.rs: the same trapdoors give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.events import OnEvent, ignore, stage
from cuzk.groth16.parameters.params_file import SectionName
from cuzk.groth16.parameters.verifying_key import VerifyingKey
from cuzk.groth16.parameters.writer import ParameterWriter
from cuzk.groth16.qap import point_counts
from cuzk.groth16.values_at_tau import Trapdoors, ValuesAtTau
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.fixed_base import FixedBase
from cuzk.kernels.fr_vector import Vector, from_integers

if TYPE_CHECKING:
    from cuzk.kernels.device.cuda import CudaDevice

_CHUNK = 1 << 17  # points between two writes: 12.6 MB of G1, 0.1 s of work


def generate(
    device: CpuDevice,
    circuit: Circuit,
    trapdoors: Trapdoors,
    *,
    gpu: CudaDevice | None = None,
    folder: Path,
    stem: str,
    sector_bytes: int,
    given: bool,
    on_event: OnEvent = ignore,
) -> Path:
    """Write `stem`.params, .vk, .meta and the development mark into `folder`; the path of .params.

    folder  one that `writer.prepare_folder` has found good
    gpu     computes the points; without one, `device` does, which computes the scalars in either case
    given   whether the user chose the trapdoors: then the mark may hold them; random ones are forgotten
    Raises ResourceError when the disk has no room, UsageError when tau is a root of the domain.
    """
    counts = point_counts(circuit)
    with stage(on_event, "values at tau"):
        values = ValuesAtTau.of(device, circuit, trapdoors)
    with ExitStack() as opened:
        with stage(on_event, "fixed-base table of G1"):
            g1 = opened.enter_context(closing(multiples_of(device, gpu, 1, len(values.l) + values.m)))
        with closing(multiples_of(device, gpu, 2, 3)) as g2:
            key = key_of(g1, g2, values, trapdoors)
        writer = opened.enter_context(
            ParameterWriter(
                folder,
                stem,
                key,
                counts,
                sector_bytes=sector_bytes,
                given_trapdoors=asdict(trapdoors) if given else None,
            )
        )
        with _Sections(writer, g1, on_event) as sections:
            for section in ("h", "l", "a", "b_g1"):
                sections.write(section, counts.of(section), values.chunks(device, section, _CHUNK))
        g1.close()  # the other table finds its memory free
        g2 = opened.enter_context(closing(multiples_of(device, gpu, 2, counts.b)))
        with _Sections(writer, g2, on_event) as sections:
            sections.write("b_g2", counts.b, values.chunks(device, "b_g2", _CHUNK))
    return writer.path


def generate_key(
    device: CpuDevice,
    circuit: Circuit,
    trapdoors: Trapdoors,
    *,
    gpu: CudaDevice | None = None,
    on_event: OnEvent = ignore,
) -> VerifyingKey:
    """The key alone: the logarithms of all points, of which only the key's are made. Raises UsageError."""
    with stage(on_event, "values at tau"):
        values = ValuesAtTau.of(device, circuit, trapdoors)
    with stage(on_event, "key"):
        return key_alone(device, gpu, values, trapdoors)


def key_alone(
    device: CpuDevice, gpu: CudaDevice | None, values: ValuesAtTau, trapdoors: Trapdoors
) -> VerifyingKey:
    """Its points, with tables for no others."""
    with (
        closing(multiples_of(device, gpu, 1, max(len(values.ic), 3))) as g1,
        closing(multiples_of(device, gpu, 2, 3)) as g2,
    ):
        return key_of(g1, g2, values, trapdoors)


class Multiples(Protocol):
    """Multiples of a group's generator: `FixedBase`, or `GpuFixedBase`."""

    def encoded(self, scalars: Vector) -> NDArray[np.uint8]:
        """Encodings of scalars[i] * G, at most `_CHUNK`; they hold until the call after the next."""

    def close(self) -> None:
        """Give back the memory, that of encodings too."""


def multiples_of(device: CpuDevice, gpu: CudaDevice | None, group: int, count: int) -> Multiples:
    """For `count` scalars in all, in G1 or G2."""
    if gpu is None:
        return FixedBase(device, device.g1 if group == 1 else device.g2, count)
    from cuzk.kernels.gpu.fixed_base import GpuFixedBase  # needs numba-cuda

    return GpuFixedBase(gpu, FQ_GPU if group == 1 else FQ2_GPU, count, min(count, _CHUNK))


def key_of(g1: Multiples, g2: Multiples, values: ValuesAtTau, trapdoors: Trapdoors) -> VerifyingKey:
    alpha, beta, gamma, delta, _ = astuple(trapdoors)
    in_g1 = [p.tobytes() for p in g1.encoded(from_integers([alpha, beta, delta]))]
    in_g2 = [p.tobytes() for p in g2.encoded(from_integers([beta, gamma, delta]))]
    return VerifyingKey(
        alpha_g1=in_g1[0],
        beta_g1=in_g1[1],
        beta_g2=in_g2[0],
        gamma_g2=in_g2[1],
        delta_g1=in_g1[2],
        delta_g2=in_g2[2],
        ic=tuple(p.tobytes() for p in g1.encoded(values.ic)),
    )


class _Sections:
    """Computes the chunks of each section of a group while another thread writes the one before.

    On exit nothing is being written any more: the memory of the points may go.
    """

    def __init__(self, writer: ParameterWriter, multiples: Multiples, on_event: OnEvent) -> None:
        self._writer, self._multiples, self._on_event = writer, multiples, on_event
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> _Sections:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if exception[0] is None:
                self._finish_pending()
        finally:
            self._thread.shutdown(wait=True)

    def write(self, section: SectionName, total: int, chunks: Iterator[Vector]) -> None:
        with stage(self._on_event, f"points {section}", total=total, unit="points") as progress:
            done = 0
            for scalars in chunks:
                encoded = self._multiples.encoded(scalars)
                self._finish_pending()
                self._pending = self._thread.submit(self._writer.write, section, encoded)
                done += len(scalars)
                progress(done, total)

    def _finish_pending(self) -> None:
        if self._pending is not None:
            self._pending.result()
