"""Many proofs by a daemon: how long each took, as its clients see it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cuzk.api import ProveResult
from cuzk.benchmarks.figures import Figures
from cuzk.benchmarks.jobs import BenchedJob, JobsBench, prove_many
from cuzk.errors import CuzkError, InputError, ProofError
from cuzk.events import OnEvent, ignore
from cuzk.proofs.sources import pieces_or_c1
from cuzk.sector.claim import POREP, SHORT
from cuzk.sector.document import read_document
from cuzk.sector.pieces import SideInputs
from cuzk.server import proving_pb2 as pb
from cuzk.server.client import Client
from cuzk.server.kinds import KINDS

Outcome = tuple[BenchedJob, pb.AwaitProofResponse | None, int]


def request_from(file: Path, beside: SideInputs) -> pb.SubmitProofRequest:
    """For the input in a file, gzipped or not: a Commit 1 output, a list of vanilla proofs, or an envelope.

    beside  its kind as `proofs.kinds` calls it; without a miner, that of a Commit 1 output is not checked
    Raises InputError; UsageError where the input says itself what `beside` says.
    """
    [kind] = [kind for kind in KINDS.values() if kind.name == beside.kind]
    bare = replace(beside, miner_id=None, sector_number=None)
    given = pieces_or_c1(read_document(file), str(file), bare)
    request = pb.SubmitProofRequest(
        proof_kind=pb.ProofKind.Name(kind.number),
        miner_id=beside.miner_id or 0,
        sector_number=beside.sector_number or 0,
    )
    if isinstance(given, bytes):
        if kind.name != POREP:
            raise InputError(
                "the file holds neither a list of vanilla proofs nor an envelope of them",
                where=str(file),
                next=f"a Commit 1 output is proven as porep, not as {SHORT[kind.name]}",
            )
        request.vanilla_proof = given
        return request
    request.vanilla_proofs.extend(given.pieces)
    request.sector_size = given.sector_bytes
    request.registered_proof = given.registered_proof or 0
    request.partition_index = given.partition_index
    for name in ("randomness", "comm_r_old", "comm_r_new", "comm_d_new"):
        setattr(request, name, getattr(given, name))
    return request


def bench_daemon(
    connect: Callable[[], Client],
    request: pb.SubmitProofRequest,
    *,
    count: int = 1,
    concurrency: int = 1,
    warm_up: int = 0,
    on_event: OnEvent = ignore,
) -> JobsBench:
    """Have a request proven `count` times under names of their own, at most `concurrency` at once.

    connect  a connection for each proof, in its time
    What goes wrong with one is a figure, also when the daemon cannot be reached.
    """
    outcomes, total_s = prove_many(
        lambda _: _prove(connect, request),
        count=count,
        concurrency=concurrency,
        warm_up=warm_up,
        on_event=on_event,
    )
    return JobsBench(
        count=count,
        concurrency=concurrency,
        settings={},
        jobs=tuple(job for job, _, _ in outcomes),
        partitions=0,
        total_s=total_s,
        figures=Figures.of([], {}),
        memory={},
        last=_as_prove_result(outcomes[-1]),
        worst_exit_code=max(code for _, _, code in outcomes),
    )


def _prove(connect: Callable[[], Client], request: pb.SubmitProofRequest) -> Outcome:
    """The job, its answer if there was one, and the exit code that it deserves."""
    name = str(uuid.uuid4())
    named = pb.SubmitProofRequest()
    named.CopyFrom(request)
    named.request_id = name
    begin = time.perf_counter()
    try:
        with connect() as client:
            answer = client.prove(named)
    except CuzkError as error:
        return _job(name, begin, "FAILED", {}, str(error)), None, error.exit_code
    status = pb.AwaitProofResponse.Status.Name(answer.status)
    if answer.status != pb.AwaitProofResponse.COMPLETED:
        return _job(answer.job_id, begin, status, {}, answer.error_message), answer, ProofError.exit_code
    timings = {
        "total_ms": answer.total_ms,
        "queue_ms": answer.queue_wait_ms,
        "srs_ms": answer.srs_load_ms,
        "synth_ms": answer.synthesis_ms,
        "gpu_ms": answer.gpu_compute_ms,
    }
    return _job(answer.job_id, begin, status, timings, None), answer, 0


def _job(job_id: str, begin: float, status: str, timings: dict[str, int], error: str | None) -> BenchedJob:
    wall_ms = round((time.perf_counter() - begin) * 1000)
    return BenchedJob(job_id=job_id, status=status, wall_ms=wall_ms, timings=timings, error=error)


def _as_prove_result(outcome: Outcome) -> ProveResult | None:
    job, answer, _ = outcome
    return None if answer is None or job.error is not None else job.proven(answer.proof)
