"""The two prime fields of BLS12-381 and its curves as plain constants, derived and asserted at import.

Everything else (Montgomery constants, limbs, roots of unity) follows from these numbers.
Source: draft-irtf-cfrg-pairing-friendly-curves, section 4.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

X = -0xD201000000010000  # the curve family's parameter: both moduli are polynomials in it


@dataclass(frozen=True, slots=True)
class Modulus:
    """A prime p of `bits` bits, and what Montgomery arithmetic over it needs."""

    name: str
    p: int

    @property
    def bits(self) -> int:
        return self.p.bit_length()

    def limbs(self, value: int, count: int, width: int) -> list[int]:
        """`value` as `count` limbs of `width` bits, least significant first."""
        assert 0 <= value < 1 << (count * width), (value, count, width)
        return [value >> (width * i) & ((1 << width) - 1) for i in range(count)]

    def m0(self, width: int) -> int:
        """-p^-1 mod 2^width: makes the lowest limb of a row zero."""
        return -pow(self.p, -1, 1 << width) % (1 << width)


FR = Modulus("Fr", X**4 - X**2 + 1)
FQ = Modulus("Fq", (X - 1) ** 2 * (X**4 - X**2 + 1) // 3 + X)

FR_GENERATOR = 7
FR_TWO_ADICITY = 32
FR_ROOT_OF_UNITY = pow(FR_GENERATOR, (FR.p - 1) >> FR_TWO_ADICITY, FR.p)

CURVE_B = 4  # G1: y^2 = x^3 + 4; G2: y^2 = x^3 + 4(1 + u)

G1_GENERATOR = (
    0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
    0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
)
G2_GENERATOR = (
    (
        0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
        0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
    ),
    (
        0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
        0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
    ),
)


def omega(log2_n: int) -> int:
    """The primitive 2^log2_n-th root of unity of Fr that spans the evaluation domain."""
    assert 0 <= log2_n <= FR_TWO_ADICITY, log2_n
    return pow(FR_ROOT_OF_UNITY, 1 << (FR_TWO_ADICITY - log2_n), FR.p)


def _assert_constants() -> None:
    p, r = FQ.p, FR.p
    assert p.bit_length() == 381 and r.bit_length() == 255
    assert (
        p
        == 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
    )
    assert r == 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
    assert (r - 1) >> FR_TWO_ADICITY & 1 and pow(FR_ROOT_OF_UNITY, 1 << (FR_TWO_ADICITY - 1), r) == r - 1
    x, y = G1_GENERATOR
    assert (y * y - x**3 - CURVE_B) % p == 0
    (x0, x1), (y0, y1) = G2_GENERATOR
    x2 = (x0 * x0 - x1 * x1, 2 * x0 * x1)
    x3 = (x2[0] * x0 - x2[1] * x1, x2[0] * x1 + x2[1] * x0)
    assert (y0 * y0 - y1 * y1 - x3[0] - CURVE_B) % p == 0 and (2 * y0 * y1 - x3[1] - CURVE_B) % p == 0


_assert_constants()
