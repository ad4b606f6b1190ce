"""Vanilla proofs that travel in pieces, and what a caller says beside them: of every kind but PoRep.

A stored list is a JSON array of base64 strings, one a piece, and says nothing else. Our own envelope is a
JSON object with such a list in `vanilla_proofs` and all the rest in fields of its own: one file is enough.
Sources: curio, lib/proof and extern/cuzk/cuzk-proto; filecoin-proofs-api, registry.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NoReturn, TypeVar

import msgspec

from cuzk.errors import InputError
from cuzk.sector.api_version import ApiVersion
from cuzk.sector.claim import POREP, SHORT, SNAP, WINDOW, WINNING
from cuzk.sector.shape import GIB, KIB, MIB, shape_of, size_name

_SIZES = (2 * KIB, 8 * MIB, 512 * MIB, 32 * GIB, 64 * GIB)
#: For each kind: the number of its first registered proof, and the API version of each family of five.
_FAMILIES = {
    SNAP: (0, (ApiVersion.V1_0,)),
    WINNING: (0, (ApiVersion.V1_0,)),
    WINDOW: (5, (ApiVersion.V1_0, ApiVersion.V1_2)),
}
_IN_ENVELOPES = {"snap": SNAP, "window": WINDOW, "winning": WINNING}
_NEXT = "make the file again, or copy it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideInputs:
    """What a list of vanilla proofs does not say of itself. Hashes are 32 bytes.

    kind              of the proofs, as `proofs.kinds` names it
    registered_proof  the number, for the sizes that have one; says size and API version
    sector_size       in bytes; 0 where the number says it
    partition_index   which of a deadline's window proofs; matters to API version 1.0.0 only
    """

    kind: str = ""
    registered_proof: int | None = None
    sector_size: int = 0
    randomness: bytes = b""
    partition_index: int = 0
    comm_r_old: bytes = b""
    comm_r_new: bytes = b""
    comm_d_new: bytes = b""
    miner_id: int | None = None
    sector_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces(SideInputs):
    """Vanilla proofs in bincode, one a sector (PoSt) or a partition (updates), and all that belongs to them.

    origin                     where they came from, for messages
    sector_bytes, api_version  what number and size come to
    """

    origin: str
    pieces: tuple[bytes, ...]
    sector_bytes: int
    api_version: ApiVersion = ApiVersion.V1_0

    def __post_init__(self) -> None:
        _require_pieces(self.kind, self.origin)

    @classmethod
    def of(cls, pieces: Sequence[bytes], beside: SideInputs, *, origin: str) -> Pieces:
        """Raises InputError for another kind; when number and size are missing or contradict each other."""
        sector_bytes, api_version = _size_and_version(beside, origin)
        return cls(
            **asdict(beside),
            origin=origin,
            pieces=tuple(pieces),
            sector_bytes=sector_bytes,
            api_version=api_version,
        )


def _require_pieces(kind: str, origin: str) -> None:
    if kind not in _FAMILIES:
        next = "give the output of Commit 1" if kind == POREP else f"kinds are {', '.join(_FAMILIES)}"
        raise InputError(f"inputs of kind {kind!r:.80} do not come in pieces", where=origin, next=next)


def _size_and_version(beside: SideInputs, origin: str) -> tuple[int, ApiVersion]:
    """Without a number, the API version that networks use now."""
    _require_pieces(beside.kind, origin)
    first, versions = _FAMILIES[beside.kind]
    number, size = beside.registered_proof, beside.sector_size
    if number is None:
        if not size:
            next = "give the number of the registered proof, or the size of the sectors"
            raise InputError("nothing says which sector size this is", where=origin, next=next)
        return size, versions[-1]
    family, position = divmod(number - first, len(_SIZES))
    if not 0 <= family < len(versions):
        last = first + len(versions) * len(_SIZES) - 1
        raise InputError(
            f"registered proof {number} is none of {SHORT[beside.kind]}",
            where=f"{origin}, registered_proof",
            next=f"they are {first} to {last}",
        )
    if size not in (0, _SIZES[position]):
        raise InputError(
            f"registered proof {number} is of {shape_of(_SIZES[position]).name}, not of {size_name(size)}",
            where=f"{origin}, sector_size",
            next="give the size that the number says, or leave it out",
        )
    return _SIZES[position], versions[family]


class _Envelope(msgspec.Struct, omit_defaults=True):
    """The file form; `bytes` are base64 strings, hashes hexadecimal."""

    kind: str
    sector_size: int
    vanilla_proofs: list[bytes]
    registered_proof: int | None = None
    api_version: str | None = None
    randomness: str = ""
    partition_index: int = 0
    comm_r_old: str = ""
    comm_r_new: str = ""
    comm_d_new: str = ""
    miner_id: int | None = None
    sector_number: int | None = None


def parse_list(data: bytes, *, origin: str) -> list[bytes]:
    """The pieces of a stored list. Raises InputError."""
    return _decoded(data, list[bytes], origin)


def parse_envelope(data: bytes, *, origin: str) -> Pieces:
    """Raises InputError for what is no envelope, or contradicts itself."""
    said = _decoded(data, _Envelope, origin)
    if said.kind not in _IN_ENVELOPES:
        _fail(f"there is no kind of proof {said.kind!r:.80}", f"{origin}, kind")
    beside = SideInputs(
        kind=_IN_ENVELOPES[said.kind],
        registered_proof=said.registered_proof,
        sector_size=said.sector_size,
        randomness=_unhex(said.randomness, f"{origin}, randomness"),
        partition_index=said.partition_index,
        comm_r_old=_unhex(said.comm_r_old, f"{origin}, comm_r_old"),
        comm_r_new=_unhex(said.comm_r_new, f"{origin}, comm_r_new"),
        comm_d_new=_unhex(said.comm_d_new, f"{origin}, comm_d_new"),
        miner_id=said.miner_id,
        sector_number=said.sector_number,
    )
    pieces = Pieces.of(said.vanilla_proofs, beside, origin=origin)
    if said.api_version is None or said.api_version == pieces.api_version.value:
        return pieces
    if said.registered_proof is not None or said.api_version not in {version.value for version in ApiVersion}:
        _fail(f"no such proof has API version {said.api_version!r:.40}", f"{origin}, api_version")
    return replace(pieces, api_version=ApiVersion(said.api_version))


def encode_envelope(pieces: Pieces) -> bytes:
    """What `parse_envelope` reads."""
    envelope = _Envelope(
        kind=next(name for name, kind in _IN_ENVELOPES.items() if kind == pieces.kind),
        sector_size=pieces.sector_bytes,
        vanilla_proofs=list(pieces.pieces),
        registered_proof=pieces.registered_proof,
        api_version=pieces.api_version.value,
        randomness=pieces.randomness.hex(),
        partition_index=pieces.partition_index,
        comm_r_old=pieces.comm_r_old.hex(),
        comm_r_new=pieces.comm_r_new.hex(),
        comm_d_new=pieces.comm_d_new.hex(),
        miner_id=pieces.miner_id,
        sector_number=pieces.sector_number,
    )
    return msgspec.json.encode(envelope)


def _unhex(digits: str, where: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        _fail("this is not hexadecimal", where)


_Form = TypeVar("_Form")


def _decoded(data: bytes, form: type[_Form], origin: str) -> _Form:
    try:
        return msgspec.json.decode(data, type=form)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        place = place.rstrip("`").lstrip(".")
        _fail(what, f"{origin}, {place}" if place else origin)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _fail(f"the file is not whole JSON: {error}", origin)


def _fail(what: str, where: str) -> NoReturn:
    raise InputError(what, where=where, next=_NEXT)
