"""What a caller gives: a sector, some of its partitions, perhaps randomness; refused if it makes no sense."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cuzk.errors import UsageError
from cuzk.events import Notice, OnEvent
from cuzk.groth16.locate import Found
from cuzk.kernels.modulus import FR
from cuzk.sector.c1 import parse_c1, read_c1
from cuzk.sector.inputs import C1

Source = str | os.PathLike[str] | bytes
SectorSource = Source | C1
MEMORY_ORIGIN = "the given bytes"


def read_sector(source: SectorSource) -> C1:
    """What a path, bytes or a sector in memory stand for. Raises InputError."""
    if isinstance(source, C1):
        return source
    return parse_c1(source, origin=MEMORY_ORIGIN) if isinstance(source, bytes) else read_c1(Path(source))


def chosen_partitions(c1: C1, partitions: Sequence[int] | None) -> tuple[int, ...]:
    """In order, each once; None means all. Raises UsageError for one that the sector does not have."""
    count = len(c1.partitions)
    chosen = tuple(range(count)) if partitions is None else tuple(sorted(set(partitions)))
    unknown = [k for k in chosen if not 0 <= k < count]
    if unknown or not chosen:
        raise UsageError(
            f"there is no partition {', '.join(map(str, unknown)) or 'in an empty list'}",
            where=c1.origin,
            next=f"partitions are 0 to {count - 1}",
        )
    return chosen


def require_randomizers(rs: tuple[int, int], on_event: OnEvent) -> None:
    """Raises UsageError unless r and s are numbers of the field; warns that they are fixed."""
    if not all(0 <= value < FR.p for value in rs):
        raise UsageError("R and S must be in [0, r)", where="--insecure-rs", next="give two smaller integers")
    on_event(
        Notice(
            level="warning",
            text="INSECURE: the randomness of this proof is fixed. "
            "It is not zero-knowledge and can leak the sector's data",
        )
    )


def warn_of_development(found: Found, on_event: OnEvent) -> None:
    if found.is_development:
        on_event(
            Notice(
                level="warning",
                text=f"development parameters, from {found.path.parent}: no network accepts such proofs",
            )
        )
