"""Digests that pin down a circuit and an assignment, bit for bit. All are SHA-256, as hex.

r1cs   of all rows in order, in the form of `kernels.circuit.serialize`
lists  of field elements in their 32-byte little-endian encodings
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import Assignment
from cuzk.kernels.circuit.serialize import COUNT_BYTES, TERM_BYTES, serialize_rows
from cuzk.kernels.fr_vector import from_integers


def r1cs_digest(circuit: Circuit, *, strands: int | None = None) -> str:
    """Of all rows; with `strands`, of the first so many strands only, without the rows of the inputs."""
    digest = sha256()
    for rows in serialized_rows(circuit, circuit.strands[-1 if strands is None else strands]):
        digest.update(rows.data)
    if strands is None:
        digest.update(input_rows(circuit.num_inputs))
    return digest.hexdigest()


def serialized_rows(circuit: Circuit, instances: int) -> Iterator[NDArray[np.uint8]]:
    """The rows of each of the first so many instances, as bytes; each takes the place of the one before."""
    table = circuit.instances.table
    coefficients = [from_integers(template.values).view(np.uint8) for template in circuit.templates]
    longest = max(TERM_BYTES * len(t.slots) + COUNT_BYTES * len(t.ends) for t in circuit.templates)
    out = np.empty(longest, dtype=np.uint8)
    for i in range(instances):
        number = table["template"][i]
        template = circuit.templates[number]
        size = serialize_rows(
            template.ends,
            template.slots,
            template.coefficients,
            coefficients[number],
            variables_of(circuit, i),
            circuit.num_inputs,
            out,
        )
        yield out[:size]


def variables_of(circuit: Circuit, i: int) -> NDArray[np.int64]:
    """(slots,) the variable of each slot of instance i."""
    externals = circuit.instances
    number, _, first_aux, _, bits, numbers = externals.table[i].tolist()
    template = circuit.templates[number]
    own = circuit.num_inputs + first_aux
    return np.concatenate(
        [
            np.zeros(1, dtype=np.int64),
            circuit.num_inputs
            + externals.external_bits[bits : bits + template.external_bits].astype(np.int64),
            externals.external_numbers[numbers : numbers + template.external_numbers].astype(np.int64),
            np.arange(own, own + template.aux),
        ]
    )


def input_rows(num_inputs: int) -> bytes:
    """The rows (input i) * {} = {}."""
    one = (1).to_bytes(32, "little")
    count, none = (1).to_bytes(4, "little"), (0).to_bytes(4, "little")
    return b"".join(count + b"\0" + i.to_bytes(4, "little") + one + none + none for i in range(num_inputs))


def list_digest(elements: NDArray[np.uint64]) -> str:
    """Of (n, 4) uint64 canonical field elements."""
    return sha256(np.ascontiguousarray(elements).data).hexdigest()


def aux_digest(circuit: Circuit, assignment: Assignment, *, block: int = 1 << 20) -> str:
    """Of the values of all aux variables."""
    digest, first = sha256(), 0
    is_full = np.unpackbits(circuit.full, count=circuit.num_inputs + circuit.num_aux).view(np.bool_)
    for begin in range(0, circuit.num_aux, block):
        chosen = is_full[circuit.num_inputs + begin :][:block]
        values = np.zeros((len(chosen), 4), dtype=np.uint64)
        values[:, 0] = assignment.bits[begin : begin + block]
        last = first + int(np.count_nonzero(chosen))
        values[chosen] = assignment.full[first:last]
        digest.update(values.data)
        first = last
    return digest.hexdigest()
