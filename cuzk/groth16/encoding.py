"""Points of BLS12-381 as bytes, one at a time, strictly: what is not exactly an encoding is refused by name.

A coordinate is 48 bytes, big-endian, below p; of an Fq2 coordinate c1 comes before c0. p has 381 bits, so the
first byte of a point has three to spare:

    0x80  compressed: y is left out           G1: x (48)                  G2: x.c1, x.c0 (96)
    0x40  the identity: nothing else is set, but 0x80 in a compressed point
    0x20  compressed: y is the lexicographically larger root, y > (p-1)/2; in Fq2 c1 decides, c0 if c1 = 0
    none  uncompressed                        G1: x, y (96)               G2: x.c1, x.c0, y.c1, y.c0 (192)

The library that does the group law for single points, and the verifier's pairings, reads more than this:
flags beside an identity, (0, 0) as the identity; and of an uncompressed Fq2 it wants c0 first. What comes in
is checked here before. Millions of points are read by the kernels instead. Sources: blstrs, g1.rs and g2.rs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from py_arkworks_bls12381 import G1Point, G2Point

from cuzk.kernels.modulus import FQ

Point = TypeVar("Point", G1Point, G2Point)

FQ_BYTES = 48
G1_BYTES, G2_BYTES = 2 * FQ_BYTES, 4 * FQ_BYTES
G1_COMPRESSED_BYTES, G2_COMPRESSED_BYTES = FQ_BYTES, 2 * FQ_BYTES

FLAG_COMPRESSED = 0x80
FLAG_IDENTITY = 0x40
FLAG_LARGER_ROOT = 0x20
FLAGS = FLAG_COMPRESSED | FLAG_IDENTITY | FLAG_LARGER_ROOT


class PointError(ValueError):
    """Bytes that encode no point of the group. Whoever knows where they came from tells the user."""


def decode_g1(data: bytes, *, allow_identity: bool = False) -> G1Point:
    """The point of 96 bytes, uncompressed. Raises PointError unless canonical, on the curve, of order r."""
    if _is_identity(data, G1_BYTES, compressed=False):
        return _identity(G1Point, allow_identity)
    return _in_subgroup(_on_curve(G1Point.from_xy_bytes_unchecked_be, data))


def decode_g2(data: bytes, *, allow_identity: bool = False) -> G2Point:
    """The point of 192 bytes, uncompressed. Raises PointError unless canonical, on the curve, of order r."""
    if _is_identity(data, G2_BYTES, compressed=False):
        return _identity(G2Point, allow_identity)
    return _in_subgroup(_on_curve(G2Point.from_xy_bytes_unchecked_be, _swap_fq2(data)))


def decompress_g1(data: bytes) -> G1Point:
    """The point of 48 bytes, compressed. Raises PointError unless canonical, on the curve, of order r."""
    if _is_identity(data, G1_COMPRESSED_BYTES, compressed=True):
        return _identity(G1Point, False)
    return _in_subgroup(_on_curve(G1Point.from_compressed_bytes_unchecked, data))


def decompress_g2(data: bytes) -> G2Point:
    """The point of 96 bytes, compressed. Raises PointError unless canonical, on the curve, of order r."""
    if _is_identity(data, G2_COMPRESSED_BYTES, compressed=True):
        return _identity(G2Point, False)
    return _in_subgroup(_on_curve(G2Point.from_compressed_bytes_unchecked, data))


def g1_of_coordinates(point: tuple[int, int] | None) -> G1Point:
    """The point of affine coordinates, None for the identity. Raises PointError unless of order r."""
    if point is None:
        return G1Point.identity()
    return decode_g1(b"".join(c.to_bytes(FQ_BYTES, "big") for c in point))


def g2_of_coordinates(point: tuple[tuple[int, int], tuple[int, int]] | None) -> G2Point:
    """The point of coordinates (c0, c1), None for the identity. Raises PointError unless of order r."""
    if point is None:
        return G2Point.identity()
    return decode_g2(b"".join(c.to_bytes(FQ_BYTES, "big") for c0, c1 in point for c in (c1, c0)))


def encode_g1(point: G1Point) -> bytes:
    """96 bytes, uncompressed."""
    return _mark_identity(point.to_xy_bytes_be())


def encode_g2(point: G2Point) -> bytes:
    """192 bytes, uncompressed."""
    return _mark_identity(_swap_fq2(point.to_xy_bytes_be()))


def compress_g1(point: G1Point) -> bytes:
    """48 bytes."""
    return point.to_compressed_bytes()


def compress_g2(point: G2Point) -> bytes:
    """96 bytes."""
    return point.to_compressed_bytes()


def _is_identity(data: bytes, size: int, *, compressed: bool) -> bool:
    """Check length, flags and coordinates below p of an encoding, and say whether it is the identity's."""
    if len(data) != size:
        raise PointError(f"{len(data)} bytes instead of {size}")
    flags = data[0] & FLAGS
    if bool(flags & FLAG_COMPRESSED) != compressed:
        raise PointError("compressed where an uncompressed point belongs, or the reverse")
    without_flags = bytes([data[0] & ~FLAGS]) + data[1:]
    if flags & FLAG_IDENTITY:
        if flags & FLAG_LARGER_ROOT or any(without_flags):
            raise PointError("marked as the identity, but not zero elsewhere")
        return True
    if flags & FLAG_LARGER_ROOT and not compressed:
        raise PointError("the flag of a compressed root is set in an uncompressed point")
    for start in range(0, size, FQ_BYTES):
        if int.from_bytes(without_flags[start : start + FQ_BYTES], "big") >= FQ.p:
            raise PointError("a coordinate is not below p")
    if not compressed and not any(data):
        raise PointError("not on the curve")
    return False


def _identity(point_type: type[Point], allowed: bool) -> Point:
    if not allowed:
        raise PointError("the identity, which is not allowed here")
    return point_type.identity()


def _on_curve(decode: Callable[[bytes], Point], data: bytes) -> Point:
    try:
        return decode(data)
    except ValueError as error:
        raise PointError("not on the curve") from error


def _in_subgroup(point: Point) -> Point:
    if not point.is_in_subgroup():
        raise PointError("on the curve, but outside the subgroup of order r")
    return point


def _swap_fq2(data: bytes) -> bytes:
    """c1, c0 of both coordinates to c0, c1, or back."""
    x1, x0, y1, y0 = (data[start : start + FQ_BYTES] for start in range(0, G2_BYTES, FQ_BYTES))
    return x0 + x1 + y0 + y1


def _mark_identity(data: bytes) -> bytes:
    """The library writes the identity as zeros."""
    return data if any(data) else bytes([FLAG_IDENTITY]) + data[1:]
