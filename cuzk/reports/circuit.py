"""What `sector inspect`, `circuit info` and `circuit digest` report: facts as plain data, sections by name.

Values are strings, numbers and lists, so that the same facts print as text and go into JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuzk.circuit import digest, rows
from cuzk.circuit.builder import Circuit
from cuzk.events import Notice, OnEvent, stage
from cuzk.groth16.qap import domain_log2, point_counts
from cuzk.kernels.device.choose import choose
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.proofs.sources import chosen_partitions
from cuzk.proofs.synthesis import Synthesis, synthesis_on
from cuzk.sector.claim import CircuitShape, ProofInput

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
    choice = choose(device, threads)
    if choice.card is not None and choice.why:
        on_event(Notice(level="info", text=choice.why))
    with stage(on_event, "circuit"):
        circuit = circuit_of(given.shape)
        facts = {"circuit": {**circuit_counts(circuit), "r1cs_digest": digest.r1cs_digest(circuit)}}
    if choice.card is not None:
        from cuzk.proofs.warm_up_gpu import warm_up_gpu  # needs numba-cuda

        warm_up_gpu(choice.host, choice.card, "prove", domain_log2(circuit), on_event)
    with synthesis_on(choice, circuit) as synthesis:
        for partition in chosen_partitions(given, partitions or None):
            facts[f"partition_{partition}"] = partition_digests(
                synthesis, circuit, given, partition, check=check, on_event=on_event
            )
    return facts


def partition_digests(
    synthesis: Synthesis,
    circuit: Circuit,
    given: ProofInput,
    partition: int,
    *,
    check: bool,
    on_event: OnEvent,
) -> Section:
    """Digests of one partition's assignment and row values.

    With `check`, `unsatisfied` is the first row whose product is wrong, and its gadget, or None.
    """
    label = f"partition {partition}"
    with stage(on_event, f"{label}: witness"):
        assignment = synthesis.assign(free_values(given, partition))
    facts: Section = {
        "inputs_digest": digest.list_digest(assignment.inputs),
        "aux_digest": digest.aux_digest(circuit, assignment),
    }
    with stage(on_event, f"{label}: rows"):
        for name, side in (("a", rows.A), ("b", rows.B), ("c", rows.C)):
            facts[f"{name}_digest"] = digest.list_digest(synthesis.rows(side))
    if check:
        with stage(on_event, f"{label}: check"):
            unsatisfied = synthesis.unsatisfied_row()
        facts["unsatisfied"] = f"row {unsatisfied[0]}: {unsatisfied[1]}" if unsatisfied else None
    return facts
