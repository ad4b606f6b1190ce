"""What a caller gives: an input, some of its partitions, perhaps randomness; refused if it makes no sense."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cuzk.errors import UsageError
from cuzk.events import Notice, OnEvent
from cuzk.groth16.locate import Found
from cuzk.kernels.modulus import FR
from cuzk.sector.c1 import parse_c1, read_c1
from cuzk.sector.claim import ProofInput
from cuzk.sector.porep import C1

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

Source = str | os.PathLike[str] | bytes
InputSource = Source | ProofInput
MEMORY_ORIGIN = "the given bytes"


def read_input(source: InputSource) -> ProofInput:
    """What a path, bytes or an input in memory stand for. Raises InputError."""
    if isinstance(source, bytes):
        return parse_c1(source, origin=MEMORY_ORIGIN)
    return read_c1(Path(source)) if isinstance(source, str | os.PathLike) else source


def check_input(given: ProofInput, device: CpuDevice, *, miner: int | None = None) -> None:
    """Every native check. Raises InputError, with place and what to do, unless the input passes.

    miner  the numeric id whose sector this should be, if the caller knows it
    """
    if miner is None:
        given.check_statement()
    elif isinstance(given, C1):
        given.check_statement(miner=miner)
    else:
        raise UsageError(
            f"a {given.shape.kind} input does not depend on the miner", where="--miner", next="leave it out"
        )
    for partition in range(given.partition_count):
        given.check_partition(partition, device)


def chosen_partitions(given: ProofInput, partitions: Sequence[int] | None) -> tuple[int, ...]:
    """In order, each once; None means all. Raises UsageError for one that the input does not have."""
    count = given.partition_count
    chosen = tuple(range(count)) if partitions is None else tuple(sorted(set(partitions)))
    unknown = [k for k in chosen if not 0 <= k < count]
    if unknown or not chosen:
        raise UsageError(
            f"there is no partition {', '.join(map(str, unknown)) or 'in an empty list'}",
            where=given.origin,
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
