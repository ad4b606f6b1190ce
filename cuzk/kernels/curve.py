"""The two groups of BLS12-381 in plain integers: reference for every kernel, and the law for single points.

A curve y^2 = x^3 + b, affine. A point is (x, y), or None for the identity; a coordinate is an int below p in
G1 and a pair (c0, c1), meaning c0 + c1*u, in G2. Textbook formulas, one inversion an addition.
Source: [SEC1] section 2.2.1; Fq2 = Fq[u]/(u^2 + 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cuzk.kernels.modulus import CURVE_B, FQ, G1_GENERATOR, G2_GENERATOR

Fq2Pair = tuple[int, int]
C = TypeVar("C", int, Fq2Pair)
Point = tuple[C, C] | None


@dataclass(frozen=True, slots=True)
class Curve(Generic[C]):
    """One of the groups: `b` of its equation, and the generator of the subgroup of order r."""

    name: str
    b: C
    generator: tuple[C, C]

    def contains(self, point: Point[C]) -> bool:
        """Whether the point satisfies the equation (the subgroup is not checked)."""
        if point is None:
            return True
        x, y = point
        return mul(y, y) == add(mul(mul(x, x), x), self.b)

    def negate(self, point: Point[C]) -> Point[C]:
        return None if point is None else (point[0], negate(point[1]))

    def add(self, p: Point[C], q: Point[C]) -> Point[C]:
        """P + Q by chord or tangent."""
        if p is None or q is None:
            return q if p is None else p
        (x1, y1), (x2, y2) = p, q
        if x1 == x2 and y1 == negate(y2):
            return None
        if x1 == x2:
            square = mul(x1, x1)
            numerator, denominator = add(add(square, square), square), add(y1, y1)
        else:
            numerator, denominator = add(y2, negate(y1)), add(x2, negate(x1))
        slope = mul(numerator, invert(denominator))
        x3 = add(mul(slope, slope), negate(add(x1, x2)))
        return x3, add(mul(slope, add(x1, negate(x3))), negate(y1))

    def multiply(self, scalar: int, point: Point[C]) -> Point[C]:
        """scalar * P by double and add; a negative scalar negates."""
        if scalar < 0:
            scalar, point = -scalar, self.negate(point)
        result: Point[C] = None
        for bit in f"{scalar:b}":
            result = self.add(result, result)
            if bit == "1":
                result = self.add(result, point)
        return result

    def sum(self, points: Iterable[Point[C]]) -> Point[C]:
        total: Point[C] = None
        for point in points:
            total = self.add(total, point)
        return total


# Coordinates: integers mod p, or pairs of them.


def add(a: C, b: C) -> C:
    if isinstance(a, int):
        return (a + b) % FQ.p
    return (a[0] + b[0]) % FQ.p, (a[1] + b[1]) % FQ.p


def negate(a: C) -> C:
    if isinstance(a, int):
        return -a % FQ.p
    return -a[0] % FQ.p, -a[1] % FQ.p


def mul(a: C, b: C) -> C:
    if isinstance(a, int):
        return a * b % FQ.p
    return (a[0] * b[0] - a[1] * b[1]) % FQ.p, (a[0] * b[1] + a[1] * b[0]) % FQ.p


def invert(a: C) -> C:
    if isinstance(a, int):
        return pow(a, -1, FQ.p)
    norm_inverse = pow(a[0] * a[0] + a[1] * a[1], -1, FQ.p)
    return a[0] * norm_inverse % FQ.p, -a[1] * norm_inverse % FQ.p


G1: Curve[int] = Curve("G1", CURVE_B, G1_GENERATOR)
G2: Curve[Fq2Pair] = Curve("G2", (CURVE_B, CURVE_B), G2_GENERATOR)

assert G1.contains(G1.generator) and G2.contains(G2.generator)
