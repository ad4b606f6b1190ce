"""Proofs of an input that has been read, under parameters that have been opened: all that is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from cuzk.circuit.builder import Circuit
from cuzk.events import Notice, OnEvent, prefixed, stage
from cuzk.groth16.parameters.locate import Found
from cuzk.groth16.parameters.params_file import ParameterFile, Parameters
from cuzk.groth16.proof import Proof
from cuzk.groth16.proof_memory import ProofMemory
from cuzk.groth16.prove import Randomizers, compute, finish
from cuzk.groth16.qap import point_counts
from cuzk.groth16.target import Target
from cuzk.kernels.device.choose import choose, require_gpu_for_limit
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.proofs.targets import FirstUse, compile_ahead, kept_target
from cuzk.proofs.warm_up import TO_CHECK, warm_up
from cuzk.sector.claim import ProofInput

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    """The verified proofs of the chosen partitions; one is finished on the host while the next is computed.

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

        def computed(k: int) -> Callable[[], Proof]:
            hear = on_event if len(chosen) == 1 else prefixed(on_event, f"partition {k}: ")
            return compute_partition(target, given, k, circuit, parameters, insecure_rs, check, hear)

        return overlapped(chosen, computed)


def overlapped(items: Sequence[Item], begin: Callable[[Item], Callable[[], Result]]) -> list[Result]:
    """What the ends of all items give, in order: each end runs in a thread beside the beginning of the next.

    Raises the first error there was; nothing begins after it is known.
    """
    ends: list[Future[Result]] = []
    with ThreadPoolExecutor(1, "cuzk finish") as finisher:
        for item in items:
            ends.append(finisher.submit(begin(item)))
            for end in ends:
                if end.done():
                    end.result()
    return [end.result() for end in ends]


def compute_partition(
    target: Target,
    given: ProofInput,
    k: int,
    circuit: Circuit,
    parameters: Parameters,
    insecure_rs: tuple[int, int] | None,
    check: bool,
    on_event: OnEvent,
) -> Callable[[], Proof]:
    """All that the target, which is opened, does for partition k, which has been checked.

    What comes back gives the verified proof, in any thread.
    """
    where = f"{given.origin}, partition {k}"
    with stage(on_event, "pre-pass"):
        free = free_values(given, k)
    with stage(on_event, "witness"):
        assignment = target.assign(circuit, free)
    ends = compute(target, parameters, circuit, assignment, check=check, on_event=on_event, where=where)
    randomizers = (
        Randomizers.fresh() if insecure_rs is None else Randomizers(r=insecure_rs[0], s=insecure_rs[1])
    )
    return lambda: finish(
        parameters,
        ends,
        randomizers,
        public_inputs=given.public_inputs(k),
        on_event=on_event,
        where=where,
    )
