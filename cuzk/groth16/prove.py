"""One partition: from its circuit, assignment and parameters to a proof that has been verified.

    A = alpha + sum z_j a_j + r delta                                              in G1
    B = beta  + sum z_j b_j + s delta                                              in G2, and B' in G1
    C = sum z_j l_j (aux) + sum h_i H_i + s A + r B' - r s delta                   in G1

1 rows      a = A.z, b = B.z; c is their product                     `circuit.rows`
2 quotient  the coefficients h_i of (a b - c) / (X^m - 1)            six transforms
3 sums      H over full scalars; L, A, B mostly over bits            `query`
4 assemble  with r, s from the operating system, encode, verify
All but the last is computed by a `target`: the CPU or a GPU.
Source      [Groth16] eprint 2016/260, section 3.2; bellperson, groth16/prover/native.rs.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzk.circuit.builder import Circuit
from cuzk.errors import ProofError
from cuzk.events import OnEvent, ignore, stage
from cuzk.groth16.parameters.params_file import SECTIONS, Parameters, SectionName
from cuzk.groth16.proof import Proof
from cuzk.groth16.target import Pending, Target
from cuzk.groth16.verify import Verifier
from cuzk.kernels.fr_vector import Vector
from cuzk.kernels.modulus import FR
from cuzk.kernels.ntt import TRANSFORMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomizers:
    """r and s of a proof: they hide the witness, so they must be fresh for every proof and forgotten."""

    r: int
    s: int

    @classmethod
    def fresh(cls) -> Randomizers:
        return cls(r=secrets.randbelow(FR.p), s=secrets.randbelow(FR.p))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The five sums of a proof, before randomisation."""

    h: G1Point
    l: G1Point  # noqa: E741  the section's own name
    a: G1Point
    b_g1: G1Point
    b_g2: G2Point


def compute(
    target: Target,
    parameters: Parameters,
    circuit: Circuit,
    assignment: Any,
    *,
    check: bool = False,
    on_event: OnEvent = ignore,
    where: str = "partition 0",
) -> Callable[[], Sums]:
    """All that a target does for a proof, once its points are loaded. What comes back is for `finish`.

    target      of the same parameters
    assignment  of `target.assign`
    check       also evaluate every row's equation, before the sums
    Raises ParameterError for a bad point; with `check` ProofError, which names the first row that fails.
    """
    target.loaded()
    if check:
        with stage(on_event, "check of the rows"):
            _require_satisfied(target.unsatisfied_row(circuit, assignment), where)
    return begin_proof(target, parameters, circuit, assignment, on_event=on_event)


def finish(
    parameters: Parameters,
    ends: Callable[[], Sums],
    randomizers: Randomizers,
    *,
    public_inputs: Vector,
    on_event: OnEvent = ignore,
    where: str = "partition 0",
) -> Proof:
    """The verified proof. The host alone does that: the target may compute the next one meanwhile.

    public_inputs  (n, 4) without ONE, from the statement, not the assignment: what a verifier will use
    Raises ProofError when the proof does not verify: it is not returned.
    """
    with stage(on_event, "finish"):
        proof = assemble(parameters, ends(), randomizers)
    with stage(on_event, "verify"):
        if not Verifier(parameters.key).verify_partition(public_inputs, proof):
            raise ProofError(
                "the proof does not verify and was thrown away",
                where=where,
                next=f"check {parameters.where} with `cuzk params verify` and C1 with `cuzk circuit digest "
                "--check`; if both are good, this is a fault of cuzk: please report it",
            )
    return proof


def _require_satisfied(unsatisfied: tuple[int, str] | None, where: str) -> None:
    if unsatisfied is not None:
        row, gadget = unsatisfied
        raise ProofError(
            "a row of the circuit does not hold, and no proof was made",
            where=f"{where}, row {row:,}: {gadget}",
            next="check C1 with `cuzk sector inspect`: if it is good, this is a fault of cuzk; report it",
        )


def begin_proof(
    target: Target,
    parameters: Parameters,
    circuit: Circuit,
    assignment: Any,
    *,
    on_event: OnEvent = ignore,
) -> Callable[[], Sums]:
    """All that a target does for a proof. What comes back ends the sums on the host: the target is free."""
    with stage(on_event, "rows"):
        rows = target.rows(circuit, assignment)
    with stage(on_event, "transforms", total=TRANSFORMS, unit="transforms") as progress:
        h = target.quotient(rows, progress)
    over_variables = begin_sums(target, circuit, assignment)
    with stage(on_event, "sum h", total=parameters.counts.h, unit="points") as progress:
        ends = {"h": target.sum_of_h(h, progress)}
    for section, pending in over_variables.items():
        total = parameters.counts.of(section)
        with stage(on_event, f"sum {section}", total=total, unit="points") as progress:
            ends[section] = pending(progress)
    return lambda: Sums(**{section: end() for section, end in ends.items()})


def begin_sums(target: Target, circuit: Circuit, assignment: Any) -> dict[SectionName, Pending]:
    """L, A and B: a target that is not the CPU computes them while the host waits for another."""
    return {section: target.sum_over(section, circuit, assignment) for section, _ in SECTIONS[1:]}


def assemble(parameters: Parameters, sums: Sums, randomizers: Randomizers) -> Proof:
    """A, B and C from the sums; the random terms make the proof independent of the witness.

    Those of C, s A + r B' - r s delta, are (alpha + sum a) s + (beta + sum b') r + delta r s, one sum.
    """
    key = parameters.key.points
    r, s = Scalar(randomizers.r), Scalar(randomizers.s)
    a = key.alpha_g1 + sums.a + key.delta_g1 * r
    b_g2 = key.beta_g2 + sums.b_g2 + key.delta_g2 * s
    hiding = [key.alpha_g1 + sums.a, key.beta_g1 + sums.b_g1, key.delta_g1]
    c = sums.l + sums.h + G1Point.multiexp_unchecked(hiding, [s, r, r * s])
    return Proof.from_points(a, b_g2, c)
