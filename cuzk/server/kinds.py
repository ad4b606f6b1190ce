"""The kinds of proofs by their numbers in requests."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.engine.jobs import Priority
from cuzk.proofs.kinds import kind_named
from cuzk.sector.claim import POREP, SNAP, WINDOW, WINNING
from cuzk.server import proving_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind.

    number    in requests
    name      in queues, logs and the status document
    priority  of requests that name none
    """

    number: int
    name: str
    priority: Priority


_NUMBERS = {
    POREP: pb.POREP_SEAL_COMMIT,
    SNAP: pb.SNAP_DEALS_UPDATE,
    WINDOW: pb.WINDOW_POST_PARTITION,
    WINNING: pb.WINNING_POST,
}
#: By number.
KINDS: dict[int, Kind] = {
    number: Kind(number=number, name=name, priority=kind_named(name).priority)
    for name, number in _NUMBERS.items()
}
