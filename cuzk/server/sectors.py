"""The engine for all kinds of proofs, as the server asks for it."""

from __future__ import annotations

from cuzk.engine.events import Subscription
from cuzk.engine.jobs import Job, Priority
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.proofs.sector_engine import Engine
from cuzk.server.circuits import circuit_named
from cuzk.server.seam import ProofRequest


class SectorProver:
    """Borrows the engine, but for `close`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def settings(self) -> Settings:
        return self._engine.settings

    def submit(self, request: ProofRequest, job_id: str) -> Job:
        return self._engine.submit(
            request.source, request_id=job_id, priority=request.priority, is_checked=True
        )

    def urge(self, job: Job, priority: Priority) -> None:
        self._engine.urge(job, priority)

    def preload(self, circuit: str) -> bool:
        shape = circuit_named(circuit)
        return self._engine.preload(shape.sector_bytes, kind=shape.kind)

    def evict(self, circuit: str) -> bool:
        shape = circuit_named(circuit)
        return self._engine.evict(shape.sector_bytes, kind=shape.kind)

    def status(self) -> EngineStatus:
        return self._engine.status()

    def events(self, *, limit: int = 1000) -> Subscription:
        return self._engine.events(limit=limit)

    def close(self, *, drain: bool = True, timeout_s: float | None = None) -> bool:
        return self._engine.close(drain=drain, timeout_s=timeout_s)
