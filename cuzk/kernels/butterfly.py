"""Transforms of two, four and eight values, as formulas over any arithmetic: emitted code, or plain integers.

    y_k = sum_i x_i zeta^(ik)      natural order in and out; zeta of order len(x), or its inverse

Costs      four values: 1 product, 8 sums. Eight: 4 products, 26 sums.
Eight      the odd outputs are a transform of v_i zeta^i, v_i = x_i - x_(i+4). Of its two halves, zeta v1 +-
           zeta^3 v3 and zeta^3 v1 +- zeta v3 up to signs, sum and difference are (zeta +- zeta^3)(v1 +- v3):
           two products, not three.
Loose      a sum that only enters products need not be reduced; so may outputs that the caller multiplies.
"""

from __future__ import annotations

from typing import Any, Protocol

from cuzk.kernels.modulus import FR, omega

R = FR.p
_HALF = pow(2, -1, R)


class Arithmetic(Protocol):
    """Sums of canonical values, canonical or, if `loose`, below 2p; products of either, canonical."""

    def sum(self, a: Any, b: Any, loose: bool = False) -> Any: ...

    def difference(self, a: Any, b: Any, loose: bool = False) -> Any: ...

    def times(self, a: Any, constant: int) -> Any: ...


def transform_of(
    of: Arithmetic, x: list[Any], inverse: bool, loose: frozenset[int] = frozenset()
) -> list[Any]:
    """The transform of 1, 2, 4 or 8 canonical values; `loose` are the outputs that may be left below 2p."""
    if len(x) == 1:
        return x
    if len(x) == 2:
        return [of.sum(x[0], x[1], 0 in loose), of.difference(x[0], x[1], 1 in loose)]
    root = pow(omega(3), -1 if inverse else 1, R)
    return (_of_four if len(x) == 4 else _of_eight)(of, x, root, loose)


def _of_four(of: Arithmetic, x: list[Any], root: int, loose: frozenset[int]) -> list[Any]:
    a, b = of.sum(x[0], x[2]), of.difference(x[0], x[2])
    c, d = of.sum(x[1], x[3]), _turned_difference(of, x[1], x[3], root * root % R)
    return _sums_and_differences(of, [a, b], [c, d], loose)


def _of_eight(of: Arithmetic, x: list[Any], root: int, loose: frozenset[int]) -> list[Any]:
    u = [of.sum(x[i], x[i + 4]) for i in range(4)]
    v0, v1, v3 = (of.difference(x[i], x[i + 4]) for i in (0, 1, 3))
    v2 = _turned_difference(of, x[2], x[6], root * root % R)
    even = _of_four(of, u, root, frozenset(k // 2 for k in loose if k % 2 == 0))

    a, b = of.sum(v0, v2), of.difference(v0, v2)
    cube = pow(root, 3, R)
    s = of.times(of.sum(v1, v3, loose=True), (root + cube) * _HALF % R)
    t = of.times(of.difference(v1, v3, loose=True), (root - cube) * _HALF % R)
    odd_loose = frozenset(k // 2 for k in loose if k % 2)
    odd = _sums_and_differences(of, [a, b], [of.sum(s, t), of.difference(s, t)], odd_loose)
    return [y for pair in zip(even, odd, strict=True) for y in pair]


def _turned_difference(of: Arithmetic, a: Any, b: Any, fourth_root: int) -> Any:
    """(a - b) times a fourth root of unity; the shorter of it and its negative is the constant."""
    if fourth_root > R - fourth_root:
        a, b, fourth_root = b, a, R - fourth_root
    return of.times(of.difference(a, b, loose=True), fourth_root)


def _sums_and_differences(of: Arithmetic, a: list[Any], b: list[Any], loose: frozenset[int]) -> list[Any]:
    """a_k + b_k, then a_k - b_k."""
    half = len(a)
    sums = [of.sum(x, y, k in loose) for k, (x, y) in enumerate(zip(a, b, strict=True))]
    return sums + [of.difference(x, y, half + k in loose) for k, (x, y) in enumerate(zip(a, b, strict=True))]
