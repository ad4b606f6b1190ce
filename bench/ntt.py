"""Transforms over Fr and the quotient of a proof: `python -m bench.ntt`.

Inputs are uniform; a transform's time does not depend on them. Checks: an output of the transform against the
polynomial at that point, the quotient against A*B - C = H * (X^n - 1) at a point, both with plain integers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from bench.runner import Case, label, main
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.modulus import FR, omega
from cuzk.kernels.ntt import intt, ntt, quotient
from cuzk.kernels.ntt_cpu import Words

R = FR.p
_POINT = pow(3, 1000, R)  # outside every domain
_CHECKED_OUTPUT = 3


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log2-n", type=int, nargs="+", default=[16, 18, 20, 22], metavar="K")
    parser.add_argument("--lanes", type=int, choices=[1, 8], help="default: 8 with AVX-512 IFMA, else 1")
    parser.add_argument("--threads", type=int, help="default: all CPUs")


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    device = CpuDevice(threads=chosen.threads, lanes=chosen.lanes)
    for log2_n in chosen.log2_n:
        yield transform_case(device, log2_n)
        yield quotient_case(device, log2_n)


def transform_case(device: CpuDevice, log2_n: int) -> Case:
    n = 1 << log2_n
    coefficients, vector, scratch = random_vector(n, 1), aligned_empty(n, 4), aligned_empty(n, 4)

    def prepare() -> None:
        vector[:] = coefficients

    def check(_: None) -> bool:
        point = pow(omega(log2_n), _CHECKED_OUTPUT, R)
        return integer(vector[_CHECKED_OUTPUT]) == at_point(coefficients, point)

    return Case(
        name="ntt",
        device=label(device),
        n=n,
        prepare=prepare,
        run=lambda _: ntt(device, vector, scratch=scratch),
        check=check,
        items=n // 2 * log2_n,
        unit="butterflies",
    )


def quotient_case(device: CpuDevice, log2_n: int) -> Case:
    n = 1 << log2_n
    given = [random_vector(n, seed) for seed in (1, 2)]
    vectors = [aligned_empty(n, 4) for _ in given]
    scratch = [aligned_empty(n, 4) for _ in range(2)]  # as a proof has it: memory that was used before

    def prepare() -> None:
        for vector, values in zip(vectors, given, strict=True):
            vector[:] = values

    def check(h: Words) -> bool:
        a, b = given
        c = aligned_empty(n, 4)
        for row, x, y in zip(c, a, b, strict=True):
            row[:] = FR.limbs(integer(x) * integer(y) % R, 4, 64)
        at_a, at_b, at_c = (at_point(coefficients_of(device, vector), _POINT) for vector in (a, b, c))
        return (at_a * at_b - at_c - at_point(h, _POINT) * (pow(_POINT, n, R) - 1)) % R == 0

    return Case(
        name="quotient",
        device=label(device),
        n=n,
        prepare=prepare,
        run=lambda _: quotient(device, *vectors, scratch=scratch),
        check=check,
        items=6 * (n // 2) * log2_n,
        unit="butterflies",
    )


def coefficients_of(device: CpuDevice, values: Words) -> Words:
    vector: Words = values.copy()
    intt(device, vector)
    return vector


def random_vector(n: int, seed: int) -> Words:
    """Canonical: below 2^254."""
    words = np.random.default_rng(seed).integers(0, 2**64, (n, 4), np.uint64)
    words[:, 3] >>= np.uint64(2)
    return words


def integer(row: Words) -> int:
    return int.from_bytes(row.tobytes(), "little")


def at_point(coefficients: Words, point: int) -> int:
    value = 0
    for row in coefficients[::-1]:
        value = (value * point + integer(row)) % R
    return value


if __name__ == "__main__":
    main("Transforms over Fr on the CPU", cases, options)
