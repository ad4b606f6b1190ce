"""Single points: against py_ecc's encodings, and every way in which bytes can fail to be a point."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar
from py_ecc.bls.point_compression import compress_G1, compress_G2
from py_ecc.optimized_bls12_381 import FQ, FQ2, G1, Z1, Z2, multiply, normalize

from cuzk.groth16 import encoding
from tests.py_ecc_points import be48, g1_compressed, g1_times, g2_compressed, g2_times

P = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
MULTIPLES = [1, 2, 3, 2**128 - 1, (R - 1) // 2, R - 2, R - 1]

# The proof that lotus-bench's help text prints: made by the network's own software.
PUBLISHED_A = bytes.fromhex(
    "8b624a6a4b272a6196517f858d07205c586cfae77fc026e8e9340acefbb8fc1d5af25b33724756c0a4481a800e14ff1e"
)
PUBLISHED_B = bytes.fromhex(
    "a914c3ce20bf6e2932296ad8ffa32867989ceae62e50af1479ca56a1ea5228cc8acf5ca54bc0b8e452bf74194b758b2c"
    "12ece76599a8b93f6b3dd9f0b1bb2e023bf311e9a404c7d453aeddf284e46025b63b631610de6ff6621bc6f630a14dd3"
)
PUBLISHED_C = bytes.fromhex(
    "ad59edbe6e940fdebbca3d97bea2708fd21764ea929f4699ebc93d818037a74be3363bdb2e8cc29b3e386c6376ff98fa"
)


def with_flags(data: bytes, flags: int) -> bytes:
    return bytes([data[0] & 0x1F | flags]) + data[1:]


@pytest.mark.parametrize("k", MULTIPLES)
def test_g1_is_written_and_read_as_py_ecc_does(k: int) -> None:
    point = G1Point() * Scalar(k)
    assert encoding.compress_g1(point) == g1_compressed(k)
    assert encoding.decode_g1(g1_times(k)) == point == encoding.decompress_g1(g1_compressed(k))


@pytest.mark.parametrize("k", MULTIPLES)
def test_g2_is_written_and_read_as_py_ecc_does(k: int) -> None:
    point = G2Point() * Scalar(k)
    assert encoding.compress_g2(point) == g2_compressed(k)
    assert encoding.decode_g2(g2_times(k)) == point == encoding.decompress_g2(g2_compressed(k))


def test_published_proof_is_read_and_written_back() -> None:
    assert encoding.compress_g1(encoding.decompress_g1(PUBLISHED_A)) == PUBLISHED_A
    assert encoding.compress_g2(encoding.decompress_g2(PUBLISHED_B)) == PUBLISHED_B
    assert encoding.compress_g1(encoding.decompress_g1(PUBLISHED_C)) == PUBLISHED_C


def test_the_identity_is_written_and_has_no_coordinates() -> None:
    assert encoding.compress_g1(G1Point.identity()) == be48(compress_G1(Z1))
    assert encoding.compress_g2(G2Point.identity()) == be48(*compress_G2(Z2))
    assert encoding.g1_of_coordinates(None) == G1Point.identity()
    assert encoding.g2_of_coordinates(None) == G2Point.identity()


def g1_off_the_curve() -> bytes:
    x, y = normalize(G1)
    return be48(int(x), int(y) + 1)


def g1_outside_the_subgroup() -> bytes:
    """(0, 2) has order 3."""
    return be48(0, 2)


def x_without_root() -> int:
    """The least x for which x^3 + 4 is no square."""
    return next(x for x in range(100) if pow(x**3 + 4, (P - 1) // 2, P) == P - 1)


def g2_outside_the_subgroup() -> bytes:
    """The first point by ascending x.c0 with x.c1 = 0; the cofactor is so large that it has not order r."""
    for c0 in range(1, 100):
        square = FQ2([c0, 0]) ** 3 + FQ2([4, 4])
        root = square ** ((P**2 + 7) // 16)
        for eighth in range(4):  # the square root, but for a fourth root of unity times a fixed factor
            y = root * FQ2([1, 1]) ** ((P**2 - 1) // 8 * eighth)
            if y * y == square:
                return be48(0, c0, int(y.coeffs[1]), int(y.coeffs[0]))
    raise AssertionError


G1_UNCOMPRESSED, G1_COMPRESSED = g1_times(5), g1_compressed(5)
G2_UNCOMPRESSED, G2_COMPRESSED = g2_times(5), g2_compressed(5)

REJECTED_G1 = {
    "empty": (b"", "bytes instead of 96"),
    "one_byte_short": (G1_UNCOMPRESSED[:-1], "bytes instead of 96"),
    "one_byte_long": (G1_UNCOMPRESSED + b"\0", "bytes instead of 96"),
    "compressed_flag": (with_flags(G1_UNCOMPRESSED, 0x80), "compressed"),
    "root_flag": (with_flags(G1_UNCOMPRESSED, 0x20), "flag of a compressed root"),
    "identity": (b"\x40" + bytes(95), "identity, which is not allowed"),
    "identity_with_bits": (b"\x40" + bytes(94) + b"\1", "not zero elsewhere"),
    "identity_with_root_flag": (b"\x60" + bytes(95), "not zero elsewhere"),
    "x_equal_to_modulus": (be48(P, 2), "not below p"),
    "y_equal_to_modulus_and_two": (be48(0, P + 2), "not below p"),
    "all_zero": (bytes(96), "not on the curve"),
    "off_the_curve": (g1_off_the_curve(), "not on the curve"),
    "outside_the_subgroup": (g1_outside_the_subgroup(), "outside the subgroup"),
}
REJECTED_G1_COMPRESSED = {
    "one_byte_short": (G1_COMPRESSED[:-1], "bytes instead of 48"),
    "one_byte_long": (G1_COMPRESSED + b"\0", "bytes instead of 48"),
    "no_compressed_flag": (with_flags(G1_COMPRESSED, 0x00), "compressed"),
    "identity": (b"\xc0" + bytes(47), "identity, which is not allowed"),
    "identity_with_root_flag": (b"\xe0" + bytes(47), "not zero elsewhere"),
    "identity_with_bits": (b"\xc0" + bytes(46) + b"\1", "not zero elsewhere"),
    "x_equal_to_modulus": (with_flags(be48(P), 0x80), "not below p"),
    "x_of_no_point": (with_flags(be48(x_without_root()), 0x80), "not on the curve"),
    "outside_the_subgroup": (with_flags(be48(0), 0x80), "outside the subgroup"),
}
REJECTED_G2 = {
    "one_byte_short": (G2_UNCOMPRESSED[:-1], "bytes instead of 192"),
    "compressed_flag": (with_flags(G2_UNCOMPRESSED, 0x80), "compressed"),
    "identity": (b"\x40" + bytes(191), "identity, which is not allowed"),
    "identity_with_bits": (b"\x40" + bytes(190) + b"\1", "not zero elsewhere"),
    "x_c0_equal_to_modulus": (G2_UNCOMPRESSED[:48] + be48(P) + G2_UNCOMPRESSED[96:], "not below p"),
    "y_c0_equal_to_modulus": (G2_UNCOMPRESSED[:144] + be48(P), "not below p"),
    "all_zero": (bytes(192), "not on the curve"),
    "off_the_curve": (G2_UNCOMPRESSED[:-1] + bytes([G2_UNCOMPRESSED[-1] ^ 1]), "not on the curve"),
    "outside_the_subgroup": (g2_outside_the_subgroup(), "outside the subgroup"),
}
REJECTED_G2_COMPRESSED = {
    "one_byte_long": (G2_COMPRESSED + b"\0", "bytes instead of 96"),
    "no_compressed_flag": (with_flags(G2_COMPRESSED, 0x00), "compressed"),
    "identity": (b"\xc0" + bytes(95), "identity, which is not allowed"),
    "x_c1_equal_to_modulus": (with_flags(be48(P, 0), 0x80), "not below p"),
    "x_c0_equal_to_modulus": (G2_COMPRESSED[:48] + be48(P), "not below p"),
    "outside_the_subgroup": (with_flags(g2_outside_the_subgroup()[:96], 0x80), "outside the subgroup"),
}


REJECTED = {
    encoding.decode_g1: REJECTED_G1,
    encoding.decompress_g1: REJECTED_G1_COMPRESSED,
    encoding.decode_g2: REJECTED_G2,
    encoding.decompress_g2: REJECTED_G2_COMPRESSED,
}


@pytest.mark.parametrize(
    ("read", "data", "reason"),
    [
        pytest.param(read, data, reason, id=f"{read.__name__}-{name}")
        for read, rejected in REJECTED.items()
        for name, (data, reason) in rejected.items()
    ],
)
def test_what_is_no_point_is_refused(read: Callable[[bytes], object], data: bytes, reason: str) -> None:
    with pytest.raises(encoding.PointError, match=reason):
        read(data)


def test_the_point_of_order_three_is_one() -> None:
    """The reject outside_the_subgroup is on the curve, and not of order r."""
    point = (FQ(0), FQ(2), FQ(1))
    assert normalize(multiply(point, 2)) == (FQ(0), FQ(P - 2))
