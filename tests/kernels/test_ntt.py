"""Transforms and the quotient against plain sums, textbook recursion and polynomial division on integers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuzk.kernels.device.cpu import CpuDevice, aligned_empty, has_ifma
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.modulus import FR, omega
from cuzk.kernels.ntt import intt, ntt, ntt_textbook, pass_tables, powers, quotient, to_coset
from cuzk.kernels.ntt_cpu import MAX_LINES_LOG2, PassVectors, Words, transform_columns

R = FR.p
LANES = [1, pytest.param(8, marks=pytest.mark.skipif(not has_ifma(), reason="no AVX-512 IFMA"))]
#: As the specification of the proof lists them.
PUBLISHED_OMEGAS = {
    22: 0x0ABE6A5E5ABCAA32F2D38F10FBB8D1BBE08FEC7C86389BEEC6E7A6FFB08E3363,
    23: 0x73560252AA0655B25121AF06A3B51E3CC631FFB2585A72DB5616C57DE0EC9EAE,
    27: 0x23397A9300F8F98BECE8EA224F31D25DB94F1101B1D7A628E2D0A7869F0319ED,
}


@pytest.fixture(params=LANES, ids=lambda lanes: f"lanes{lanes}")
def device(request: pytest.FixtureRequest) -> CpuDevice:
    return CpuDevice(threads=2, lanes=request.param)


def random_values(n: int, seed: int = 1) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(R) for _ in range(n)]


def random_vector(n: int, seed: int = 1) -> Words:
    """Canonical, and quickly made: below 2^254."""
    words = np.random.default_rng(seed).integers(0, 2**64, (n, 4), np.uint64)
    words[:, 3] >>= np.uint64(2)
    return words


def transformed(function: Callable[..., None], device: CpuDevice, values: list[int]) -> list[int]:
    vector = from_integers(values)
    function(device, vector)
    return to_integers(vector)


def plain_sums(values: list[int], root: int) -> list[int]:
    """sum_j x_j root^(jk) for every k, term by term."""
    n, table = len(values), powers(root, len(values))
    return [sum(x * table[j * k % n] for j, x in enumerate(values)) % R for k in range(n)]


def at_point(coefficients: list[int], point: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % R
    return value


def edge_vectors(n: int) -> list[list[int]]:
    first, last = [0] * n, [0] * n
    first[0], last[n - 1] = 1, R - 1
    alternating = [R - 1 if i % 2 else 0 for i in range(n)]
    return [[0] * n, [R - 1] * n, first, last, alternating, random_values(n)]


@pytest.mark.parametrize("log2_n", PUBLISHED_OMEGAS)
def test_domains_are_the_published_ones(log2_n: int) -> None:
    assert omega(log2_n) == PUBLISHED_OMEGAS[log2_n]


@pytest.mark.parametrize("log2_n", range(8))
def test_the_textbook_equals_plain_sums(log2_n: int) -> None:
    values = random_values(1 << log2_n)
    assert ntt_textbook(values, omega(log2_n)) == plain_sums(values, omega(log2_n))


@pytest.mark.parametrize("log2_n", range(10))
def test_every_output_equals_its_plain_sum(device: CpuDevice, log2_n: int) -> None:
    n, root = 1 << log2_n, omega(log2_n)
    values = random_values(n)
    backward = plain_sums(values, pow(root, -1, R))
    assert transformed(ntt, device, values) == plain_sums(values, root)
    assert transformed(intt, device, values) == [x * pow(n, -1, R) % R for x in backward]


@pytest.mark.parametrize("log2_n", [0, 1, 5, 6, 7, 10, 11])
def test_edge_vectors_equal_the_textbook(device: CpuDevice, log2_n: int) -> None:
    for values in edge_vectors(1 << log2_n):
        assert transformed(ntt, device, values) == ntt_textbook(values, omega(log2_n))


@pytest.mark.parametrize("log2_n", [13, 14])
def test_every_output_of_a_larger_transform_equals_the_textbook(device: CpuDevice, log2_n: int) -> None:
    values = random_values(1 << log2_n)
    assert transformed(ntt, device, values) == ntt_textbook(values, omega(log2_n))


@pytest.mark.parametrize("log2_n", [0, 3, 6, 9, 12, 15])
def test_the_inverse_undoes_the_transform(device: CpuDevice, log2_n: int) -> None:
    original = random_vector(1 << log2_n)
    vector = original.copy()
    ntt(device, vector)
    assert log2_n == 0 or not np.array_equal(vector, original)
    intt(device, vector)
    assert np.array_equal(vector, original)


def test_transforms_are_linear(device: CpuDevice) -> None:
    a, b, factor = random_values(256, 1), random_values(256, 2), random_values(1, 3)[0]
    mixed = [(x + factor * y) % R for x, y in zip(a, b, strict=True)]
    parts = zip(transformed(ntt, device, a), transformed(ntt, device, b), strict=True)
    assert transformed(ntt, device, mixed) == [(x + factor * y) % R for x, y in parts]


@pytest.mark.parametrize("log2_n", [0, 1, 4, 6, 9])
def test_values_on_the_coset_are_those_of_the_same_polynomial(device: CpuDevice, log2_n: int) -> None:
    coefficients = random_values(1 << log2_n)
    values = [at_point(coefficients, x) for x in powers(omega(log2_n), 1 << log2_n)]
    on_coset = [at_point(coefficients, 7 * x % R) for x in powers(omega(log2_n), 1 << log2_n)]
    assert transformed(to_coset, device, values) == on_coset


def test_scratch_may_be_given(device: CpuDevice) -> None:
    vector, scratch = random_vector(1 << 10), random_vector(1 << 10, seed=2)
    expected = ntt_textbook(to_integers(vector), omega(10))
    ntt(device, vector, scratch=scratch)
    assert to_integers(vector) == expected


@pytest.mark.skipif(not has_ifma(), reason="no AVX-512 IFMA")
@pytest.mark.parametrize("threads", [1, 3])
def test_lanes_and_threads_do_not_change_a_byte(threads: int) -> None:
    one, eight = random_vector(1 << 13), random_vector(1 << 13)
    ntt(CpuDevice(threads=2, lanes=1), one)
    ntt(CpuDevice(threads=threads, lanes=8), eight)
    assert np.array_equal(one, eight)


def test_single_outputs_of_a_large_transform_equal_the_polynomial(device: CpuDevice) -> None:
    log2_n = 18
    vector = random_vector(1 << log2_n)
    coefficients = to_integers(vector)
    ntt(device, vector)
    for k in (1, (1 << log2_n) - 2):
        assert to_integers(vector[k : k + 1])[0] == at_point(coefficients, pow(omega(log2_n), k, R))


@pytest.mark.parametrize("lines_log2", [MAX_LINES_LOG2, MAX_LINES_LOG2 - 1])
def test_the_longest_pass_keeps_its_ranges(device: CpuDevice, lines_log2: int) -> None:
    """All r-1: the largest sums at every level. The transform of a constant is n times it, then zeros."""
    lines, form = 1 << lines_log2, device.fr
    tables = pass_tables(form, omega(lines_log2), lines, [1] * 8, [1] * 8)
    source = np.broadcast_to(from_integers([R - 1]), (8 * lines, 4)).copy()
    target = aligned_empty(8 * lines, 4)
    scratch = aligned_empty(1, form.limbs * form.lanes * lines)[0]
    none = np.empty((0, 4), np.uint64)
    transform_columns(form, PassVectors(source, none, none, target, 8, 1), tables, scratch, 0, 8)
    assert to_integers(target[:8]) == [-lines % R] * 8
    assert not target[8:].any()


def bit_like(n: int, seed: int) -> tuple[list[int], list[int]]:
    """Values of a proof: many zeros and ones, some large, all extremes."""
    rng = random.Random(seed)
    a, b = ([rng.choice([0, 1, R - 1, rng.randrange(R)]) for _ in range(n)] for _ in range(2))
    return a, b


@pytest.mark.parametrize("log2_n", [0, 1, 3, 6, 7, 8])
@pytest.mark.parametrize("give_c", [False, True], ids=["c left out", "c given"])
def test_the_quotient_is_the_upper_half_of_the_product(device: CpuDevice, log2_n: int, give_c: bool) -> None:
    """A*B - C = H * (X^n - 1) with deg C < n: coefficient i of H is coefficient n+i of A*B."""
    n = 1 << log2_n
    a, b = bit_like(n, seed=log2_n)
    c = [x * y % R for x, y in zip(a, b, strict=True)]
    backward = pow(omega(log2_n), -1, R)
    a_coefficients, b_coefficients = (
        [x * pow(n, -1, R) % R for x in ntt_textbook(values, backward)] for values in (a, b)
    )
    product = [0] * (2 * n)
    for i, x in enumerate(a_coefficients):
        for j, y in enumerate(b_coefficients):
            product[i + j] += x * y
    got = quotient(device, from_integers(a), from_integers(b), from_integers(c) if give_c else None)
    assert to_integers(got) == [x % R for x in product[n : 2 * n - 1]]


def test_the_quotient_of_an_unsatisfied_system_equals_upstreams_seven_transforms(device: CpuDevice) -> None:
    """bellperson, domain.rs: a, b, c to the coset, (a*b - c) / (7^n - 1), back, last coefficient dropped."""
    log2_n, n = 7, 128
    vectors = [random_values(n, seed) for seed in range(3)]
    root, inverse_n = omega(log2_n), pow(n, -1, R)
    on_coset = []
    for values in vectors:
        coefficients = [x * inverse_n for x in plain_sums(values, pow(root, -1, R))]
        shifted = [x * g % R for x, g in zip(coefficients, powers(7, n), strict=True)]
        on_coset.append(plain_sums(shifted, root))
    t_inverse = pow(pow(7, n, R) - 1, -1, R)
    evaluated = [(x * y - z) * t_inverse % R for x, y, z in zip(*on_coset, strict=True)]
    back = plain_sums(evaluated, pow(root, -1, R))
    unshift = powers(pow(7, -1, R), n, inverse_n)
    expected = [x * g % R for x, g in zip(back, unshift, strict=True)]
    assert to_integers(quotient(device, *map(from_integers, vectors))) == expected[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("log2_n", [20, 23, 24])
def test_proof_sized_transforms_are_undone_and_single_outputs_hold(device: CpuDevice, log2_n: int) -> None:
    n = 1 << log2_n
    original = random_vector(n)
    vector, scratch = original.copy(), aligned_empty(n, 4)
    ntt(device, vector, scratch=scratch)
    k = n - 5
    assert to_integers(vector[k : k + 1])[0] == at_point(to_integers(original), pow(omega(log2_n), k, R))
    intt(device, vector, scratch=scratch)
    assert np.array_equal(vector, original)


@pytest.mark.slow
def test_a_proof_sized_quotient_divides_at_a_random_point(device: CpuDevice) -> None:
    """A(x) B(x) - C(x) = H(x) (x^n - 1), with the coefficients of A, B, C by `intt`."""
    log2_n, x = 20, random_values(1, seed=9)[0]
    values = [random_vector(1 << log2_n, seed) for seed in (1, 2)]
    values.append(from_integers([a * b % R for a, b in zip(*map(to_integers, values), strict=True)]))
    a, b, c = (at_intt(device, vector, x) for vector in values)
    h = at_point(to_integers(quotient(device, values[0], values[1])), x)
    assert (a * b - c) % R == h * (pow(x, 1 << log2_n, R) - 1) % R


def at_intt(device: CpuDevice, values: Any, x: int) -> int:
    coefficients = values.copy()
    intt(device, coefficients)
    return at_point(to_integers(coefficients), x)
