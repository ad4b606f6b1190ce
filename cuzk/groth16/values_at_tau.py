"""The discrete logarithms of all points of a setup: the circuit's polynomials at tau, and the trapdoors.

Symbols    m rows of the domain, L_i(tau) the Lagrange basis at tau, t = tau^m - 1
           A_j, B_j, C_j: sums of coefficient * L_i(tau) over the rows i in which variable j occurs
1 basis    L = inverse transform of (1, tau, tau^2, ...)
2 columns  A, B, C by the transposed circuit
3 scalars  h_i = tau^i t / delta;  l_j, ic_j = (beta A_j + alpha B_j + C_j) / delta or / gamma;
           a_j = A_j, b_j = B_j where the variable occurs
Memory     32 bytes a scalar; at most five vectors of the domain at a time.
Source     bellperson, groth16/generator.rs: the same trapdoors give the same points.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple, dataclass, fields

import numpy as np

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import evaluate_at
from cuzk.errors import UsageError
from cuzk.groth16.parameters.params_file import SectionName
from cuzk.groth16.qap import domain_log2
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.fr_vector import Vector, combine, powers
from cuzk.kernels.modulus import FR
from cuzk.kernels.ntt import intt


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesAtTau:
    """The discrete logarithms of all points, (n, 4) canonical, and what h needs."""

    m: int
    tau: int
    h_first: int  # t / delta
    ic: Vector
    l: Vector  # noqa: E741  the format's own name
    a: Vector
    b: Vector

    @classmethod
    def of(cls, device: CpuDevice, circuit: Circuit, trapdoors: Trapdoors) -> ValuesAtTau:
        """Raises UsageError when tau is a root of the domain, or a variable's point would be the identity."""
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
        del lagrange
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

    def chunks(
        self, device: CpuDevice, section: SectionName, size: int, part: slice = slice(None)
    ) -> Iterator[Vector]:
        """The scalars of a section, or of part of it, in order, at most `size` at a time."""
        scalars = {"h": None, "l": self.l, "a": self.a, "b_g1": self.b, "b_g2": self.b}[section]
        first, last, _ = part.indices(self.m - 1 if scalars is None else len(scalars))
        for begin in range(first, last, size):
            end = min(begin + size, last)
            yield self._of_h(device, begin, end) if scalars is None else scalars[begin:end]

    def _of_h(self, device: CpuDevice, begin: int, end: int) -> Vector:
        return powers(device, self.h_first * pow(self.tau, begin, FR.p) % FR.p, self.tau, end - begin)
