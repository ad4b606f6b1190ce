"""A small circuit with everything a proof needs: a Poseidon hash of two free numbers, its digest an input.

Upstream's figures for it: 314 constraints, domain 512, 313 aux, TOY_PUBLIC_INPUT for the numbers 1 and 2.
"""

from __future__ import annotations

import numpy as np

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.numbers import free_numbers, inputize, to_bits
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.witness import FreeValues

TOY_PUBLIC_INPUT = 0x6D6F8106657F1F4D7BABCBAF436A9D7669C04E726E5896D89317D9833E5FA9BE


def toy_circuit(bits_of_digest: int = 0) -> Circuit:
    """With 255 bits of the digest so many times: of 313 numbers and 255 bits most are numbers, of 510 few."""
    builder = CircuitBuilder("toy")
    digest = poseidon(builder, free_numbers(builder, 2))
    inputize(builder, digest)
    for _ in range(bits_of_digest):
        to_bits(builder, digest)
    return builder.circuit()


def toy_values(*preimage: int) -> FreeValues:
    """The two free numbers; upstream's are 1 and 2."""
    data = b"".join(value.to_bytes(32, "little") for value in preimage or (1, 2))
    return FreeValues(
        numbers=np.frombuffer(data, dtype=np.uint8).reshape(-1, 32), bits=np.zeros(0, dtype=np.uint8)
    )
