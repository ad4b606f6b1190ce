"""Proving and verifying, and synthesizing sectors: what the command line does, for Python programs too.

Importing this loads no compiler: verifying does without, and proving has something to do while it loads.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cuzk.errors import InputError, ProofError, ResourceError, UsageError
from cuzk.events import Notice, OnEvent, Stopwatch, ignore, one_at_a_time, stage
from cuzk.garbage import load
from cuzk.groth16.files import replace_atomically
from cuzk.groth16.parameters.locate import find_parameters, find_verifying_key
from cuzk.groth16.parameters.params_file import open_parameters
from cuzk.groth16.proof import PROOF_BYTES, join_proofs, split_proofs
from cuzk.groth16.proof_memory import ProofMemory
from cuzk.groth16.verify import Verifier
from cuzk.proofs.kinds import POREP, kind_named
from cuzk.proofs.sources import (
    MEMORY_ORIGIN,
    InputSource,
    Source,
    chosen_partitions,
    encoded_input,
    read_input,
    require_randomizers,
    warn_of_development,
)
from cuzk.sector.claim import SHORT, ProofInput
from cuzk.sector.pieces import Pieces, SideInputs
from cuzk.sector.porep.c1 import C1
from cuzk.sector.porep.registered_proof import registered_proof_of_size

_JOB_ID_DIGITS = 16
_CPU_NAMES = ("cpu", "cpu:ifma", "cpu:scalar")
_GPU_DRIVER = Path("/dev/nvidiactl")  # stands where NVIDIA's driver runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Milliseconds by kind of work: waiting, parameters, witness and rows, transforms and sums."""

    total_ms: int
    queue_ms: int
    srs_ms: int
    synth_ms: int
    gpu_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveResult:
    """A verified proof: 192 bytes for each of `partitions`, in this order."""

    status: str
    job_id: str
    proof: bytes
    partitions: tuple[int, ...]
    timings: Timings
    wall_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """A proof held for `partitions` partitions."""

    partitions: int
    wall_ms: int


def prove(
    source: InputSource,
    *,
    beside: SideInputs | None = None,
    params: Path | None = None,
    device: str = "auto",
    vram_limit: int | None = None,
    threads: int | None = None,
    partitions: Sequence[int] | None = None,
    insecure_rs: tuple[int, int] | None = None,
    check: bool = False,
    on_event: OnEvent = ignore,
) -> ProveResult:
    """Prove what a Commit 1 output or other vanilla proofs are about, all partitions or some, and verify it.

    source       path, or content, gzipped or not, of lotus-bench's c1.json or of the document inside; of an
                 envelope of vanilla proofs, or a bare list of them; `Pieces`; or what `synthesize` returned
    beside       what belongs to a bare list
    params       folder that is searched first for Groth16 parameters
    device       auto, cpu, cpu:ifma, cpu:scalar, cuda:N, a PCI id or a UUID; auto is a GPU if there is one
    vram_limit   bytes of a GPU's memory that may be taken, if not all that is free
    insecure_rs  fixes r and s of every proof: for tests, it breaks zero knowledge
    check        also evaluate every row of the circuit: if one does not hold, the error names it
    Raises InputError, ParameterError, ResourceError, DeviceError, UsageError; ProofError if a proof fails its
    check.
    """
    clock = _Clock(on_event)
    on_event = one_at_a_time(clock.hear)  # points are loaded by a thread of their own
    on_the_cpu = vram_limit is None and _is_the_cpu(device)
    with nullcontext() if on_the_cpu else _opened_ahead(device):
        if not on_the_cpu:  # what cannot be had is told at once
            load("cuzk.kernels.device.choose")
            from cuzk.kernels.device.choose import choose, require_gpu_for_limit

            require_gpu_for_limit(choose(device, threads), vram_limit)
        with stage(on_event, "read"):
            given = read_input(source, beside)
            given.check_statement()
        chosen = chosen_partitions(given, partitions)
        if insecure_rs is not None:
            require_randomizers(insecure_rs, on_event)
        with stage(on_event, "parameters"):
            found = find_parameters(given.shape, explicit=params)
            parameters = open_parameters(found.path)
        warn_of_development(found, on_event)
        memory = ProofMemory.made_ready(parameters.counts.h + 1) if on_the_cpu else None
        load("cuzk.proofs.proving")  # the compiler, while memory is made ready
        from cuzk.proofs.proving import prove_partitions

        proofs = prove_partitions(
            given,
            chosen,
            parameters,
            found,
            device=device,
            vram_limit=vram_limit,
            threads=threads,
            insecure_rs=insecure_rs,
            check=check,
            memory=memory,
            on_event=on_event,
        )
        return ProveResult(
            status="COMPLETED",
            job_id=_job_id(given, chosen),
            proof=join_proofs(proofs),
            partitions=chosen,
            timings=clock.timings(),
            wall_ms=clock.elapsed_ms(),
        )


