"""From the values of a circuit's free variables to the values of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.kernels.circuit.instances import Variables, in_words
from cuzk.kernels.circuit.witness import FREE, fill_instances
from cuzk.kernels.device.cpu import CpuDevice


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreeValues:
    """What the free variables hold, in the order of their allocation.

    numbers  (n, 32) uint8, little-endian, canonical
    bits     (m,) uint8
    """

    numbers: NDArray[np.uint8]
    bits: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assignment:
    """The values of all variables.

    values      (num_inputs + k, 4) uint64, canonical: inputs, ONE first, then the aux that are no bits
    bits        (num_aux,) uint8, 0 where the variable is no bit
    num_inputs  how many of `values` are inputs
    """

    values: NDArray[np.uint64]
    bits: NDArray[np.uint8]
    num_inputs: int

    @property
    def inputs(self) -> NDArray[np.uint64]:
        """(num_inputs, 4), ONE first."""
        return self.values[: self.num_inputs]

    @property
    def variables(self) -> Variables:
        """What kernels read and write."""
        return Variables.of(self.bits, self.values)

    @property
    def full(self) -> NDArray[np.uint64]:
        """(k, 4), the aux variables that are no bits."""
        return self.values[self.num_inputs :]


def witness_kinds(circuit: Circuit) -> NDArray[np.int64]:
    """(instances,) what each one's variables follow from: the kinds of `kernels.circuit.witness`."""
    kinds = np.array([template.witness.kind for template in circuit.templates])
    of_instances: NDArray[np.int64] = kinds[circuit.instances.table["template"]]
    return of_instances


def assign(device: CpuDevice, circuit: Circuit, free: FreeValues) -> Assignment:
    """The whole assignment; strands run in parallel, each in the order of its instances."""
    assignment = Assignment(
        values=np.zeros((circuit.num_inputs + circuit.num_full, 4), dtype=np.uint64),
        bits=np.zeros(circuit.num_aux, dtype=np.uint8),
        num_inputs=circuit.num_inputs,
    )
    assignment.values[0, 0] = 1
    place_free(circuit, free, assignment)
    tables = in_words(circuit.flat_templates), in_words(circuit.instances)

    def fill(strand: int) -> None:
        begin, end = circuit.strands[strand : strand + 2]
        fill_instances(*tables, begin, end, assignment.variables)

    fill(0)
    device.map(fill, range(1, len(circuit.strands) - 1))
    return assignment


def place_free(circuit: Circuit, free: FreeValues, assignment: Assignment) -> None:
    """Puts the free values where the circuit allocated them."""
    numbers, bits = free_places(circuit)
    assert (len(numbers), len(bits)) == (len(free.numbers), len(free.bits)), circuit.name
    assignment.values[numbers] = np.ascontiguousarray(free.numbers).view(np.uint64).reshape(-1, 4)
    assignment.bits[bits] = free.bits


def free_counts(circuit: Circuit) -> tuple[int, int]:
    """How many numbers and bits are free, without a look at where."""
    counts = zip(circuit.templates, circuit.instance_counts.tolist(), strict=True)
    free = [(len(one.full), one.aux, count) for one, count in counts if one.witness.kind == FREE]
    numbers = sum(full * count for full, _, count in free)
    return numbers, sum(aux * count for _, aux, count in free) - numbers


def free_places(circuit: Circuit) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Where free numbers are in `Assignment.values` and free bits in its `bits`: ascending, as given."""
    table, numbers, bits = circuit.instances.table, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, template in enumerate(circuit.templates):
        if template.witness.kind == FREE:
            own = table[circuit.instances_of(number)]
            numbers.append((own["first_value"][:, None] + np.arange(len(template.full))).ravel())
            bits.append((own["first_aux"][:, None] + np.flatnonzero(template.aux_is_bit)).ravel())
    return _ascending(numbers), _ascending(bits)


def _ascending(parts: list[NDArray[np.int64]]) -> NDArray[np.uint32]:
    return np.sort(np.concatenate(parts).astype(np.uint32))
