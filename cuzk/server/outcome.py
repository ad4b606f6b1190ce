"""How a job of the daemon ended."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.engine.jobs import Status, Timings
from cuzk.errors import EngineError

NO_TIME = Timings(total_ms=0, queue_ms=0, srs_ms=0, synth_ms=0, gpu_ms=0, lock_ms=0)


class HandedBack(EngineError):
    """The daemon ended before the job did."""


class HandedBackSuspect(HandedBack):
    """Because the engine failed while it had the job, which may be what it failed of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Its proof where it is COMPLETED, else why not.

    timings   from its acceptance by the server on
    ended_at  seconds since 1970
    """

    status: Status
    proof: bytes = b""
    error: Exception | None = None
    timings: Timings = NO_TIME
    ended_at: float = 0.0

    @property
    def is_handed_back(self) -> bool:
        return isinstance(self.error, HandedBack)

    @property
    def is_suspect(self) -> bool:
        """Of what was handed back: perhaps the daemon ended because of it."""
        return isinstance(self.error, HandedBackSuspect)

    @property
    def error_text(self) -> str:
        if self.error is None:
            return ""
        return str(self.error) or type(self.error).__name__
