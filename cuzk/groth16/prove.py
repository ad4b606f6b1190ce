"""One partition: from its circuit, assignment and parameters to a proof that has been verified.

    A = alpha + sum z_j a_j + r delta                                              in G1
    B = beta  + sum z_j b_j + s delta                                              in G2, and B' in G1
    C = sum z_j l_j (aux) + sum h_i H_i + s A + r B' - r s delta                   in G1

1 rows      a = A.z, b = B.z; c is their product                     `circuit.rows`
2 quotient  the coefficients h_i of (a b - c) / (X^m - 1)            six transforms, `ntt.quotient`
3 sums      H over full scalars; L, A, B mostly over bits            `msm`, `selected_sum`
4 assemble  with r, s from the operating system, encode, verify
Memory      one arena serves the transforms and the point rows of all sums, slice by slice, in turn.
Source      [Groth16] eprint 2016/260, section 3.2; bellperson, groth16/prover/native.rs.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import evaluate_rows
from cuzk.circuit.witness import Assignment
from cuzk.errors import ProofError
from cuzk.events import OnEvent, ignore, stage
from cuzk.groth16.encoding import decode_g1, decode_g2, g1_of_coordinates, g2_of_coordinates
from cuzk.groth16.parameters import ParameterFile, PointCounts, SectionName
from cuzk.groth16.point_rows import PointRows, slices
from cuzk.groth16.proof import Proof
from cuzk.groth16.qap import domain_log2
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.fr_vector import Vector
from cuzk.kernels.modulus import FR
from cuzk.kernels.msm import msm
from cuzk.kernels.msm import scratch_rows as msm_scratch_rows
from cuzk.kernels.ntt import quotient
from cuzk.kernels.selected_sum import mostly_bits_sum
from cuzk.kernels.selected_sum import scratch_rows as bits_scratch_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomizers:
    """r and s of a proof: they hide the witness, so they must be fresh for every proof and forgotten."""

    r: int
    s: int

    @classmethod
    def fresh(cls) -> Randomizers:
        return cls(r=secrets.randbelow(FR.p), s=secrets.randbelow(FR.p))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """What multiplies the points of one section: bits for most of them, full scalars for a few.

    bits          (n,) uint8, 0 where the scalar is full
    full_index    (k,) uint32, ascending
    full_scalars  (k, 4) uint64, canonical
    """

    bits: NDArray[np.uint8]
    full_index: NDArray[np.uint32]
    full_scalars: Vector

    def part(self, part: slice) -> Query:
        """The query of a slice of the points."""
        first, last = np.searchsorted(self.full_index, [part.start, part.stop])
        return Query(
            bits=self.bits[part],
            full_index=self.full_index[first:last] - np.uint32(part.start),
            full_scalars=self.full_scalars[first:last],
        )


def query(
    circuit: Circuit, assignment: Assignment, inputs: NDArray[np.bool_], aux: NDArray[np.bool_]
) -> Query:
    """The scalars of a section that has points for these inputs, then for these aux variables."""
    chosen_inputs = assignment.inputs[inputs]
    full_chosen = aux[circuit.full_aux]
    place_of_aux = np.cumsum(aux) - 1 + len(chosen_inputs)
    return Query(
        bits=np.concatenate([np.zeros(len(chosen_inputs), np.uint8), assignment.bits[aux]]),
        full_index=np.concatenate(
            [np.arange(len(chosen_inputs)), place_of_aux[circuit.full_aux[full_chosen]]]
        ).astype(np.uint32),
        full_scalars=np.concatenate([chosen_inputs, assignment.full[full_chosen]]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The five sums of a proof, before randomisation."""

    h: G1Point
    l: G1Point  # noqa: E741  the section's own name
    a: G1Point
    b_g1: G1Point
    b_g2: G2Point


def transform_words(counts: PointCounts) -> int:
    """uint64 of the arena that rows and transforms use: three vectors of the domain."""
    return 3 * (counts.h + 1) * 4


