"""What the engine tells a timeline: who did what, when, to which partition."""

from __future__ import annotations

from typing import Protocol


class Recorder(Protocol):
    """Takes an event of a job at the moment it happens, from any thread; returns quickly and never fails."""

    def record(self, name: str, job: str, **detail: int | str) -> object: ...


class NoRecorder:
    """Of engines whose timeline nobody wants."""

    def record(self, name: str, job: str, **detail: int | str) -> None:
        """Nothing."""
