"""Multiples of the generators as bytes, by py_ecc."""

from __future__ import annotations

from functools import cache
from typing import Any

from py_ecc.bls.point_compression import compress_G1, compress_G2, decompress_G1, decompress_G2
from py_ecc.optimized_bls12_381 import G1, G2, multiply, normalize

Point = Any


def be48(*values: int) -> bytes:
    return b"".join(value.to_bytes(48, "big") for value in values)


@cache
def g1_times(k: int) -> bytes:
    """96 bytes, uncompressed."""
    x, y = normalize(multiply(G1, k))
    return be48(int(x), int(y))


@cache
def g2_times(k: int) -> bytes:
    """192 bytes, uncompressed."""
    x, y = normalize(multiply(G2, k))
    return be48(*(int(c) for z in (x, y) for c in reversed(z.coeffs)))


def g1_compressed(k: int) -> bytes:
    return be48(compress_G1(multiply(G1, k)))


def g2_compressed(k: int) -> bytes:
    return be48(*compress_G2(multiply(G2, k)))


def decompressed(data: bytes) -> Point:
    """The point of 48 or 96 compressed bytes."""
    numbers = [int.from_bytes(data[start : start + 48], "big") for start in range(0, len(data), 48)]
    return decompress_G1(numbers[0]) if len(numbers) == 1 else decompress_G2(tuple(numbers))
