"""An engine that plays proving: its own threads, fake work that takes time, clocks of devices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cuzk.engine.events import Subscription
from cuzk.engine.jobs import Job, JobResult, Priority
from cuzk.engine.pipeline import DevicePlace, Pipeline
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.engine.turn import Turn
from cuzk.server.card_readings import CardReadings
from cuzk.server.history import Ended
from cuzk.server.observation import Observation, Surroundings
from tests.engine.fakes import FakeProver, FakeSetup, FakeWork, WrongProof, fake_proof

GIB = 1 << 30
MIB = 1 << 20
SOON_S = 30.0


class PlayingSetup(FakeSetup):
    """Its proofs take `compute_s` on a device, of which `share` are kernels, then `finish_s` on the host."""

    compute_s = 0.02
    finish_s = 0.0
    share = 0.9

    def open(self, device: str) -> FakeProver:
        super().open(device)
        return PlayingProver(self, device)


class PlayingProver(FakeProver):
    """On one device. A fate that is planned there comes instead of computing."""

    def __init__(self, setup: PlayingSetup, device: str) -> None:
        super().__init__(setup, device)
        self._plays = setup

    def prove(self, prepared: tuple[str, int], turn: Turn) -> bytes:
        plays = self._plays
        fate = plays.next_fate(self._device)
        try:
            (fate or self._compute)(turn)
        except WrongProof:
            return b"wrong"
        time.sleep(plays.finish_s)
        return fake_proof(*prepared)

    def _compute(self, turn: Turn) -> None:
        with turn.on_device():
            time.sleep(self._plays.compute_s)
            turn.computed(1000 * self._plays.compute_s * self._plays.share)


class Playing:
    """`with` it: an engine, and the observation of it. Jobs that end are told as a daemon tells them."""

    def __init__(
        self,
        devices: Sequence[str] = ("cuda:0",),
        *,
        compute_s: float = 0.02,
        finish_s: float = 0.0,
        prepare_s: float = 0.01,
        surroundings: Surroundings | None = None,
        cards: CardReadings | None = None,
        **settings: Any,
    ) -> None:
        self.setup = PlayingSetup("porep-32GiB", device_bytes=60 * GIB, host_bytes=2 * GIB)
        self.setup.compute_s, self.setup.finish_s = compute_s, finish_s
        self.prepare_s = prepare_s
        self.settings = Settings(**settings)
        self.observation = Observation()
        self.engine = Pipeline(
            [DevicePlace(name=name, memory_bytes=140 * GIB) for name in devices],
            host_bytes=64 * GIB,
            settings=self.settings,
            recorder=self.observation.recorder,
        )
        self.observation.begin(self, surroundings, cards=cards)

    def status(self) -> EngineStatus:
        return self.engine.status()

    def events(self, *, limit: int = 1000) -> Subscription:
        return self.engine.events(limit=limit)

    def work(self, name: str, partitions: int = 10, kind: str = "porep-c2") -> FakeWork:
        return FakeWork(
            name,
            tuple(range(partitions)),
            self.setup,
            kind,
            input_bytes=70 * MIB,
            partition_bytes=200 * MIB,
            preparing=lambda _: time.sleep(self.prepare_s),
        )

    def submit(self, name: str, partitions: int = 10, *, kind: str = "porep-c2", **given: Any) -> Job:
        return self.prove(self.work(name, partitions, kind), **given)

    def prove(self, work: FakeWork, *, priority: Priority = Priority.NORMAL, **given: Any) -> Job:
        job = self.engine.submit(work, request_id=work.digest, priority=priority, **given)
        job.then(lambda result: self._ended(work.kind, result))
        return job

    def proven(self, *jobs: Job) -> None:
        """Waits until they have ended, and that has been told: whoever waits for a job goes on before."""
        for job in jobs:
            result = job.wait(SOON_S)
            assert result is not None and result.proof is not None, result
        end, history = time.monotonic() + SOON_S, self.observation.history
        while not {job.id for job in jobs} <= {one.job_id for _, one in history.look().results}:
            assert time.monotonic() < end
            time.sleep(0.001)

    def _ended(self, kind: str, result: JobResult) -> None:
        self.observation.end(
            Ended(
                job_id=result.job_id,
                kind=kind,
                status=result.status,
                timings=result.timings,
                partitions=result.partitions,
                error=result.error,
            )
        )

    def __enter__(self) -> Playing:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close(drain=False, timeout_s=10.0)
        self.observation.close()
