"""Development parameters of a circuit from trapdoors. Whoever knows the trapdoors can forge proofs.

Symbols    m rows of the domain, L_i(tau) the Lagrange basis at tau, t = tau^m - 1
           A_j, B_j, C_j: sums of coefficient * L_i(tau) over the rows i in which variable j occurs
1 scalars  L = inverse transform of (1, tau, tau^2, ...); A, B, C by the transposed circuit
2 points   h_i = tau^i t / delta;  l_j, ic_j = (beta A_j + alpha B_j + C_j) / delta or / gamma;
           a_j = A_j, b_j = B_j where the variable occurs: each times a generator, by a fixed-base table
3 file     encoded in chunks on all threads or a GPU, written by another thread meanwhile
Cost       10.2 M points of G1 and 0.7 M of G2 for the smallest PoRep circuit, 15 batched additions each.
Source     bellperson, groth16/generator.rs: the same trapdoors give the same bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import evaluate_at
from cuzk.errors import UsageError
from cuzk.events import OnEvent, ignore, stage
from cuzk.groth16.parameters import SectionName
from cuzk.groth16.qap import domain_log2, point_counts
from cuzk.groth16.verifying_key import VerifyingKey
from cuzk.groth16.writer import ParameterWriter, prepare_folder
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.fixed_base import FixedBase
from cuzk.kernels.fr_vector import Vector, combine, from_integers, powers
from cuzk.kernels.modulus import FR
from cuzk.kernels.ntt import intt

if TYPE_CHECKING:
    from cuzk.kernels.device.cuda import CudaDevice

_CHUNK = 1 << 17  # points between two writes: 12.6 MB of G1, 0.1 s of work


@dataclass(frozen=True, slots=True, kw_only=True)
class Trapdoors:
    """The secrets of a setup, each in [1, r), with tau outside every domain of rows."""

    alpha: int
    beta: int
    gamma: int
    delta: int
    tau: int

    def __post_init__(self) -> None:
        bad = [name for name, value in asdict(self).items() if not 0 < value < FR.p]
        if bad:
            raise UsageError(
                f"not in [1, r): {', '.join(bad)}",
                where="trapdoors",
                next="give five integers from 1 to r - 1, or none for random ones",
            )

    @classmethod
    def of(cls, values: Iterable[int]) -> Trapdoors:
        """alpha, beta, gamma, delta, tau in this order."""
        return cls(**dict(zip((field.name for field in fields(cls)), values, strict=True)))

    @classmethod
    def random(cls) -> Trapdoors:
        """From the operating system's generator."""
        return cls.of(1 + secrets.randbelow(FR.p - 1) for _ in range(5))


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

    gpu    computes the points; without one, `device` does, which computes the scalars in either case
    given  whether the user chose the trapdoors: then the mark may hold them; random ones are forgotten
    Raises ResourceError when the disk has no room, UsageError when tau is a root of the domain.
    """
    counts = point_counts(circuit)
    prepare_folder(folder, counts)
    with stage(on_event, "values at tau"):
        values = _ValuesAtTau.of(device, circuit, trapdoors)
    with ExitStack() as opened:
        with stage(on_event, "fixed-base table of G1"):
            g1 = opened.enter_context(closing(_multiples(device, gpu, 1, len(values.l) + values.m)))
        with closing(_multiples(device, gpu, 2, 3)) as g2:
            key = _verifying_key(g1, g2, values, trapdoors)
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
            sections.write("h", counts.h, values.h_chunks(device))
            sections.write("l", counts.l, _chunks(values.l))
            sections.write("a", counts.a, _chunks(values.a))
            sections.write("b_g1", counts.b, _chunks(values.b))
        g1.close()  # the other table finds its memory free
        g2 = opened.enter_context(closing(_multiples(device, gpu, 2, counts.b)))
        with _Sections(writer, g2, on_event) as sections:
            sections.write("b_g2", counts.b, _chunks(values.b))
    return writer.path


@dataclass(frozen=True, slots=True, kw_only=True)
class _ValuesAtTau:
    """The discrete logarithms of all points, (n, 4) canonical, and what h needs."""

    m: int
    tau: int
    h_first: int  # t / delta
    ic: Vector
    l: Vector  # noqa: E741  the format's own name
    a: Vector
    b: Vector

    @classmethod
    def of(cls, device: CpuDevice, circuit: Circuit, trapdoors: Trapdoors) -> _ValuesAtTau:
        alpha, beta, gamma, delta, tau = astuple(trapdoors)
        m = 1 << domain_log2(circuit)
        t = (pow(tau, m, FR.p) - 1) % FR.p
        if t == 0:
            raise UsageError(
                "tau is a root of the domain of rows", where="trapdoors", next="choose another tau"
            )
        lagrange = powers(device, 1, tau, m)
        intt(device, lagrange)
        a, b, c = evaluate_at(device, circuit, lagrange)
        inputs, inverse_delta = circuit.num_inputs, pow(delta, -1, FR.p)
        ext = {
            name: combine(
                device, (beta * inverse % FR.p, alpha * inverse % FR.p, inverse), a[part], b[part], c[part]
            )
            for name, part, inverse in (
                ("ic", slice(None, inputs), pow(gamma, -1, FR.p)),
                ("l", slice(inputs, None), inverse_delta),
            )
        }
        if not (ext["l"].any(axis=1).all() and ext["ic"].any(axis=1).all()):
            raise UsageError(
                "a variable's point is the identity", where="trapdoors", next="choose other trapdoors"
            )
        occurs_in_a = np.concatenate([np.ones(inputs, bool), circuit.a_aux_density])
        return cls(
            m=m, tau=tau, h_first=t * inverse_delta % FR.p, **ext, a=a[occurs_in_a], b=b[circuit.occurs(1)]
        )

    def h_chunks(self, device: CpuDevice) -> Iterator[Vector]:
        for begin in range(0, self.m - 1, _CHUNK):
            first = self.h_first * pow(self.tau, begin, FR.p) % FR.p
            yield powers(device, first, self.tau, min(_CHUNK, self.m - 1 - begin))


def _chunks(values: Vector) -> Iterator[Vector]:
    for begin in range(0, len(values), _CHUNK):
        yield values[begin : begin + _CHUNK]


class _Multiples(Protocol):
    """Multiples of a group's generator: `FixedBase`, or `GpuFixedBase`."""

    def encoded(self, scalars: Vector) -> NDArray[np.uint8]:
        """Encodings of scalars[i] * G, at most `_CHUNK`; they hold until the call after the next."""

    def close(self) -> None:
        """Give back the memory, that of encodings too."""


def _multiples(device: CpuDevice, gpu: CudaDevice | None, group: int, count: int) -> _Multiples:
    """For `count` scalars in all, in G1 or G2."""
    if gpu is None:
        return FixedBase(device, device.g1 if group == 1 else device.g2, count)
    from cuzk.kernels.fixed_base_gpu import GpuFixedBase  # needs numba-cuda

    return GpuFixedBase(gpu, FQ_GPU if group == 1 else FQ2_GPU, count, min(count, _CHUNK))


def _verifying_key(
    g1: _Multiples, g2: _Multiples, values: _ValuesAtTau, trapdoors: Trapdoors
) -> VerifyingKey:
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

    def __init__(self, writer: ParameterWriter, multiples: _Multiples, on_event: OnEvent) -> None:
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