def prove(
    device: CpuDevice,
    parameters: ParameterFile,
    points: PointRows,
    circuit: Circuit,
    assignment: Assignment,
    randomizers: Randomizers,
    *,
    public_inputs: Vector,
    on_event: OnEvent = ignore,
    where: str = "partition 0",
) -> Proof:
    """The verified proof of one partition.

    points         decodes the sections of `parameters`; checks them at their first use
    public_inputs  (n, 4) without ONE, from the statement, not the assignment: what a verifier will use
    Raises ParameterError for a bad point, ProofError when the proof does not verify: it is not returned.
    """
    with stage(on_event, "rows"):
        m = 1 << domain_log2(circuit)
        a = aligned_empty(m, 4)
        b, *scratch = points.arena.take((m, 4), (m, 4), (m, 4))
        evaluate_rows(device, circuit, assignment, out=(a, b))
    with stage(on_event, "transforms"):
        h = quotient(device, a, b, scratch=scratch)
    sums = _sums(device, points, circuit, assignment, h, on_event)
    with stage(on_event, "verify"):
        proof = assemble(parameters, sums, randomizers)
        if not Verifier(parameters.key).verify_partition(public_inputs, proof):
            raise ProofError(
                "the proof does not verify and was thrown away",
                where=where,
                next=f"check {parameters.path} with `cuzk params verify` and C1 with `cuzk circuit digest "
                "--check`; if both are good, this is a fault of cuzk: please report it",
            )
    return proof


def _sums(
    device: CpuDevice,
    points: PointRows,
    circuit: Circuit,
    assignment: Assignment,
    h: Vector,
    on_event: OnEvent,
) -> Sums:
    all_inputs, no_inputs = np.ones(circuit.num_inputs, bool), np.zeros(circuit.num_inputs, bool)
    all_aux = np.ones(circuit.num_aux, bool)
    b_inputs = circuit.occurs(1)[: circuit.num_inputs]
    l_query = query(circuit, assignment, no_inputs, all_aux)
    a_query = query(circuit, assignment, all_inputs, circuit.a_aux_density)
    b_query = query(circuit, assignment, b_inputs, circuit.b_aux_density)

    def over_slices(section: SectionName, form: Any, count: int, sum_of: Callable[[slice], Any]) -> Any:
        total: Any = G1Point.identity() if form.degree == 1 else G2Point.identity()
        of_coordinates = g1_of_coordinates if form.degree == 1 else g2_of_coordinates
        with stage(on_event, f"sum {section}", total=count, unit="points") as progress:
            for part in slices(count):
                total += of_coordinates(sum_of(part))
                progress(part.stop, count)
        return total

    def over_scalars(part: slice) -> Any:
        spare = msm_scratch_rows(device, device.g1, part.stop - part.start)
        return msm(device, device.g1, points.decoded("h", device.g1, part, spare), h[part])

    def over_bits(section: SectionName, form: Any, whole: Query) -> Any:
        def sum_of(part: slice) -> Any:
            q = whole.part(part)
            rows = points.decoded(
                section, form, part, bits_scratch_rows(device, form, len(q.bits), len(q.full_index))
            )
            return mostly_bits_sum(device, form, rows, q.bits, q.full_index, q.full_scalars)

        return over_slices(section, form, len(whole.bits), sum_of)

    return Sums(
        h=over_slices("h", device.g1, len(h), over_scalars),
        l=over_bits("l", device.g1, l_query),
        a=over_bits("a", device.g1, a_query),
        b_g1=over_bits("b_g1", device.g1, b_query),
        b_g2=over_bits("b_g2", device.g2, b_query),
    )


def assemble(parameters: ParameterFile, sums: Sums, randomizers: Randomizers) -> Proof:
    """A, B and C from the sums; the random terms make the proof independent of the witness."""
    key = parameters.key
    r, s = Scalar(randomizers.r), Scalar(randomizers.s)
    delta_g1 = decode_g1(key.delta_g1)
    a = decode_g1(key.alpha_g1) + sums.a + delta_g1 * r
    b_g1 = decode_g1(key.beta_g1) + sums.b_g1 + delta_g1 * s
    b_g2 = decode_g2(key.beta_g2) + sums.b_g2 + decode_g2(key.delta_g2) * s
    c = sums.l + sums.h + a * s + b_g1 * r - delta_g1 * r * s
    return Proof.from_points(a, b_g2, c)
