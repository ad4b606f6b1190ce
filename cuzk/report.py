"""What `sector inspect`, `circuit info` and `circuit digest` report: facts as plain data, sections by name.

Values are strings, numbers and lists, so that the same facts print as text and go into JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuzk.circuit import digest, rows
from cuzk.circuit.builder import Circuit
from cuzk.circuit.porep import free_values, porep_circuit
from cuzk.circuit.witness import assign
from cuzk.errors import UsageError
from cuzk.events import OnEvent, stage
from cuzk.groth16.qap import domain_log2, point_counts
from cuzk.kernels.device.choose import choose_device
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.sector.c1 import read_c1
from cuzk.sector.inputs import C1
from cuzk.sector.shape import SectorShape
from cuzk.sector.synthesize import is_synthesized

Section = dict[str, Any]


def sector_facts(c1: C1) -> dict[str, Section]:
    """What a Commit 1 output says about its sector."""
    registered, shape = c1.registered_proof, c1.shape
    return {
        "sector": {
            "registered_proof": registered.name,
            "sector_size": shape.name,
            "sector_number": c1.sector_number,
            "synthesized": is_synthesized(c1),
            "api_version": registered.api_version.value,
            "challenges_drawn": registered.feature.value,
            "partitions": len(c1.partitions),
            "challenges": shape.challenges,
            "layers": shape.layers,
        },
        "commitments": {
            "comm_d": c1.comm_d.hex(),
            "comm_r": c1.comm_r.hex(),
            "replica_id": c1.replica_id.hex(),
            "seed": c1.seed.hex(),
            "ticket": c1.ticket.hex(),
        },
        "challenged nodes": {
            f"partition {partition.index}": ", ".join(map(str, partition.challenges.tolist()))
            for partition in c1.partitions
        },
        "parameters": {"name": shape.parameter_stem},
    }


def circuit_facts(shape: SectorShape, circuit: Circuit) -> dict[str, Section]:
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
    path: Path,
    *,
    partitions: Sequence[int],
    check: bool,
    device: str,
    threads: int | None,
    on_event: OnEvent,
) -> dict[str, Section]:
    """Counts and digests of the circuit, and those of the partitions named, or of all."""
    machine = choose_device(device, threads)
    with stage(on_event, "read"):
        c1 = read_c1(path)
    chosen = list(partitions) or list(range(len(c1.partitions)))
    if max(chosen) >= len(c1.partitions):
        raise UsageError(
            f"there is no partition {max(chosen)}",
            where=str(path),
            next=f"partitions are 0 to {len(c1.partitions) - 1}",
        )
    with stage(on_event, "circuit"):
        circuit = porep_circuit(c1.shape)
        facts = {"circuit": {**circuit_counts(circuit), "r1cs_digest": digest.r1cs_digest(circuit)}}
    for partition in chosen:
        facts[f"partition {partition}"] = partition_digests(
            machine, circuit, c1, partition, check=check, on_event=on_event
        )
    return facts


def partition_digests(
    device: CpuDevice, circuit: Circuit, c1: C1, partition: int, *, check: bool, on_event: OnEvent
) -> Section:
    """Digests of one partition's assignment and row values.

    With `check`, `unsatisfied` is the first row whose product is wrong, and its gadget, or None.
    """
    label = f"partition {partition}"
    with stage(on_event, f"{label}: witness"):
        assignment = assign(device, circuit, free_values(c1, c1.partitions[partition]))
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
