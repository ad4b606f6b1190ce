"""Proofs of an input that has been read, under parameters that have been opened: all that is compiled."""

from __future__ import annotations

from cuzk.circuit.builder import Circuit
from cuzk.events import Notice, OnEvent, prefixed, stage
from cuzk.groth16.locate import Found
from cuzk.groth16.parameters import ParameterFile, Parameters
from cuzk.groth16.proof import Proof
from cuzk.groth16.proof_memory import ProofMemory
from cuzk.groth16.prove import Randomizers, prove
from cuzk.groth16.qap import point_counts
from cuzk.groth16.target import Target
from cuzk.kernels.device.choose import choose, require_gpu_for_limit
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.proofs.targets import FirstUse, compile_ahead, kept_target
from cuzk.proofs.warm_up import TO_CHECK, warm_up
from cuzk.sector.claim import ProofInput


def prove_partitions(
    given: ProofInput,
    chosen: tuple[int, ...],
    parameters: ParameterFile,
    found: Found,
    *,
    device: str,
    vram_limit: int | None,
    threads: int | None,
    insecure_rs: tuple[int, int] | None,
    check: bool,
    memory: ProofMemory | None,
    on_event: OnEvent,
) -> list[Proof]:
    """The verified proofs of the chosen partitions.

    parameters, found  the same file
    memory             that has been made ready for the CPU
    The rest as for `api.prove`.
    """
    choice = choose(device, threads)
    require_gpu_for_limit(choice, vram_limit)
    if choice.why:
        on_event(Notice(level="info", text=choice.why))
    with stage(on_event, "circuit"):
        circuit = circuit_of(given.shape)
        parameters.require(point_counts(circuit))
    warm_up(choice.host, TO_CHECK, on_event)
    with stage(on_event, "check", total=len(chosen), unit="partitions") as progress:
        for done, k in enumerate(chosen, start=1):
            given.check_partition(k, choice.host)
            progress(done, len(chosen))
    first_use = FirstUse.of(found, on_event)
    with kept_target(choice, parameters, vram_limit, memory) as target:
        target.require_memory()
        compile_ahead(choice, parameters, on_event)
        target.prepare(on_event)
        target.opened(circuit)
        first_use.check(target, on_event)
        return [
            prove_partition(
                target,
                given,
                k,
                circuit,
                parameters,
                insecure_rs,
                check,
                on_event if len(chosen) == 1 else prefixed(on_event, f"partition {k}: "),
            )
            for k in chosen
        ]


def prove_partition(
    target: Target,
    given: ProofInput,
    k: int,
    circuit: Circuit,
    parameters: Parameters,
    insecure_rs: tuple[int, int] | None,
    check: bool,
    on_event: OnEvent,
) -> Proof:
    """The verified proof of partition k, which has been checked, on a target that is opened."""
    with stage(on_event, "pre-pass"):
        free = free_values(given, k)
    with stage(on_event, "witness"):
        assignment = target.assign(circuit, free)
    return prove(
        target,
        parameters,
        circuit,
        assignment,
        Randomizers.fresh() if insecure_rs is None else Randomizers(r=insecure_rs[0], s=insecure_rs[1]),
        public_inputs=given.public_inputs(k),
        check=check,
        on_event=on_event,
        where=f"{given.origin}, partition {k}",
    )
