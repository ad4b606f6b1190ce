"""Rows of a circuit: A.z, B.z and C.z under an assignment, whether they are satisfied, and the transpose."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import Assignment
from cuzk.kernels.circuit.instances import in_words
from cuzk.kernels.circuit.template_rows import (
    add_externals,
    evaluate_instances,
    first_unsatisfied,
    transpose_instances,
)
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.field_type import FR

FieldArray = NDArray[np.uint64]

A, B, C = 0, 1, 2

ROWS_A_TASK = 1 << 17
"""About 5 ms of work, far above the cost of handing it out."""

ROWS_A_BATCH = 1 << 22
"""The transpose merges externals after so many rows: their buffers stay below 20 MB."""


def evaluate_rows(
    device: CpuDevice,
    circuit: Circuit,
    assignment: Assignment,
    *,
    out: tuple[FieldArray, FieldArray] | None = None,
) -> tuple[FieldArray, FieldArray]:
    """A.z and B.z, as `evaluate_side` gives them. If the rows are satisfied, C.z is their product."""
    a, b = (None, None) if out is None else out
    return (
        evaluate_side(device, circuit, assignment, A, out=a),
        evaluate_side(device, circuit, assignment, B, out=b),
    )


def evaluate_side(
    device: CpuDevice, circuit: Circuit, assignment: Assignment, side: int, *, out: FieldArray | None = None
) -> FieldArray:
    """A.z, B.z or C.z: (num_constraints, 4) canonical.

    `out` is filled instead of a new array, and may have more rows, which become 0. A new array costs more
    time than the rows: its pages are touched for the first time.
    """
    if out is None:
        out = np.empty((circuit.num_constraints, 4), dtype=np.uint64)
    out[circuit.rows :] = 0
    if side == A:
        out[circuit.rows : circuit.num_constraints] = assignment.inputs
    tables = in_words(circuit.flat_templates), in_words(circuit.instances)

    def evaluate(task: tuple[int, int], out: FieldArray = out) -> None:
        evaluate_instances(FR, *tables, *task, side, assignment.variables, out)

    device.map(evaluate, tasks(circuit, 0, len(circuit.instances.table)))
    return out


def tasks(circuit: Circuit, begin: int, end: int, rows: int = ROWS_A_TASK) -> Iterator[tuple[int, int]]:
    """Ranges of instances that cover begin..end-1, of about so many rows each."""
    first_row = circuit.instances.table["first_row"]
    marks = np.arange(first_row[begin], first_row[end - 1] + 1, rows)[1:]
    cuts = np.unique(np.searchsorted(first_row[begin:end], marks)) + begin
    return pairwise([begin, *(int(cut) for cut in cuts if begin < cut < end), end])


def unsatisfied_row(
    device: CpuDevice, circuit: Circuit, a: FieldArray, b: FieldArray, c: FieldArray
) -> tuple[int, str] | None:
    """The first row whose a * b is not c, and its name; None if all are satisfied."""
    count = circuit.num_constraints
    starts = range(0, count, ROWS_A_TASK)
    found = device.map(
        lambda start: int(first_unsatisfied(FR, a, b, c, start, min(start + ROWS_A_TASK, count))), starts
    )
    row = next((row for row in found if row >= 0), None)
    return None if row is None else (row, circuit.name_of_row(row))


def evaluate_at(device: CpuDevice, circuit: Circuit, lagrange: FieldArray) -> tuple[FieldArray, ...]:
    """A_j, B_j and C_j of every variable j: the sums of coefficient * lagrange[row] over the rows.

    `lagrange` is (num_constraints or more, 4) canonical, and so are the three results:
    (num_inputs + num_aux, 4), inputs first.
    """
    return tuple(transpose_side(device, circuit, lagrange, side) for side in (A, B, C))


def transpose_side(device: CpuDevice, circuit: Circuit, lagrange: FieldArray, side: int) -> FieldArray:
    """One of the three results of `evaluate_at`."""
    out = np.zeros((circuit.num_inputs + circuit.num_aux, 4), dtype=np.uint64)
    own = out[circuit.num_inputs :]
    if side == A:
        out[: circuit.num_inputs] = lagrange[circuit.rows : circuit.num_constraints]
    templates, instances = in_words(circuit.flat_templates), in_words(circuit.instances)
    slots = np.array([t.first_own_slot for t in circuit.templates])[circuit.instances.table["template"]]
    for begin, end in tasks(circuit, 0, len(slots), ROWS_A_BATCH):
        first = np.concatenate([[0], np.cumsum(slots[begin:end])])
        externals = np.zeros((int(first[-1]), 4), dtype=np.uint64)

        def transpose(task: tuple[int, int, int], into: FieldArray = externals) -> None:
            first_instance, end_instance, at = task
            transpose_instances(
                templates, instances, first_instance, end_instance, side, lagrange, own, into, at
            )

        ranges = tasks(circuit, begin, end)
        device.map(transpose, [(low, high, int(first[low - begin])) for low, high in ranges])
        add_externals(templates, instances, begin, end, circuit.num_inputs, externals, out)
    return out
