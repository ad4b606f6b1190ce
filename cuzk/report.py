"""What `sector inspect`, `circuit info` and `circuit digest` report: facts as plain data, sections by name.

Values are strings, numbers and lists, so that the same facts print as text and go into JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuzk.circuit import digest, rows
from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import assign
from cuzk.events import OnEvent, stage
from cuzk.groth16.qap import domain_log2, point_counts
from cuzk.kernels.device.choose import choose_device
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kinds import circuit_of, free_values
from cuzk.sector.claim import CircuitShape, ProofInput
from cuzk.sources import chosen_partitions

Section = dict[str, Any]


def input_facts(given: ProofInput) -> dict[str, Section]:
    """What an input says, and the name of the parameters for it."""
    return {**given.facts(), "parameters": {"name": given.shape.parameter_stem}}


def circuit_facts(shape: CircuitShape, circuit: Circuit) -> dict[str, Section]:
    """Counts of the circuit of one partition, and what its parameters take."""
    counts = point_counts(circuit)
    return {
        "circuit": {"name": circuit.name, **circuit_counts(circuit)},
        "parameters": {
            "name": shape.parameter_stem,
            "bytes": counts.file_bytes,
            "points_h": counts.h,
            "points_l": counts.l,
            "points_a": counts.a,
            "points_b": counts.b,
            "points_ic": counts.ic,
        },
    }


def template_facts(circuit: Circuit) -> list[Section]:
    """What the circuit is made of; templates of one name differ in size or in their constant bits."""
    return [
        {"template": template.name, "instances": count, "rows": template.rows, "variables": template.aux}
        for template, count in zip(circuit.templates, circuit.instance_counts.tolist(), strict=True)
    ]


def circuit_counts(circuit: Circuit) -> Section:
    """Rows, variables and terms, the rows of the inputs included."""
    return {
        "constraints_with_dummies": circuit.num_constraints,
        "inputs": circuit.num_inputs,
        "aux": circuit.num_aux,
        "aux_not_bits": circuit.num_full,
        "nnz_abc": list(circuit.nonzeros),
        "domain": 1 << domain_log2(circuit),
    }


def digests(
    given: ProofInput,
    *,
    partitions: Sequence[int],
    check: bool,
    device: str,
    threads: int | None,
    on_event: OnEvent,
) -> dict[str, Section]:
    """Counts and digests of the circuit, and those of the partitions named, or of all."""
    machine = choose_device(device, threads)
    with stage(on_event, "circuit"):
        circuit = circuit_of(given.shape)
        facts = {"circuit": {**circuit_counts(circuit), "r1cs_digest": digest.r1cs_digest(circuit)}}
    for partition in chosen_partitions(given, partitions or None):
        facts[f"partition {partition}"] = partition_digests(
            machine, circuit, given, partition, check=check, on_event=on_event
        )
    return facts


def partition_digests(
    device: CpuDevice, circuit: Circuit, given: ProofInput, partition: int, *, check: bool, on_event: OnEvent
) -> Section:
    """Digests of one partition's assignment and row values.

    With `check`, `unsatisfied` is the first row whose product is wrong, and its gadget, or None.
    """
    label = f"partition {partition}"
    with stage(on_event, f"{label}: witness"):
        assignment = assign(device, circuit, free_values(given, partition))
    facts: Section = {
        "inputs_digest": digest.list_digest(assignment.inputs),
        "aux_digest": digest.aux_digest(circuit, assignment),
    }
    with stage(on_event, f"{label}: rows"):
        sides = [rows.evaluate_side(device, circuit, assignment, side) for side in (rows.A, rows.B, rows.C)]
    for name, values in zip("abc", sides, strict=True):
        facts[f"{name}_digest"] = digest.list_digest(values)
    if check:
        with stage(on_event, f"{label}: check"):
            unsatisfied = rows.unsatisfied_row(device, circuit, *sides)
        facts["unsatisfied"] = f"row {unsatisfied[0]}: {unsatisfied[1]}" if unsatisfied else None
    return facts
