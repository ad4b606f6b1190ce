"""What the engine tells a timeline: who did what, when, to which partition."""

from __future__ import annotations

from typing import Any, Protocol


class Recorder(Protocol):
    """Takes an event of a job at the moment it happens, from any thread; returns quickly and never fails.

    A detail `at_ns` is an earlier reading of the clock: of `time.monotonic_ns`, if the engine has no other.
    `timeline.record.Timeline` is one.
    """

    def record(self, name: str, job: str, **detail: Any) -> object: ...


class NoRecorder:
    """Of engines whose timeline nobody wants."""

    def record(self, name: str, job: str, **detail: Any) -> None:
        """Nothing."""