def _opened_ahead(device: str) -> AbstractContextManager[object]:
    """The card of that name, being opened while the compiler loads."""
    from cuzk.kernels.device.cuda_ahead import OpenedAhead

    return OpenedAhead(device)


def _is_the_cpu(device: str) -> bool:
    """Whether it is certain, without asking a driver, that no GPU computes what is asked for."""
    return device in _CPU_NAMES or (device == "auto" and not _GPU_DRIVER.exists())


def verify(
    source: InputSource,
    proof: Source,
    *,
    beside: SideInputs | None = None,
    params: Path | None = None,
    on_event: OnEvent = ignore,
) -> VerifyResult:
    """Check the proof of all partitions of an input.

    proof   path, or content, of 192 bytes a partition, raw or as hexadecimal digits
    Raises ProofError when the proof does not hold or one of its points is none; InputError when it is not of
    192 bytes a partition; the rest as `prove`.
    """
    clock = _Clock(on_event)
    proof_origin = MEMORY_ORIGIN if isinstance(proof, bytes) else os.fspath(proof)
    with stage(on_event, "read"):
        given = read_input(source, beside)
        given.check_statement()
        proofs = split_proofs(_proof_bytes(proof), where=proof_origin)
    count, shape = given.partition_count, given.shape
    if len(proofs) != count:
        raise InputError(
            f"a {SHORT[shape.kind]} proof of {shape.name} has {count} partition(s) of {PROOF_BYTES} bytes, "
            f"this one has {len(proofs)}",
            where=proof_origin,
            next="give the proof of all partitions, exactly as it was written",
        )
    with stage(on_event, "parameters"):
        found = find_verifying_key(given.shape, explicit=params)
        verifier = Verifier(found.key)
    warn_of_development(found, on_event)
    with stage(on_event, "verify"):
        inputs = [given.public_inputs(k) for k in range(count)]
        if not verifier.verify_partitions(inputs, proofs):
            bad = [k for k in range(count) if not verifier.verify_partition(inputs[k], proofs[k])]
            raise ProofError(
                "the proof does not hold for this sector under this verifying key",
                where=f"partition {', '.join(map(str, bad))}",
                next=f"check that input, proof and {found.path} belong together",
            )
    return VerifyResult(partitions=count, wall_ms=clock.elapsed_ms())


