"""Commitments as callers write them: 32 bytes as hex, or a Filecoin CID, whose last 32 bytes they are.

A CID is "b" (multibase) and the lowercase base32 of version 1, codec, hash function and length, each a
varint, and the hash. Source: filecoin-commcid.
"""

from __future__ import annotations

import base64
import binascii
from enum import Enum

from cuzk.errors import InputError
from cuzk.sector.shape import NODE_BYTES

_BASE32 = "b"
_DIGITS_A_GROUP = 8


class Committed(Enum):
    """What is committed to, by what comes before the hash in a CID."""

    REPLICA = bytes.fromhex("01 82e203 81e802 20")
    DATA = bytes.fromhex("01 81e203 9220 20")


def parse_commitment(text: str, to: Committed, *, where: str) -> bytes:
    """The 32 bytes. Raises InputError that names `where`; whether they are below r is not asked."""
    for decoded in (_from_hex(text), _from_base32(text.removeprefix(_BASE32))[-NODE_BYTES:]):
        if len(decoded) == NODE_BYTES and text in (decoded.hex(), cid_of(decoded, to)):
            return decoded
    raise InputError(
        f"this is neither 32 bytes as hex nor the CID of a {to.name.lower()} commitment",
        where=where,
        next="give 64 hex digits, or the CID that lotus shows",
    )


def cid_of(commitment: bytes, to: Committed) -> str:
    """The CID of 32 bytes, as text."""
    return _BASE32 + base64.b32encode(to.value + commitment).decode().rstrip("=").lower()


def _from_hex(text: str) -> bytes:
    """Empty if it is none."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _from_base32(digits: str) -> bytes:
    """Empty if these are none."""
    padding = "=" * (-len(digits) % _DIGITS_A_GROUP)
    try:
        return base64.b32decode(digits.upper() + padding)
    except (binascii.Error, ValueError):
        return b""
