"""A proof as bytes: A, B, C compressed, 192 bytes a partition; a sector's proof is its partitions one after
another.

Sources: bellperson, groth16/proof.rs; storage-proofs-core, multi_proof.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from py_arkworks_bls12381 import G1Point, G2Point

from cuzk.errors import InputError, ProofError
from cuzk.groth16 import encoding
from cuzk.groth16.encoding import G1_COMPRESSED_BYTES, G2_COMPRESSED_BYTES, PointError

PROOF_BYTES = 2 * G1_COMPRESSED_BYTES + G2_COMPRESSED_BYTES


@dataclass(frozen=True, slots=True)
class Proof:
    """One partition's proof: `a` and `c` in G1 (48 bytes), `b` in G2 (96 bytes), not yet decoded."""

    a: bytes
    b: bytes
    c: bytes

    def __post_init__(self) -> None:
        sizes = len(self.a), len(self.b), len(self.c)
        assert sizes == (G1_COMPRESSED_BYTES, G2_COMPRESSED_BYTES, G1_COMPRESSED_BYTES), sizes

    @classmethod
    def from_bytes(cls, data: bytes) -> Proof:
        """The proof of exactly 192 bytes. Raises InputError for any other number."""
        if len(data) != PROOF_BYTES:
            raise InputError(
                f"a proof has {PROOF_BYTES} bytes, not {len(data)}",
                next="give the proof exactly as it was written",
            )
        b_ends = G1_COMPRESSED_BYTES + G2_COMPRESSED_BYTES
        return cls(data[:G1_COMPRESSED_BYTES], data[G1_COMPRESSED_BYTES:b_ends], data[b_ends:])

    @classmethod
    def from_points(cls, a: G1Point, b: G2Point, c: G1Point) -> Proof:
        return cls(encoding.compress_g1(a), encoding.compress_g2(b), encoding.compress_g1(c))

    def to_bytes(self) -> bytes:
        return self.a + self.b + self.c

    def points(self, *, where: str = "proof") -> tuple[G1Point, G2Point, G1Point]:
        """A, B, C. Raises ProofError, with the point's name, unless each is a point of order r."""
        name = "A"
        try:
            a = encoding.decompress_g1(self.a)
            name = "B"
            b = encoding.decompress_g2(self.b)
            name = "C"
            c = encoding.decompress_g1(self.c)
        except PointError as error:
            raise ProofError(
                f"point {name} is unreadable: {error}", where=where, next="the proof is damaged: prove again"
            ) from error
        return a, b, c


def split_proofs(data: bytes, *, where: str = "proof") -> list[Proof]:
    """The proofs of partitions 0, 1, ... Raises InputError unless there are n x 192 bytes, n > 0."""
    if not data or len(data) % PROOF_BYTES:
        raise InputError(
            f"{len(data)} bytes are no sequence of proofs of {PROOF_BYTES} bytes",
            where=where,
            next="give the proof exactly as it was written, raw or as its hexadecimal digits",
        )
    return [Proof.from_bytes(data[start : start + PROOF_BYTES]) for start in range(0, len(data), PROOF_BYTES)]


def join_proofs(proofs: Sequence[Proof]) -> bytes:
    """What C2 hands over: the proofs of partitions 0, 1, ... one after another."""
    return b"".join(proof.to_bytes() for proof in proofs)
