"""A prover that proves by naming what it was given, on the engine's own threads: no kernel, no parameters.

The fake proof of a request is that of `tests.engine.fakes` for the digest of the request; it has as many
partitions as `registered_proof` says, at least one. Each partition takes `sector_number` milliseconds to
prepare. `vanilla_proof` that begins with BAD is at fault, with FAILS fails when it is prepared, with DEADLY
ends its reader; what `waiting_for` makes is not prepared before a file is there.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from cuzk.engine.events import Subscription
from cuzk.engine.jobs import Job, Priority
from cuzk.engine.pipeline import DevicePlace, Pipeline
from cuzk.engine.recorder import Recorder
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.errors import InputError, ProofError, UsageError
from cuzk.server import proving_pb2 as pb
from cuzk.server.circuits import circuit_id
from cuzk.server.intake import digest_of, read_with
from cuzk.server.kinds import KINDS
from cuzk.server.seam import ProofRequest
from tests.engine.fakes import FakeSetup, FakeWork, fake_proof, stalls

BAD, FAILS, DEADLY = b"bad", b"fails", b"deadly"
_WAITS = b"waits for "
MIB = 1 << 20


def waiting_for(file: Path, more: bytes = b"") -> bytes:
    """A `vanilla_proof` for a daemon that is another process."""
    return _WAITS + os.fsencode(file) + b"\n" + more


def read_fake(data: bytes, check: bool) -> ProofRequest:
    return read_with(_source, data, check)


def _source(submit: pb.SubmitProofRequest, check: bool) -> tuple[object, str]:
    given = submit.vanilla_proof or b"".join(submit.vanilla_proofs)
    if given.startswith(DEADLY):
        os._exit(1)
    if given.startswith(BAD):
        raise InputError("it is bad", where="partition 3, challenge 7", next="send another")
    wait_s = submit.sector_number / 1000
    work = FakeWork(
        digest_of(submit),
        tuple(range(max(1, submit.registered_proof))),
        kind=KINDS[submit.proof_kind].name,
        input_bytes=len(given),
    )
    file = os.fsdecode(given[len(_WAITS) :].partition(b"\n")[0]) if given.startswith(_WAITS) else None
    return _Source(work, wait_s, file, fails=given.startswith(FAILS)), ""


class _Source:
    """Work and what its partitions do; without functions, so that it crosses processes."""

    def __init__(self, work: FakeWork, wait_s: float, file: str | None, *, fails: bool) -> None:
        self._fields = (work.digest, work.partitions, work.kind, work.input_bytes)
        self._wait_s, self._file, self._fails = wait_s, file, fails

    def work(self, setup: FakeSetup) -> FakeWork:
        digest, partitions, kind, input_bytes = self._fields
        return FakeWork(digest, partitions, setup, kind, input_bytes, preparing=self._prepare)

    def _prepare(self, partition: int) -> None:
        time.sleep(self._wait_s)
        while self._file is not None and not os.path.exists(self._file):
            time.sleep(0.01)
        if self._fails:
            raise ProofError("this one fails", where=f"partition {partition}")


def proof_of(submit: pb.SubmitProofRequest) -> bytes:
    """What a request must be answered with."""
    digest = digest_of(submit)
    return b"".join(fake_proof(digest, k) for k in range(max(1, submit.registered_proof)))


class FakeProver:
    """Of `cuzk.server.seam`. `setup` can be given fates.

    may_open  parameters are not loaded before it is set; it is
    """

    def __init__(
        self,
        devices: Sequence[str] = ("cuda:0",),
        *,
        host_bytes: int = 1024 * MIB,
        settings: Settings | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.setup = FakeSetup("porep-2KiB", device_bytes=MIB, host_bytes=MIB)
        self.may_open = threading.Event()
        self.may_open.set()
        self._pipeline = Pipeline(
            [DevicePlace(name=name, memory_bytes=16 * MIB) for name in devices],
            host_bytes=host_bytes,
            settings=self.settings,
            recorder=recorder,
        )

    def submit(self, request: ProofRequest, job_id: str) -> Job:
        work = request.source.work(self.setup)
        return self._pipeline.submit(work, request_id=job_id, priority=request.priority)

    def urge(self, job: Job, priority: Priority) -> None:
        self._pipeline.urge(job, priority)

    def preload(self, circuit: str) -> bool:
        self._require(circuit)
        self.may_open.wait()
        return self._pipeline.preload(self.setup)

    def evict(self, circuit: str) -> bool:
        self._require(circuit)
        return self._pipeline.evict(self.setup.name)

    def _require(self, circuit: str) -> None:
        if circuit != circuit_id(self.setup.name):
            raise UsageError(f"unknown circuit ID: {circuit}")

    def status(self) -> EngineStatus:
        return self._pipeline.status()

    def hold(self) -> threading.Event:
        """No job ends before the event: each device stands still with its first partition until then."""
        go_on, workers = threading.Event(), self.settings.gpu_workers_per_device
        for device in self.status().devices:
            self.setup.fates[device.name] = deque([stalls(go_on)] * workers)
        return go_on

    def fail(self) -> None:
        """As a mistake in one of the engine's threads would have it."""
        self._pipeline._reception.abort(ValueError("a mistake"))

    def events(self, *, limit: int = 1000) -> Subscription:
        return self._pipeline.events(limit=limit)

    def close(self, *, drain: bool = True, timeout_s: float | None = None) -> bool:
        return self._pipeline.close(drain=drain, timeout_s=timeout_s)