def synthesize(
    sector_size: int,
    *,
    kind: str = POREP.name,
    seed: int = 0,
    registered_proof: str | None = None,
    out: Path | None = None,
    threads: int | None = None,
    on_event: OnEvent = ignore,
) -> C1 | Pieces:
    """What is proven of sectors that nobody sealed, for tests and benchmarks; the same for a seed.

    kind              of proof, by any of its names
    registered_proof  of PoRep, for example StackedDrg32GiBV1_1, which is what a size stands for without it
    out               also write the file to be proven, which must not exist yet
    Raises InputError, ResourceError; UsageError for what nobody can make, see `sector.porep.synthesize`.
    """
    from cuzk.kernels.device.cpu import CpuDevice  # these load the compiler
    from cuzk.proofs.warm_up import TO_CHECK, warm_up

    make = _maker(kind, sector_size, registered_proof)
    if out is not None and out.exists():
        raise ResourceError("there is a file already", where=str(out), next="remove it, or name another")
    machine = CpuDevice(threads)
    warm_up(machine, TO_CHECK, on_event)
    with stage(on_event, "synthesize", unit="nodes") as progress:
        made = make(seed=seed, device=machine, progress=progress)
    on_event(Notice(level="info", text="a synthetic sector: nobody sealed it, no network accepts its proofs"))
    if out is not None:
        with stage(on_event, "write"):
            replace_atomically(out, encoded_input(made))
    return made


def _maker(kind: str, sector_size: int, registered_proof: str | None) -> Callable[..., C1 | Pieces]:
    """What makes it, all but told the seed. Raises as `synthesize`."""
    from cuzk.sector.porep.synthesize import synthesize as synthetic_sector  # loads the compiler

    chosen = kind_named(kind)
    if chosen.in_pieces is None:
        return partial(synthetic_sector, registered_proof_of_size(sector_size, registered_proof))
    if registered_proof is not None:
        raise UsageError(
            f"{chosen.name} proofs have no such names", where="--registered-proof", next="leave it out"
        )
    return partial(chosen.in_pieces.make, chosen.shape(sector_size))


def synthetic_name(kind: str, sector_size: int, registered_proof: str | None, seed: int) -> str:
    """What a file of `synthesize` is called: nobody shall take it for that of a sealed sector."""
    chosen = kind_named(kind)
    if chosen is POREP:
        registered = registered_proof_of_size(sector_size, registered_proof)
        return f"c1-synthetic-{registered.name}-{seed}.json"
    return f"{chosen.names[0]}-synthetic-{chosen.shape(sector_size).name}-{seed}.json"


class _Clock(Stopwatch):
    """What the stages took by kind of work, and how long it is since it was made."""

    _SYNTHESIS = ("pre-pass", "witness", "rows", "circuit")
    _PARAMETERS = ("parameters", "digest", "load points", "points on the curve", "points in the subgroup")
    _DEVICE = ("transforms", "sum h", "sum l", "sum a", "sum b_g1", "sum b_g2")

    def __init__(self, on_event: OnEvent) -> None:
        super().__init__(on_event)
        self._begin = time.perf_counter()

    def elapsed_ms(self) -> int:
        return round((time.perf_counter() - self._begin) * 1000)

    def timings(self) -> Timings:
        return Timings(
            total_ms=self.elapsed_ms(),
            queue_ms=0,
            srs_ms=self._sum_ms(self._PARAMETERS),
            synth_ms=self._sum_ms(self._SYNTHESIS),
            gpu_ms=self._sum_ms(self._DEVICE),
        )

    def _sum_ms(self, kinds: tuple[str, ...]) -> int:
        return round(sum(s for work, s in self.by_work().items() if work in kinds) * 1000)


def _proof_bytes(proof: Source) -> bytes:
    """A proof's bytes, given raw or as hexadecimal digits, in memory or as a file."""
    if isinstance(proof, bytes):
        data = proof
    else:
        try:
            data = Path(proof).read_bytes()
        except OSError as error:
            raise InputError(
                f"the proof cannot be read: {error.strerror}", where=os.fspath(proof), next="check the path"
            ) from error
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        return data  # raw: a compressed point begins with a byte that is no digit


def _job_id(given: ProofInput, chosen: tuple[int, ...]) -> str:
    """The same for the same work: a digest of what is claimed."""
    digest = hashlib.sha256(repr((given.shape.kind, given.shape.name, chosen)).encode())
    for k in chosen:
        digest.update(given.public_inputs(k).tobytes())
    return digest.hexdigest()[:_JOB_ID_DIGITS]
