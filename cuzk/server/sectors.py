"""The engine for all kinds of proofs, as the server asks for it."""

from __future__ import annotations

from cuzk.engine.events import Subscription
from cuzk.engine.jobs import Job, Priority
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.errors import UsageError
from cuzk.proofs.kinds import KINDS, setup_name
from cuzk.proofs.sector_engine import Engine
from cuzk.sector.claim import CircuitShape
from cuzk.server.kinds import circuit_id
from cuzk.server.seam import ProofRequest


class SectorProver:
    """Borrows the engine, but for `close`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        shapes = [shape for kind in KINDS for shape in kind.shapes()]
        self._shapes = {circuit_id(setup_name(shape)): shape for shape in shapes}

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
        shape = self._shape(circuit)
        return self._engine.preload(shape.sector_bytes, kind=shape.kind)

    def evict(self, circuit: str) -> bool:
        shape = self._shape(circuit)
        return self._engine.evict(shape.sector_bytes, kind=shape.kind)

    def _shape(self, circuit: str) -> CircuitShape:
        if circuit not in self._shapes:
            raise UsageError(f"unknown circuit ID: {circuit}", next=f"known are {', '.join(self._shapes)}")
        return self._shapes[circuit]

    def status(self) -> EngineStatus:
        return self._engine.status()

    def events(self, *, limit: int = 1000) -> Subscription:
        return self._engine.events(limit=limit)

    def close(self, *, drain: bool = True, timeout_s: float | None = None) -> bool:
        return self._engine.close(drain=drain, timeout_s=timeout_s)
