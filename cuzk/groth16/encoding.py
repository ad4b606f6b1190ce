"""Points of BLS12-381 as bytes, one at a time, strictly: what is not exactly an encoding is refused by name.

A coordinate is 48 bytes, big-endian, below p; of an Fq2 coordinate c1 comes before c0. p has 381 bits, so the
first byte of a point has three to spare:

    0x80  compressed: y is left out           G1: x (48)                  G2: x.c1, x.c0 (96)
    0x40  the identity: nothing else is set, but 0x80 in a compressed point
    0x20  compressed: y is the lexicographically larger root, y > (p-1)/2; in Fq2 c1 decides, c0 if c1 = 0
    none  uncompressed                        G1: x, y (96)               G2: x.c1, x.c0, y.c1, y.c0 (192)

The library that does the group law for single points, and the verifier's pairings, reads compressed points,
and more than this: flags beside an identity. What comes in is checked here before; an uncompressed point is
checked against the curve's equation and handed over compressed, which costs a root, 0.1 ms. Millions of
points are read by the kernels instead. Sources: blstrs, g1.rs and g2.rs.
"""

from __future__ import annotations

from typing import TypeVar

from py_arkworks_bls12381 import G1Point, G2Point

from cuzk.kernels.curve import G1, G2
from cuzk.kernels.modulus import FQ

Point = TypeVar("Point", G1Point, G2Point)

FQ_BYTES = 48
G1_BYTES, G2_BYTES = 2 * FQ_BYTES, 4 * FQ_BYTES
G1_COMPRESSED_BYTES, G2_COMPRESSED_BYTES = FQ_BYTES, 2 * FQ_BYTES

FLAG_COMPRESSED = 0x80
FLAG_IDENTITY = 0x40
FLAG_LARGER_ROOT = 0x20
FLAGS = FLAG_COMPRESSED | FLAG_IDENTITY | FLAG_LARGER_ROOT
_HALF = (FQ.p - 1) // 2


class PointError(ValueError):
    """Bytes that encode no point of the group. Whoever knows where they came from tells the user."""


def decode_g1(data: bytes) -> G1Point:
    """The point of 96 bytes, uncompressed. Raises PointError unless canonical, on the curve, of order r."""
    _require_point(data, G1_BYTES, compressed=False)
    x, y = _coordinates(data)
    return g1_of_coordinates((x, y))


def decode_g2(data: bytes) -> G2Point:
    """The point of 192 bytes, uncompressed. Raises PointError unless canonical, on the curve, of order r."""
    _require_point(data, G2_BYTES, compressed=False)
    x1, x0, y1, y0 = _coordinates(data)
    return g2_of_coordinates(((x0, x1), (y0, y1)))


def decompress_g1(data: bytes) -> G1Point:
    """The point of 48 bytes, compressed. Raises PointError unless canonical, on the curve, of order r."""
    _require_point(data, G1_COMPRESSED_BYTES, compressed=True)
    return _decompressed(G1Point, data)


def decompress_g2(data: bytes) -> G2Point:
    """The point of 96 bytes, compressed. Raises PointError unless canonical, on the curve, of order r."""
    _require_point(data, G2_COMPRESSED_BYTES, compressed=True)
    return _decompressed(G2Point, data)


def g1_of_coordinates(point: tuple[int, int] | None) -> G1Point:
    """The point of affine coordinates below p, None for the identity. Raises as `decode_g1` does."""
    if point is None:
        return G1Point.identity()
    if not G1.contains(point):
        raise PointError("not on the curve")
    x, y = point
    return _decompressed(G1Point, _compressed(x, larger=y > _HALF))


def g2_of_coordinates(point: tuple[tuple[int, int], tuple[int, int]] | None) -> G2Point:
    """The same of coordinates (c0, c1)."""
    if point is None:
        return G2Point.identity()
    if not G2.contains(point):
        raise PointError("not on the curve")
    (x0, x1), (y0, y1) = point
    return _decompressed(G2Point, _compressed(x1, x0, larger=(y1 or y0) > _HALF))


def compress_g1(point: G1Point) -> bytes:
    """48 bytes."""
    return bytes(point.to_compressed_bytes())  # version 0.3 of the library gives a list


def compress_g2(point: G2Point) -> bytes:
    """96 bytes."""
    return bytes(point.to_compressed_bytes())


def _require_point(data: bytes, size: int, *, compressed: bool) -> None:
    """Check length, flags and coordinates below p of an encoding, which must not be the identity's."""
    if len(data) != size:
        raise PointError(f"{len(data)} bytes instead of {size}")
    flags = data[0] & FLAGS
    if bool(flags & FLAG_COMPRESSED) != compressed:
        raise PointError("compressed where an uncompressed point belongs, or the reverse")
    if flags & FLAG_IDENTITY:
        if flags & FLAG_LARGER_ROOT or any(_coordinates(data)):
            raise PointError("marked as the identity, but not zero elsewhere")
        raise PointError("the identity, which is not allowed here")
    if flags & FLAG_LARGER_ROOT and not compressed:
        raise PointError("the flag of a compressed root is set in an uncompressed point")
    if any(coordinate >= FQ.p for coordinate in _coordinates(data)):
        raise PointError("a coordinate is not below p")


def _coordinates(data: bytes) -> list[int]:
    """The 48-byte integers in their order, without flags."""
    without_flags = bytes([data[0] & ~FLAGS]) + data[1:]
    starts = range(0, len(data), FQ_BYTES)
    return [int.from_bytes(without_flags[start : start + FQ_BYTES], "big") for start in starts]


def _compressed(*x: int, larger: bool) -> bytes:
    data = b"".join(component.to_bytes(FQ_BYTES, "big") for component in x)
    return bytes([data[0] | FLAG_COMPRESSED | (FLAG_LARGER_ROOT if larger else 0)]) + data[1:]


def _decompressed(point_type: type[Point], data: bytes) -> Point:
    """The library says only that a point is bad: asked again without the subgroup's check, it says why."""
    try:
        return point_type.from_compressed_bytes(data)
    except ValueError:
        pass
    try:
        point_type.from_compressed_bytes_unchecked(data)
    except ValueError as error:
        raise PointError("not on the curve") from error
    raise PointError("on the curve, but outside the subgroup of order r")
