"""The kinds of proofs by all the names they go by, and the circuits whose parameters clients ask for."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.engine.jobs import Priority
from cuzk.server import proving_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind.

    number    in requests
    name      in queues, logs and the status document
    label     in metrics
    priority  of requests that name none
    first     number of its first registered proof, which is of 2 KiB
    """

    number: int
    name: str
    label: str
    priority: Priority
    first: int = 0


POREP = Kind(number=pb.POREP_SEAL_COMMIT, name="porep-c2", label="porep_c2", priority=Priority.NORMAL)
SNAP = Kind(number=pb.SNAP_DEALS_UPDATE, name="snap-update", label="snap_update", priority=Priority.NORMAL)
WINDOW = Kind(
    number=pb.WINDOW_POST_PARTITION, name="window-post", label="window_post", priority=Priority.HIGH, first=5
)
WINNING = Kind(number=pb.WINNING_POST, name="winning-post", label="winning_post", priority=Priority.CRITICAL)
#: By number.
KINDS = {kind.number: kind for kind in (POREP, SNAP, WINDOW, WINNING)}


def circuit_id(setup: str) -> str:
    """Clients' name for the parameters that an engine calls so: porep-32g for porep-32GiB."""
    return setup.lower().removesuffix("ib")
