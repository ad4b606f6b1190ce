"""The verifying key: what a `.vk` file holds, and what a `.params` file begins with.

    alpha_g1 96 | beta_g1 96 | beta_g2 192 | gamma_g2 192 | delta_g1 96 | delta_g2 192 | n ic | ic, n x 96

Points are uncompressed; the count n is a big-endian u32. `ic` has one point for ONE and one for each public
input. Source: bellperson, groth16/verifying_key.rs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from py_arkworks_bls12381 import GT, G1Point, G2Point

from cuzk.errors import ParameterError
from cuzk.groth16.encoding import G1_BYTES, G2_BYTES, PointError, decode_g1, decode_g2
from cuzk.groth16.files import DIGEST_HEX, read_small

_FIXED = (
    ("alpha_g1", G1_BYTES),
    ("beta_g1", G1_BYTES),
    ("beta_g2", G2_BYTES),
    ("gamma_g2", G2_BYTES),
    ("delta_g1", G1_BYTES),
    ("delta_g2", G2_BYTES),
)
COUNT_BYTES = 4
FIXED_BYTES = sum(size for _, size in _FIXED)
HEAD_BYTES = FIXED_BYTES + COUNT_BYTES
"""Up to and including the count of ic: enough to know how long the key is."""

#: No circuit here has more than some hundred public inputs; a count above this is damage, not a key.
MAX_IC = 1 << 16
NEXT = "fetch or generate the parameters again: `cuzk params fetch`, `cuzk params generate`"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPoints:
    """The parts of a key as points."""

    alpha_g1: G1Point
    beta_g1: G1Point
    beta_g2: G2Point
    gamma_g2: G2Point
    delta_g1: G1Point
    delta_g2: G2Point
    ic: tuple[G1Point, ...]


class _BadPart(Exception):
    """A part of a key is no point of its group."""


@dataclass(frozen=True, kw_only=True)
class VerifyingKey:
    """Seven parts as their uncompressed bytes; a key that came from bytes has been checked point by point."""

    alpha_g1: bytes
    beta_g1: bytes
    beta_g2: bytes
    gamma_g2: bytes
    delta_g1: bytes
    delta_g2: bytes
    ic: tuple[bytes, ...]

    def __post_init__(self) -> None:
        for name, size in _FIXED:
            assert len(getattr(self, name)) == size, (name, len(getattr(self, name)))
        assert all(len(point) == G1_BYTES for point in self.ic), [len(point) for point in self.ic]
        assert 1 <= len(self.ic) <= MAX_IC, len(self.ic)

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str) -> VerifyingKey:
        """The key of exactly these bytes.

        Raises ParameterError when the size contradicts the count, or a point is not canonical, off the curve,
        outside the subgroup or the identity. About 0.1 ms a point, for the same bytes once.
        """
        size = key_bytes(data[:HEAD_BYTES], where=where)
        if len(data) != size:
            raise ParameterError(
                f"a verifying key with this count of ic has {size} bytes, not {len(data)}",
                where=where,
                next=NEXT,
            )
        try:
            return _checked_key(data)
        except _BadPart as error:
            raise ParameterError(str(error), where=where, next=NEXT) from error

    @cached_property
    def points(self) -> KeyPoints:
        """Decoded and checked."""
        fixed = {name: _decoded(getattr(self, name), name) for name, _ in _FIXED}
        ic = tuple(_decoded(point, f"ic[{index}]") for index, point in enumerate(self.ic))
        return KeyPoints(ic=ic, **fixed)

    @cached_property
    def alpha_beta(self) -> GT:
        """e(alpha, beta), of which every check of a proof needs the same. 1 ms."""
        return GT.multi_pairing([self.points.alpha_g1], [self.points.beta_g2])

    def to_bytes(self) -> bytes:
        fixed = b"".join(getattr(self, name) for name, _ in _FIXED)
        return fixed + len(self.ic).to_bytes(COUNT_BYTES, "big") + b"".join(self.ic)

    @property
    def digest(self) -> str:
        """As in the manifest's entry of the `.vk` file; it names the parameters that begin with this key."""
        return hashlib.blake2b(self.to_bytes()).hexdigest()[:DIGEST_HEX]


def key_bytes(head: bytes, *, where: str) -> int:
    """Length of the key whose first 868 bytes are `head`. Raises ParameterError if it cannot be one."""
    if not head:
        raise ParameterError("the file is empty", where=where, next=NEXT)
    if len(head) < HEAD_BYTES:
        raise ParameterError(
            f"the file is truncated: {len(head)} bytes, and the verifying key alone has over {HEAD_BYTES}",
            where=where,
            next=NEXT,
        )
    count = int.from_bytes(head[FIXED_BYTES:HEAD_BYTES], "big")
    if not 1 <= count <= MAX_IC:
        raise ParameterError(
            f"the file is damaged: its count of ic points is {count}", where=where, next=NEXT
        )
    return HEAD_BYTES + count * G1_BYTES


def read_verifying_key(path: Path) -> VerifyingKey:
    """The checked key of a `.vk` file. Raises ParameterError, or ResourceError when it cannot be read."""
    return VerifyingKey.from_bytes(read_small(path), where=str(path))


@lru_cache(maxsize=2)
def _checked_key(data: bytes) -> VerifyingKey:
    """The key of these bytes, whose number is right. Raises _BadPart."""
    parts, start = {}, 0
    for name, length in _FIXED:
        parts[name] = data[start : start + length]
        start += length
    ic = tuple(data[start : start + G1_BYTES] for start in range(HEAD_BYTES, len(data), G1_BYTES))
    key = VerifyingKey(ic=ic, **parts)
    _ = key.points  # decoding is the check
    return key


def _decoded(point: bytes, name: str) -> Any:
    try:
        return decode_g1(point) if len(point) == G1_BYTES else decode_g2(point)
    except PointError as error:
        raise _BadPart(f"point {name} is unusable: {error}") from error
