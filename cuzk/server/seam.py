"""What the server asks of whoever proves. `sectors.SectorProver` is one, tests play another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from cuzk.engine.events import Subscription
from cuzk.engine.jobs import Job, Priority
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.server.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """A request that was read and checked.

    request_id  the client's name for it, perhaps empty
    digest      of every input, hexadecimal
    source      what is proven, in a form that the prover takes
    note        what the log should say of it, if it is odd
    """

    kind: Kind
    request_id: str
    priority: Priority
    digest: str
    source: Any
    note: str = ""


class Prover(Protocol):
    """Methods come from any thread. `submit`, `preload`, `evict` and `close` may take minutes; the rest
    returns at once.
    """

    @property
    def settings(self) -> Settings: ...

    def submit(self, request: ProofRequest, job_id: str) -> Job:
        """Begin to prove it under that id, which no other job has. Raises CuzkError; BusyError is no failure:
        the same can be submitted when another job has ended."""

    def urge(self, job: Job, priority: Priority) -> None:
        """Give a job that is under way a higher priority. Returns at once."""

    def preload(self, circuit: str) -> bool:
        """Have the parameters of a circuit ready. False if they were. Raises CuzkError; UsageError for a
        circuit that it does not know."""

    def evict(self, circuit: str) -> bool:
        """Give them back unless jobs use them. False if they were not there. Raises as `preload`."""

    def status(self) -> EngineStatus: ...

    def events(self, *, limit: int = 1000) -> Subscription: ...

    def close(self, *, drain: bool = True, timeout_s: float | None = None) -> bool:
        """End; False if something was still at work when the time was over."""
