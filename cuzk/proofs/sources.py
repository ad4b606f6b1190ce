"""What a caller gives: an input, some of its partitions, perhaps randomness; refused if it makes no sense."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cuzk.errors import InputError, UsageError, blamed_on
from cuzk.events import Notice, OnEvent
from cuzk.groth16.parameters.locate import Found
from cuzk.groth16.proof import PROOF_BYTES
from cuzk.kernels.modulus import FR
from cuzk.proofs.kinds import kind_named, read_pieces
from cuzk.sector.claim import SHORT, SNAP, WINDOW, WINNING, ProofInput
from cuzk.sector.document import read_document, unzipped
from cuzk.sector.pieces import Pieces, SideInputs, encode_envelope, parse_envelope, parse_list
from cuzk.sector.porep.c1 import C1
from cuzk.sector.porep.c1_reader import parse_c1
from cuzk.sector.porep.c1_writer import encode_c1

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

Source = str | os.PathLike[str] | bytes
InputSource = Source | Pieces | ProofInput
MEMORY_ORIGIN = "the given bytes"
_HEAD_BYTES = 1024
#: What must stand beside a list of each kind.
_BESIDE_LISTS = {
    SNAP: ("comm_r_old", "comm_r_new", "comm_d_new"),
    WINDOW: ("randomness",),
    WINNING: ("randomness",),
}


def read_input(source: InputSource, beside: SideInputs | None = None) -> ProofInput:
    """What a path, bytes, pieces or an input in memory stand for.

    beside  belongs to a bare list of vanilla proofs, and only to it: all else says everything itself
    Raises InputError; UsageError where `beside` is too little or too much.
    """
    if isinstance(source, bytes):
        return _parsed(source, MEMORY_ORIGIN, beside)
    if isinstance(source, str | os.PathLike):
        return _parsed(read_document(Path(source)), os.fspath(source), beside)
    return _as_said(read_pieces(source) if isinstance(source, Pieces) else source, beside)


def _parsed(data: bytes, origin: str, beside: SideInputs | None) -> ProofInput:
    given = pieces_or_c1(data, origin, beside)
    if isinstance(given, Pieces):
        return read_pieces(given)
    return _as_said(parse_c1(given, origin=origin), beside)


def pieces_or_c1(data: bytes, origin: str, beside: SideInputs | None) -> Pieces | bytes:
    """The pieces in a document, gzipped or not: a list, to which `beside` belongs, or an envelope. All else
    should be a Commit 1 output, and comes back unzipped.

    Raises InputError; UsageError where `beside` is too little for a list, or too much for an envelope.
    """
    data = unzipped(data, origin)
    if len(data) % PROOF_BYTES == 0 and not data.lstrip().startswith((b"{", b"[")):
        raise InputError(
            "this looks like a proof, not like what one proves",
            where=origin,
            next="give the Commit 1 output or vanilla proofs; the order of `cuzk verify` is FILE PROOF",
        )
    if data.lstrip().startswith(b"["):
        return _listed(parse_list(data, origin=origin), origin, beside or SideInputs())
    if not _is_envelope(data):
        return data
    pieces = parse_envelope(data, origin=origin)
    _require_agreement(pieces.kind, origin, beside)
    return pieces


def _listed(pieces: Sequence[bytes], origin: str, beside: SideInputs) -> Pieces:
    """A bare list and what stands beside it. Raises UsageError unless that is right and all that it takes."""
    if not beside.kind:
        raise UsageError(
            "a list of vanilla proofs does not say what it proves",
            where=origin,
            next="add --kind snap, wpost or winning, and what belongs to it: see --help",
        )
    kind = kind_named(beside.kind)
    if kind.in_pieces is None:
        raise UsageError(
            f"a list of vanilla proofs is no input of kind {SHORT[kind.name]}",
            where=origin,
            next="give the output of Commit 1, or another kind",
        )
    for name in _BESIDE_LISTS[kind.name]:
        if not getattr(beside, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"a list does not say its {name}", where=origin, next=f"add {option} HEX")
    if beside.sector_size:
        kind.shape(beside.sector_size)  # there is such a size
    elif beside.registered_proof is None:
        raise UsageError(
            "nothing says which sector size this is",
            where=origin,
            next="add --registered-proof N or --sector-size SIZE",
        )
    with blamed_on("--registered-proof"):
        return Pieces.of(pieces, replace(beside, kind=kind.name), origin=origin)


def _is_envelope(data: bytes) -> bool:
    """Only it has a key `kind`: 50 MB of a Commit 1 output in its usual form need no search for that."""
    return b'"Phase1Out"' not in data[:_HEAD_BYTES] and b'"kind"' in data


def _as_said(given: ProofInput, beside: SideInputs | None) -> ProofInput:
    """The same input. Raises UsageError unless what stands beside it agrees."""
    _require_agreement(given.shape.kind, given.origin, beside)
    return given


def _require_agreement(kind: str, origin: str, beside: SideInputs | None) -> None:
    """Beside an input that says all itself only its kind may stand, and must be right."""
    if beside is None or beside == SideInputs():
        return
    if beside != SideInputs(kind=beside.kind):
        raise UsageError(
            "the input says itself what it proves: nothing can be added to it",
            where=origin,
            next="leave out what belongs to a bare list of vanilla proofs",
        )
    if kind_named(beside.kind).name != kind:
        raise UsageError(
            f"this is a {SHORT[kind]} input",
            where=origin,
            next=f"not {beside.kind}: leave the kind out",
        )


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
            f"a {SHORT[given.shape.kind]} input does not depend on the miner",
            where="--miner",
            next="leave it out",
        )
    for partition in range(given.partition_count):
        given.check_partition(partition, device)


def encoded_input(made: C1 | Pieces) -> bytes:
    """The file that `read_input` reads it from."""
    return encode_c1(made) if isinstance(made, C1) else encode_envelope(made)


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
