"""Many proofs of one input through an engine in this process: how long each took, and what devices did.

Every job is work of its own, under a name of its own, and its proof is verified. Jobs before the measured
ones, to warm up, are left out of all figures.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cuzk.api import ProveResult, Timings
from cuzk.benchmarks.figures import Figures, Spread
from cuzk.engine.jobs import JobResult
from cuzk.engine.recorder import Recorder
from cuzk.errors import CuzkError
from cuzk.events import OnEvent, ignore, stage
from cuzk.groth16.files import replace_atomically
from cuzk.proofs.sector_engine import Engine
from cuzk.proofs.sources import InputSource
from cuzk.sector.pieces import SideInputs
from cuzk.timeline.line import parse_line
from cuzk.timeline.record import Timeline

T = TypeVar("T")
_WARM_UP = "warm-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchedJob:
    """One job: `wall_ms` from reading its input to its result; `error` is None when it was proven."""

    job_id: str
    status: str
    wall_ms: int
    timings: dict[str, int]
    error: str | None

    def proven(self, proof: bytes, partitions: tuple[int, ...] = ()) -> ProveResult:
        """The same in the form of `cuzk.prove`."""
        timings = Timings(**{name: self.timings[name] for name in Timings.__dataclass_fields__})
        return ProveResult(
            status=self.status,
            job_id=self.job_id,
            proof=proof,
            partitions=partitions,
            timings=timings,
            wall_ms=self.wall_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsBench:
    """What was measured.

    total_s     from the first submission to the last result
    partitions  of each job
    memory      the most that was reserved, by budget
    """

    count: int
    concurrency: int
    settings: dict[str, Any]
    jobs: tuple[BenchedJob, ...]
    partitions: int
    total_s: float
    figures: Figures
    memory: dict[str, int]
    last: ProveResult | None
    worst_exit_code: int

    @property
    def completed(self) -> list[BenchedJob]:
        return [job for job in self.jobs if job.error is None]

    @property
    def wall_ms(self) -> Spread | None:
        """Of completed jobs."""
        return Spread.of([job.wall_ms for job in self.completed]) if self.completed else None

    @property
    def proof_s(self) -> float | None:
        """Seconds a proof, of the total."""
        return self.total_s / len(self.completed) if self.completed else None

    @property
    def kernels_s(self) -> float | None:
        """Seconds a proof if devices did nothing but compute its partitions; None without their clocks."""
        a_partition = self.figures.partition_ms
        if a_partition is None:
            return None
        return self.partitions * a_partition / 1000 / len(self.figures.kernels)

    def facts(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        wall, completed = self.wall_ms, len(self.completed)
        return {
            "count": self.count,
            "concurrency": self.concurrency,
            "settings": self.settings,
            "completed": completed,
            "failed": len(self.jobs) - completed,
            "total_s": self.total_s,
            "proofs_per_minute": completed / self.total_s * 60,
            "wall_ms": None if wall is None else asdict(wall),
            "jobs": [asdict(job) for job in self.jobs],
            "proof_s": self.proof_s,
            "kernels_s": self.kernels_s,
            "stages_ms": {name: asdict(spread) for name, spread in self.figures.stages.items()},
            "devices": dict(self.figures.devices),
            "kernels": {name: asdict(kernels) for name, kernels in self.figures.kernels.items()},
            "peak_bytes": self.memory,
            "proof": None if self.last is None else self.last.proof.hex(),
        }


def bench_jobs(
    source: InputSource,
    engine_with: Callable[[Recorder], Engine],
    *,
    beside: SideInputs | None = None,
    count: int = 1,
    concurrency: int = 1,
    warm_up: int = 0,
    timeline: Path | None = None,
    on_event: OnEvent = ignore,
) -> JobsBench:
    """Prove an input `count` times, at most `concurrency` at once, after `warm_up` times that do not count.

    beside       as of `Engine.submit`
    engine_with  makes the engine, with that recorder
    timeline     a file for the TIMELINE lines of the measured jobs
    Raises what setting up an engine raises; a job that fails is a figure, not an exception.
    """
    log = io.BytesIO()
    with engine_with(Timeline(log)) as engine:
        outcomes, total_s = prove_many(
            partial(_prove, engine, source, beside),
            count=count,
            concurrency=concurrency,
            warm_up=warm_up,
            on_event=on_event,
        )
        status = engine.status()
    lines, ended = list(_measured(log)), [one for _, one in outcomes if isinstance(one, JobResult)]
    if timeline is not None:
        replace_atomically(timeline, "".join(lines).encode())
    return JobsBench(
        count=count,
        concurrency=concurrency,
        settings=asdict(engine.settings),
        jobs=tuple(job for job, _ in outcomes),
        partitions=max((len(one.partitions) for one in ended), default=0),
        total_s=total_s,
        figures=Figures.of(lines, {device.ordinal: device.name for device in status.devices}),
        memory={
            memory.name: memory.peak
            for memory in (*status.memory, *(device.memory for device in status.devices))
            if memory.total
        },
        last=_as_prove_result(*outcomes[-1]),
        worst_exit_code=max((_exit_code(result) for _, result in outcomes), default=0),
    )


def prove_many(
    prove: Callable[[str], T], *, count: int, concurrency: int, warm_up: int, on_event: OnEvent
) -> tuple[list[T], float]:
    """What came of each proof but those to warm up, and the seconds of all. `prove` gets a name for each."""
    for k in range(1, warm_up + 1):
        with stage(on_event, f"{_WARM_UP} {k}"):
            prove(f"{_WARM_UP} {k}")
    begin = time.perf_counter()
    with ThreadPoolExecutor(concurrency) as pool, stage(on_event, "jobs", total=count, unit="jobs") as done:
        outcomes = []
        for outcome in pool.map(prove, [f"bench {k}" for k in range(1, count + 1)]):
            outcomes.append(outcome)
            done(len(outcomes), count)
    return outcomes, time.perf_counter() - begin


def _prove(
    engine: Engine, source: InputSource, beside: SideInputs | None, name: str
) -> tuple[BenchedJob, JobResult | CuzkError]:
    """One job to its end; what it failed with is in what comes back."""
    begin = time.perf_counter()
    try:
        outcome: JobResult | CuzkError | None = engine.submit(source, beside=beside, request_id=name).wait()
    except CuzkError as error:
        outcome = error
    assert outcome is not None
    wall_ms = round((time.perf_counter() - begin) * 1000)
    if isinstance(outcome, CuzkError):
        job = BenchedJob(job_id=name, status="FAILED", wall_ms=wall_ms, timings={}, error=str(outcome))
        return job, outcome
    error_text = None if outcome.error is None else str(outcome.error) or type(outcome.error).__name__
    return (
        BenchedJob(
            job_id=name,
            status=outcome.status.value,
            wall_ms=wall_ms,
            timings=asdict(outcome.timings),
            error=error_text,
        ),
        outcome,
    )


def _exit_code(outcome: JobResult | CuzkError) -> int:
    error = outcome if isinstance(outcome, CuzkError) else outcome.error
    if error is None:
        return 0
    return error.exit_code if isinstance(error, CuzkError) else CuzkError.exit_code


def _as_prove_result(job: BenchedJob, outcome: JobResult | CuzkError) -> ProveResult | None:
    """If there is a proof."""
    if isinstance(outcome, CuzkError) or outcome.proof is None:
        return None
    return job.proven(outcome.proof, outcome.partitions)


def _measured(log: io.BytesIO) -> Iterator[str]:
    """The lines of the jobs that count."""
    for line in log.getvalue().decode().splitlines(keepends=True):
        [event] = parse_line(line)
        assert event is not None, line
        if not event.job.startswith(_WARM_UP):
            yield line
