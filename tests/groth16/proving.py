"""Proofs with the randomness of those that upstream made."""

from __future__ import annotations

from typing import Any

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import FreeValues
from cuzk.events import OnEvent, ignore
from cuzk.groth16.parameters.params_file import Parameters
from cuzk.groth16.proof import Proof
from cuzk.groth16.prove import Randomizers, compute, finish
from cuzk.groth16.target import Target

UPSTREAMS = Randomizers(r=13, s=17)


def proven(
    target: Target,
    parameters: Parameters,
    circuit: Circuit,
    assignment: Any,
    randomizers: Randomizers,
    *,
    public_inputs: Any,
    check: bool = False,
    on_event: OnEvent = ignore,
    where: str = "partition 0",
) -> Proof:
    """Verified, or there would be none."""
    ends = compute(target, parameters, circuit, assignment, check=check, on_event=on_event, where=where)
    return finish(parameters, ends, randomizers, public_inputs=public_inputs, on_event=on_event, where=where)


def upstreams_proof(
    target: Target, parameters: Parameters, circuit: Circuit, free: FreeValues, public_inputs: Any
) -> Proof:
    assignment = target.assign(circuit, free)
    return proven(target, parameters, circuit, assignment, UPSTREAMS, public_inputs=public_inputs)
