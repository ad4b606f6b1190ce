"""The engine for sectors, as the server asks for it."""

from __future__ import annotations

from cuzk.engine.events import Subscription
from cuzk.engine.jobs import Job, Priority
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.errors import UsageError
from cuzk.kinds import setup_name
from cuzk.sector.registered_proof import all_registered_proofs
from cuzk.sector_engine import Engine
from cuzk.server.kinds import circuit_id
from cuzk.server.seam import ProofRequest


class SectorProver:
    """Borrows the engine, but for `close`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        shapes = {proof.shape for proof in all_registered_proofs()}
        self._sizes = {circuit_id(setup_name(shape)): shape.sector_bytes for shape in shapes}

    @property
    def settings(self) -> Settings:
        return self._engine.settings

    def submit(self, request: ProofRequest, job_id: str) -> Job:
        return self._engine.submit(request.source, request_id=job_id, priority=request.priority)

    def urge(self, job: Job, priority: Priority) -> None:
        self._engine.urge(job, priority)

    def preload(self, circuit: str) -> bool:
        return self._engine.preload(self._size(circuit))

    def evict(self, circuit: str) -> bool:
        return self._engine.evict(self._size(circuit))

    def _size(self, circuit: str) -> int:
        if circuit not in self._sizes:
            raise UsageError(
                f"unknown circuit ID: {circuit}", next=f"known are {', '.join(sorted(self._sizes))}"
            )
        return self._sizes[circuit]

    def status(self) -> EngineStatus:
        return self._engine.status()

    def events(self, *, limit: int = 1000) -> Subscription:
        return self._engine.events(limit=limit)

    def close(self, *, drain: bool = True, timeout_s: float | None = None) -> bool:
        return self._engine.close(drain=drain, timeout_s=timeout_s)
