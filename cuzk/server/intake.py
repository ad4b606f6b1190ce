"""A client's request, as its bytes came, read and checked before it may wait in a queue.

Runs in processes of `readers`, since a request of 70 MB keeps Python's lock for a second. Loads no compiler.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from google.protobuf.message import DecodeError

from cuzk.engine.jobs import Priority
from cuzk.errors import InputError
from cuzk.sector.c1 import parse_c1
from cuzk.sector.check import check_statement
from cuzk.sector.porep import C1
from cuzk.server import proving_pb2 as pb
from cuzk.server.kinds import KINDS, POREP, Kind
from cuzk.server.seam import ProofRequest

_PRIORITIES: dict[int, Priority] = {
    pb.LOW: Priority.LOW,
    pb.NORMAL: Priority.NORMAL,
    pb.HIGH: Priority.HIGH,
    pb.CRITICAL: Priority.CRITICAL,
}
_LENGTH_DELIMITED = 2  # of protobuf's wire types
#: What a request consists of beside its name and its urgency: these fields make two requests the same.
_INPUTS = (
    "sector_size",
    "registered_proof",
    "sector_number",
    "miner_id",
    "randomness",
    "partition_index",
    "comm_r_old",
    "comm_r_new",
    "comm_d_new",
)


#: What is to be proven, and what is odd about the request. Raises InputError.
ReadSource = Callable[[pb.SubmitProofRequest], tuple[Any, str]]


class UnknownKind(InputError):
    """A kind of proof that the contract has and this server has not."""


def read_request(data: bytes) -> ProofRequest:
    """The request in the bytes of a ProveRequest. Raises InputError that names field or place."""
    return read_with({POREP: _read_porep}, data)


def read_with(readers: Mapping[Kind, ReadSource], data: bytes) -> ProofRequest:
    """The same, by what reads each kind."""
    try:
        prove = pb.ProveRequest.FromString(data)
    except DecodeError as error:
        raise InputError(f"this is no ProveRequest: {error}", next="see proving.proto") from error
    if not prove.HasField("submit"):
        _fail("missing submit field", "submit", "send the request in it")
    submit = prove.submit
    kind = KINDS.get(submit.proof_kind)
    if kind is None:
        _fail(f"invalid proof_kind: {submit.proof_kind}", "proof_kind", "kinds are 1 to 4")
    read = readers.get(kind)
    if read is None:
        raise UnknownKind(f"{kind.name} is not proven here", where="proof_kind", next="send it elsewhere")
    source, note = read(submit)
    return ProofRequest(
        kind=kind,
        request_id=submit.request_id,
        priority=_priority(submit.priority, kind),
        digest=digest_of(submit),
        source=source,
        note=note,
    )


def as_prove_request(submit: bytes) -> bytes:
    """The bytes of a ProveRequest around those of a SubmitProofRequest."""
    length, prefix = len(submit), bytearray([pb.ProveRequest.SUBMIT_FIELD_NUMBER << 3 | _LENGTH_DELIMITED])
    while length >= 0x80:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + submit


def digest_of(submit: pb.SubmitProofRequest) -> str:
    """Of all that decides what is proven, each part after its length."""
    digest = hashlib.sha256(f"{submit.proof_kind};".encode())
    for name in _INPUTS:
        value = getattr(submit, name)
        part = value if isinstance(value, bytes) else str(value).encode()
        digest.update(f"{name}:{len(part)}:".encode() + part)
    for piece in (submit.vanilla_proof, *submit.vanilla_proofs):
        digest.update(f"{len(piece)}:".encode())
        digest.update(piece)
    return digest.hexdigest()


def _priority(number: int, kind: Kind) -> Priority:
    """As the contract has it: none is the kind's own, an unknown one is NORMAL."""
    if number == pb.PRIORITY_UNSPECIFIED:
        return kind.priority
    return _PRIORITIES.get(number, Priority.NORMAL)


def _read_porep(submit: pb.SubmitProofRequest) -> tuple[C1, str]:
    """The sector, and what is odd about it. Sector and miner are those of the request, where it has them."""
    if not submit.vanilla_proof:
        _fail("vanilla_proof is empty", "vanilla_proof", "send the Commit 1 output of the sector")
    c1 = parse_c1(submit.vanilla_proof, origin=submit.request_id or "vanilla_proof")
    if submit.sector_size not in (0, c1.shape.sector_bytes):
        what = f"sector_size is {submit.sector_size}, the Commit 1 output is of {c1.shape.sector_bytes} bytes"
        _fail(what, "sector_size", "send the size of the sector, or 0")
    if submit.miner_id:
        check_statement(replace(c1, sector_number=submit.sector_number), miner=submit.miner_id)
    else:
        check_statement(c1)
    number = c1.registered_proof.number
    if submit.registered_proof in (0, number):
        return c1, ""
    return c1, f"registered_proof is {submit.registered_proof}, the Commit 1 output says {number}"


def _fail(what: str, where: str, next: str) -> NoReturn:
    raise InputError(what, where=where, next=next)
