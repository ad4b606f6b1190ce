"""What a request says of itself in its first bytes, before 70 MB are read, and what is put before them."""

from __future__ import annotations

from cuzk.server import proving_pb2 as pb

_VARINT, _LENGTH_DELIMITED = 0, 2  # of protobuf's wire types
_SUBMIT = pb.ProveRequest.SUBMIT_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_NAME = pb.SubmitProofRequest.REQUEST_ID_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_KIND = pb.SubmitProofRequest.PROOF_KIND_FIELD_NUMBER << 3 | _VARINT
#: Of a request: its name may have 1 KiB.
FIRST_BYTES = 2048


def prove_request_head(nbytes: int) -> bytes:
    """With it, the bytes of a SubmitProofRequest, so many, become those of a ProveRequest."""
    head = bytearray([_SUBMIT])
    while nbytes >= 0x80:
        head.append(nbytes & 0x7F | 0x80)
        nbytes >>= 7
    head.append(nbytes)
    return bytes(head)


def name_and_kind(first: bytes) -> tuple[str, int]:
    """The client's name for it and the number of its kind; "" and 0 where they are not the first fields, as
    every library writes them.

    first  of a ProveRequest, FIRST_BYTES or all
    """
    name, number = "", 0
    tag, at = _varint(first, 0)
    if tag != _SUBMIT:
        return name, number
    _, at = _varint(first, at)
    while at < len(first):
        tag, at = _varint(first, at)
        if tag == _NAME:
            size, at = _varint(first, at)
            name, at = first[at : at + size].decode(errors="replace"), at + size
        elif tag == _KIND:
            number, at = _varint(first, at)
        else:
            break
    return name, number


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number there, and where it ends; what is cut off ends with the data."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            break
    return value, at
