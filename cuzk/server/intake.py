"""A client's request, as its bytes came, read and checked before it may wait in a queue.

Runs in processes of `readers`: a request of 70 MB keeps Python's lock for a second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from google.protobuf.message import DecodeError

from cuzk.engine.jobs import Priority
from cuzk.errors import InputError
from cuzk.events import ignore
from cuzk.proofs.kinds import read_pieces
from cuzk.proofs.sources import check_input
from cuzk.sector.claim import POREP, ProofInput
from cuzk.sector.pieces import Pieces, SideInputs
from cuzk.sector.porep.c1_reader import parse_c1
from cuzk.server import proving_pb2 as pb
from cuzk.server.kinds import KINDS, Kind
from cuzk.server.seam import ProofRequest

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

_PRIORITIES: dict[int, Priority] = {
    pb.LOW: Priority.LOW,
    pb.NORMAL: Priority.NORMAL,
    pb.HIGH: Priority.HIGH,
    pb.CRITICAL: Priority.CRITICAL,
}
_LONGEST_NAME = 1024  # bytes of a client's name for its job, which goes into logs, errors and pages
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
#: What is to be proven, and what is odd about the request; checked, if it is told to. Raises InputError.
ReadSource = Callable[[pb.SubmitProofRequest, bool], tuple[object, str]]


def read_request(data: bytes, check: bool) -> ProofRequest:
    """The request in the bytes of a ProveRequest. Raises InputError that names field or place.

    check  all of it; else it has been checked before
    """
    return read_with(_read_source, data, check)


def read_with(read: ReadSource, data: bytes, check: bool) -> ProofRequest:
    """The same, by what reads the source."""
    try:
        prove = pb.ProveRequest.FromString(data)
    except DecodeError as error:
        raise InputError(f"this is no ProveRequest: {error}", next="see proving.proto") from error
    if not prove.HasField("submit"):
        _fail("missing submit field", "submit", "send the request in it")
    submit = prove.submit
    if (length := len(submit.request_id.encode())) > _LONGEST_NAME:
        what = f"request_id has {length} bytes, {_LONGEST_NAME} are the most"
        _fail(what, "request_id", "send a shorter name")
    kind = KINDS.get(submit.proof_kind)
    if kind is None:
        _fail(f"invalid proof_kind: {submit.proof_kind}", "proof_kind", "kinds are 1 to 4")
    source, note = read(submit, check)
    return ProofRequest(
        kind=kind,
        request_id=submit.request_id,
        priority=_priority(submit.priority, kind),
        digest=digest_of(submit),
        source=source,
        note=note,
    )


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


def _read_source(submit: pb.SubmitProofRequest, check: bool) -> tuple[object, str]:
    kind = KINDS[submit.proof_kind]
    read = _read_porep if kind.name == POREP else _read_pieces
    given, note, miner = read(submit)
    if check:
        check_input(given, _host(), miner=miner)
    return given, note


def _read_porep(submit: pb.SubmitProofRequest) -> tuple[ProofInput, str, int | None]:
    """The sector, what is odd about it, the miner to check. Number and miner are those of the request."""
    if not submit.vanilla_proof:
        _fail("vanilla_proof is empty", "vanilla_proof", "send the Commit 1 output of the sector")
    c1 = parse_c1(submit.vanilla_proof, origin=submit.request_id or "vanilla_proof")
    if submit.sector_size not in (0, c1.shape.sector_bytes):
        what = f"sector_size is {submit.sector_size}, the Commit 1 output is of {c1.shape.sector_bytes} bytes"
        _fail(what, "sector_size", "send the size of the sector, or 0")
    miner = submit.miner_id or None
    if miner is not None:
        c1 = replace(c1, sector_number=submit.sector_number)
    number = c1.registered_proof.number
    if submit.registered_proof in (0, number):
        return c1, "", miner
    note = f"registered_proof is {submit.registered_proof}, the Commit 1 output says {number}"
    return c1, note, miner


def _read_pieces(submit: pb.SubmitProofRequest) -> tuple[ProofInput, str, None]:
    """An update, or a proof of spacetime."""
    kind = KINDS[submit.proof_kind]
    if not submit.vanilla_proofs:
        _fail("vanilla_proofs is empty", "vanilla_proofs", "send one piece a sector, or a partition")
    number = submit.registered_proof or (None if submit.sector_size else 0)  # 0 may say nothing
    beside = SideInputs(
        kind=kind.name,
        registered_proof=number,
        sector_size=submit.sector_size,
        randomness=submit.randomness,
        partition_index=submit.partition_index,
        comm_r_old=submit.comm_r_old,
        comm_r_new=submit.comm_r_new,
        comm_d_new=submit.comm_d_new,
        miner_id=submit.miner_id,
        sector_number=submit.sector_number,
    )
    origin = submit.request_id or "vanilla_proofs"
    return read_pieces(Pieces.of(submit.vanilla_proofs, beside, origin=origin)), "", None


def prepare_to_read() -> None:
    """Load what the first request would wait for: compilers take a second."""
    _host()


@cache
def _host() -> CpuDevice:
    """The threads that check, with the kernels for it."""
    from cuzk.kernels.device.cpu import CpuDevice
    from cuzk.proofs.warm_up import TO_CHECK, warm_up

    host = CpuDevice()
    warm_up(host, TO_CHECK, ignore)
    return host


def _fail(what: str, where: str, next: str) -> NoReturn:
    raise InputError(what, where=where, next=next)
