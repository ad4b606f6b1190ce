"""A circuit by plain ints: assignments as one list, rows one term at a time. For small circuits in tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.digest import aux_digest, list_digest, variables_of
from cuzk.circuit.rows import evaluate_rows, evaluate_side, unsatisfied_row
from cuzk.circuit.witness import Assignment, FreeValues, assign
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.modulus import FR

DEVICE = CpuDevice(threads=2)


def free(numbers: Sequence[int] = (), bits: Sequence[int] = ()) -> FreeValues:
    data = bytearray(b"".join(value.to_bytes(32, "little") for value in numbers))
    return FreeValues(
        numbers=np.frombuffer(data, dtype=np.uint8).reshape(-1, 32), bits=np.array(bits, dtype=np.uint8)
    )


def solve(
    builder: CircuitBuilder, numbers: Sequence[int] = (), bits: Sequence[int] = ()
) -> tuple[Circuit, Assignment]:
    circuit = builder.circuit()
    return circuit, assign(DEVICE, circuit, free(numbers, bits))


def satisfying(circuit: Circuit, given: FreeValues) -> tuple[Assignment, dict[str, Any]]:
    """The assignment of these values, which satisfies every row, and what upstream prints of one."""
    assignment = assign(DEVICE, circuit, given)
    a, b = evaluate_rows(DEVICE, circuit, assignment)
    c = evaluate_side(DEVICE, circuit, assignment, 2)
    assert unsatisfied_row(DEVICE, circuit, a, b, c) is None
    return assignment, {
        "inputs_digest": list_digest(assignment.inputs),
        "aux_digest": aux_digest(circuit, assignment),
        "a_digest": list_digest(a),
        "b_digest": list_digest(b),
        "c_digest": list_digest(c),
        "public_inputs": [row.tobytes().hex() for row in assignment.inputs[1:]],
    }


def aux_is_full(circuit: Circuit) -> NDArray[np.bool_]:
    """(aux,) which aux variables are numbers, no bits."""
    return np.unpackbits(circuit.full, count=circuit.num_inputs + circuit.num_aux)[circuit.num_inputs :] > 0


def density(circuit: Circuit) -> tuple[int, int]:
    """How many aux variables occur in A, how many in B."""
    a, b = (int(circuit.occurs(side)[circuit.num_inputs :].sum()) for side in (0, 1))
    return a, b


def ints(elements: NDArray[np.uint64]) -> list[int]:
    """(n, 4) uint64 as ints."""
    data = np.ascontiguousarray(elements).tobytes()
    return [int.from_bytes(data[i : i + 32], "little") for i in range(0, len(data), 32)]


def variables(circuit: Circuit, assignment: Assignment) -> list[int]:
    """The value of every variable, inputs first."""
    values = ints(assignment.inputs) + [int(bit) for bit in assignment.bits]
    full = np.flatnonzero(aux_is_full(circuit)).tolist()
    for place, value in zip(full, ints(assignment.full), strict=True):
        values[circuit.num_inputs + place] = value
    return values


def matrix_rows(circuit: Circuit) -> list[list[dict[int, int]]]:
    """A, B, C of every row, each {variable: coefficient}, the inputs' rows included."""
    rows = []
    for i, number in enumerate(circuit.instances.table["template"]):
        template, names = circuit.templates[number], variables_of(circuit, i)
        begin = 0
        sides = []
        for end in template.ends.tolist():
            terms = zip(template.slots[begin:end], template.coefficients[begin:end], strict=True)
            sides.append({int(names[slot]): template.values[number] for slot, number in terms})
            begin = end
        rows += [sides[at : at + 3] for at in range(0, len(sides), 3)]
    return rows + [[{i: 1}, {}, {}] for i in range(circuit.num_inputs)]


def row_values(circuit: Circuit, values: Sequence[int], side: int) -> list[int]:
    return [
        sum(factor * values[variable] for variable, factor in row[side].items()) % FR.p
        for row in matrix_rows(circuit)
    ]
