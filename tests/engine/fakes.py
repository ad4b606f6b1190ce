"""An engine's counterparts for tests: work, setups and provers that do nothing, fail and stall on demand.

A *fate* says what becomes of one attempt to prove one partition; fates are given by device and consumed in
order. The proof of partition k of work "x" is b"x:k;", and the whole proof is theirs joined.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuzk.engine.device_lock import DeviceLock
from cuzk.engine.seam import Needs
from cuzk.engine.turn import Turn
from cuzk.errors import ProofError

#: Given the turn, does what should happen on the device; what it raises is the prover's.
Fate = Callable[[Turn], None]


class WrongProof(Exception):
    """Raised by a fate: the prover returns bytes that do not verify."""


def wrong(turn: Turn) -> None:
    raise WrongProof


def raises(error: Exception) -> Fate:
    def fate(turn: Turn) -> None:
        raise error

    return fate


def stalls(until: threading.Event) -> Fate:
    """The device holds still until the event; the lock is held meanwhile."""

    def fate(turn: Turn) -> None:
        with turn.on_device():
            until.wait()
            turn.boundary()

    return fate


def turn_alone(
    lock: DeviceLock,
    mode: Any = "narrow",
    *,
    user: str = "prover",
    urgency: int = 0,
    is_over: Callable[[], bool] = lambda: False,
    is_overtaken: Callable[[], bool] = lambda: False,
    begins: Callable[[], bool] = lambda: True,
    record: Callable[..., None] = lambda name, **detail: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Turn:
    """A turn on a device without an engine around it."""
    return Turn(
        lock,
        mode,
        user=user,
        urgency=lambda: urgency,
        is_over=is_over,
        is_overtaken=is_overtaken,
        begins=begins,
        pauses=lambda: None,
        record=record,
        clock=clock,
    )


@dataclass(eq=False)
class FakeSetup:
    """Parameters that are nothing but a name and a size.

    fates    by device: what happens to the next proofs there, then all goes well
    opening  by device: raised instead of opening
    opened   names of devices on which it is open now, once for each prover; guarded by _lock
    """

    name: str = "fake-2KiB"
    device_bytes: int = 0
    host_bytes: int = 0
    fates: dict[str, deque[Fate]] = field(default_factory=dict)
    opening: dict[str, Exception] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def key(self) -> str:
        return self.name

    def needs(self, device: str) -> Needs:
        return Needs(device=self.device_bytes, host=self.host_bytes)

    def open(self, device: str) -> FakeProver:
        if device in self.opening:
            raise self.opening[device]
        with self._lock:
            self.opened.append(device)
        return FakeProver(self, device)

    def closed(self, device: str) -> None:
        with self._lock:
            self.opened.remove(device)

    def next_fate(self, device: str) -> Fate | None:
        fates = self.fates.get(device)
        with self._lock:
            return fates.popleft() if fates else None


class FakeProver:
    """Proves by naming what it was given; `running` counts proofs inside `on_device` at a moment."""

    def __init__(self, setup: FakeSetup, device: str) -> None:
        self._setup, self._device = setup, device
        self._is_closed = False
        self.running = self.most_running = 0

    def prove(self, prepared: tuple[str, int], turn: Turn) -> bytes:
        assert not self._is_closed, "used after it was closed"
        name, partition = prepared
        fate = self._setup.next_fate(self._device)
        try:
            if fate is not None:
                fate(turn)
        except WrongProof:
            return b"wrong"
        with turn.on_device():
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            self.running -= 1
        return fake_proof(name, partition)

    def close(self) -> None:
        assert not self._is_closed, "closed twice"
        self._is_closed = True
        self._setup.closed(self._device)


@dataclass(eq=False)
class FakeWork:
    """Work by name: `digest` is the name, so works of equal names are the same.

    preparing  called with each partition when it is prepared
    assembling  called before the whole proof is put together
    """

    digest: str
    partitions: tuple[int, ...] = (0,)
    setup: FakeSetup = field(default_factory=FakeSetup)
    kind: str = "fake"
    input_bytes: int = 0
    partition_bytes: int = 0
    preparing: Callable[[int], None] = lambda partition: None
    assembling: Callable[[], None] = lambda: None

    def prepare(self, partition: int) -> Any:
        self.preparing(partition)
        return self.digest, partition

    def holds(self, partition: int, proof: bytes) -> bool:
        return proof == fake_proof(self.digest, partition)

    def assemble(self, proofs: Sequence[bytes]) -> bytes:
        self.assembling()
        if list(proofs) != [fake_proof(self.digest, k) for k in self.partitions]:
            raise ProofError("proofs of other partitions")
        return b"".join(proofs)

    @property
    def whole_proof(self) -> bytes:
        """What a job of it must give."""
        return b"".join(fake_proof(self.digest, k) for k in self.partitions)


def fake_proof(name: str, partition: int) -> bytes:
    return f"{name}:{partition};".encode()
