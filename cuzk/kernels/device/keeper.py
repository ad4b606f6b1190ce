"""What one object holds of a device, given back together."""

from __future__ import annotations

from typing import Protocol, TypeVar


class Closable(Protocol):
    def close(self) -> None: ...


Kept = TypeVar("Kept", bound=Closable)
Own = TypeVar("Own", bound="Keeper")


class Keeper:
    """Base of what computes on a device with arrays, pinned memory and graphs of its own.

    `close` or `with` gives them back; what it was given stays its owner's.
    """

    def __init__(self) -> None:
        self._kept: list[Closable] = []

    def keep(self, thing: Kept) -> Kept:
        """The thing itself, from now on given back with the rest."""
        self._kept.append(thing)
        return thing

    def close(self) -> None:
        """A second time does nothing."""
        while self._kept:
            self._kept.pop().close()

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
