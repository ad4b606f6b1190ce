"""A synthetic input's partitions proven one after another in one process, each stage timed.

What the card computes is timed by its own events, what the host does by its clock. Nothing is read from a
disk: the input is synthesized, the parameters are made for this process, on the card, where they stay. What
others need to check the proofs can be written: input, verifying key, proof.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuzk.api import synthesize
from cuzk.benchmarks.peak_memory import peak_host_bytes, reset_peak
from cuzk.circuit.builder import Circuit
from cuzk.errors import ProofError
from cuzk.events import OnEvent, Stopwatch, ignore, one_at_a_time, stage
from cuzk.groth16.files import make_folder, replace_atomically
from cuzk.groth16.parameters.development import MARK_SUFFIX, mark_content
from cuzk.groth16.parameters.verifying_key import VerifyingKey
from cuzk.groth16.proof import Proof, join_proofs
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.choose import choose
from cuzk.proofs.kinds import POREP, circuit_of
from cuzk.proofs.proving import compute_partition
from cuzk.proofs.sources import encoded_input, read_input
from cuzk.proofs.targets import card_for_ephemeral, ephemeral_target
from cuzk.sector.claim import CircuitShape, ProofInput
from cuzk.sector.pieces import Pieces
from cuzk.sector.porep.c1 import C1

if TYPE_CHECKING:
    from cuzk.groth16.gpu.ephemeral import EphemeralParameters
    from cuzk.groth16.gpu.target import GpuTarget

#: Stages that the host computes, in their order, before and after the card's; and what is no stage.
_BEFORE, _AFTER, _WHOLE = ("check", "pre-pass"), ("finish", "verify"), ("rest", "whole")
INPUT_FILE = "input.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBench:
    """Seconds of the preparations and of each partition, stage by stage.

    setup       sector, circuit, values at tau, points on the card: once
    partitions  for each partition proven, its stages in order; "whole" is from its begin to its end, "rest"
                what of that belongs to no stage: the host between them, waiting
    proving_s   from the first partition's start to the verified proof of all
    peak_host   bytes that the process held at most: while everything was made, while partitions were proven
    """

    kind: str
    sector_size: str
    seed: int
    device: str
    setup: dict[str, float]
    partitions: tuple[dict[str, float], ...]
    proving_s: float
    peak_host: dict[str, int]
    proof: bytes

    def facts(self) -> dict[str, object]:
        """All of it as JSON has it."""
        return {**asdict(self), "proof": self.proof.hex()}

    def stage_table(self) -> list[tuple[str, str, float, float]]:
        """For each stage: its name, whose clock, the first partition's seconds, the median of the others'."""
        first, *others = self.partitions
        rest = others or [first]
        return [
            (
                name,
                "host" if name in (*_BEFORE, *_AFTER, *_WHOLE) else "card",
                first[name],
                statistics.median(one[name] for one in rest),
            )
            for name in first
        ]


def bench_partitions(
    sector_size: int,
    *,
    kind: str = POREP.name,
    registered_proof: str | None = None,
    seed: int = 0,
    partitions: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    vram_limit: int | None = None,
    out: Path | None = None,
    on_event: OnEvent = ignore,
) -> PartitionBench:
    """Prove the first `partitions` (or all) of a synthetic sector on a GPU, under parameters made for it.

    vram_limit  bytes of the card that may be taken; less than all points need makes them pass in slices
    out         a folder for input, verifying key and proof, with the mark of development parameters
    Raises DeviceError without a GPU, ProofError when a proof does not verify; the rest as `api.prove`.
    """
    choice = choose(device, threads)
    card, setup = card_for_ephemeral(choice), Stopwatch(on_event)
    hear = one_at_a_time(setup.hear)
    made = synthesize(
        sector_size,
        kind=kind,
        seed=seed,
        registered_proof=registered_proof,
        threads=threads,
        on_event=hear,
    )
    given = read_input(made)
    with stage(hear, "circuit"):
        circuit = circuit_of(given.shape)
    with ephemeral_target(choice.host, card, circuit, vram_limit, hear) as (parameters, target):
        target.ready(circuit)
        peak_of_setup = peak_host_bytes()
        reset_peak()
        begin = time.perf_counter()
        chosen = range(min(partitions or given.partition_count, given.partition_count))
        proofs, stages = [], []
        with stage(on_event, "partitions", total=len(chosen), unit="partitions") as progress:
            for k in chosen:
                proof, seconds = _prove_one(target, parameters, circuit, given, k)
                proofs.append(proof)
                stages.append(seconds)
                progress(k + 1, len(chosen))
        _verify_all(parameters.key, given, proofs)
        proving_s = time.perf_counter() - begin
    joined = join_proofs(proofs)
    if out is not None:
        _write(out, made, given.shape, parameters.key, joined)
    return PartitionBench(
        kind=given.shape.kind,
        sector_size=given.shape.name,
        seed=seed,
        device=card.label,
        setup=setup.seconds,
        partitions=tuple(stages),
        proving_s=proving_s,
        peak_host={"setup": peak_of_setup, "proving": peak_host_bytes()},
        proof=joined,
    )


def _prove_one(
    target: GpuTarget, parameters: EphemeralParameters, circuit: Circuit, given: ProofInput, k: int
) -> tuple[Proof, dict[str, float]]:
    """The verified proof of partition k, from arrays as a file gives them, and the seconds of its stages."""
    host, begin = Stopwatch(), time.perf_counter()
    with stage(host.hear, "check"):
        given.check_partition(k, target.host)
    proof = compute_partition(target, given, k, circuit, parameters, None, False, host.hear)()
    whole = time.perf_counter() - begin
    stages = {name: host.seconds[name] for name in _BEFORE}
    stages |= {name: milliseconds / 1000 for name, milliseconds in target.stages_ms().items()}
    stages |= {name: host.seconds[name] for name in _AFTER}
    return proof, {**stages, "rest": whole - sum(stages.values()), "whole": whole}


def _verify_all(key: VerifyingKey, given: ProofInput, proofs: list[Proof]) -> None:
    inputs = [given.public_inputs(k) for k in range(len(proofs))]
    if not Verifier(key).verify_partitions(inputs, proofs):
        raise ProofError(
            "the partitions' proofs do not hold together",
            where=f"{len(proofs)} partitions",
            next="this is a fault of cuzk: please report it",
        )


def _write(folder: Path, made: C1 | Pieces, shape: CircuitShape, key: VerifyingKey, proof: bytes) -> None:
    """What another verifier needs; the mark says that no network accepts it."""
    make_folder(folder)
    stem = shape.parameter_stem
    replace_atomically(folder / (stem + MARK_SUFFIX), mark_content(key, None))
    replace_atomically(folder / f"{stem}.vk", key.to_bytes())
    replace_atomically(folder / INPUT_FILE, encoded_input(made))
    replace_atomically(folder / "proof.bin", proof)
