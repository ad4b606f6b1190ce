"""The replica id: what ties a sealed sector to its miner, number, ticket, data and registered proof.

Source: storage-proofs-porep, stacked/vanilla/params.rs (generate_replica_id).
"""

from __future__ import annotations

from hashlib import sha256


def trim254(digest: bytes) -> bytes:
    """A SHA-256 digest as field element: the two highest bits of its little-endian value cleared."""
    return digest[:31] + bytes([digest[31] & 0x3F])


def prover_id(miner: int) -> bytes:
    """A numeric miner id (1000 for t01000) as unsigned LEB128, zero-padded to 32 bytes."""
    encoded = bytearray()
    while miner >= 0x80:
        encoded.append(miner & 0x7F | 0x80)
        miner >>= 7
    encoded.append(miner)
    return bytes(encoded).ljust(32, b"\0")


def replica_id(*, miner: int, sector_number: int, ticket: bytes, comm_d: bytes, porep_id: bytes) -> bytes:
    """32 bytes, canonical."""
    number_be = sector_number.to_bytes(8, "big")
    return trim254(sha256(prover_id(miner) + number_be + ticket + comm_d + porep_id).digest())
