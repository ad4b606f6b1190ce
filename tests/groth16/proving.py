"""Proofs with the randomness of those that upstream made."""

from __future__ import annotations

from typing import Any

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import FreeValues
from cuzk.groth16.parameters.params_file import Parameters
from cuzk.groth16.proof import Proof
from cuzk.groth16.prove import Randomizers, prove
from cuzk.groth16.target import Target

UPSTREAMS = Randomizers(r=13, s=17)


def upstreams_proof(
    target: Target, parameters: Parameters, circuit: Circuit, free: FreeValues, public_inputs: Any
) -> Proof:
    """Verified, or there would be none."""
    assignment = target.assign(circuit, free)
    return prove(target, parameters, circuit, assignment, UPSTREAMS, public_inputs=public_inputs)
