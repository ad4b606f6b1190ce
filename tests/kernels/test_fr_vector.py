"""Vectors of Fr against plain integers, on lengths that are no multiple of the lanes or of a task."""

from __future__ import annotations

import random

import pytest

from cuzk.kernels.device.cpu import CpuDevice, has_ifma
from cuzk.kernels.fr_vector import combine, from_integers, powers, to_integers
from cuzk.kernels.modulus import FR
from tests.kernels.field_values import edge_values

LANES = [1, pytest.param(8, marks=pytest.mark.skipif(not has_ifma(), reason="this CPU has no AVX-512 IFMA"))]


def test_integers_survive_the_way_to_words_and_back() -> None:
    values = edge_values(FR.p)
    assert to_integers(from_integers(values)) == values
    assert from_integers([1 << 64]).tolist() == [[0, 1, 0, 0]]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("count", [1, 7, 8, 33, (1 << 15) + 13])
def test_powers_are_those_of_plain_integers(count: int, lanes: int) -> None:
    first, ratio = FR.p - 5, FR.p - 2
    got = to_integers(powers(CpuDevice(threads=2, lanes=lanes), first, ratio, count))
    value = first
    for i, element in enumerate(got):
        assert element == value, i
        value = value * ratio % FR.p
    assert len(got) == count


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("count", [1, 8, 29])
def test_combinations_are_those_of_plain_integers(count: int, lanes: int) -> None:
    rng, edges = random.Random(5), edge_values(FR.p)
    vectors = [[rng.choice([*edges, rng.randrange(FR.p)]) for _ in range(count)] for _ in range(3)]
    for factors in ((0, 0, 0), (1, 1, 1), (FR.p - 1, 2, rng.randrange(FR.p))):
        got = combine(CpuDevice(threads=2, lanes=lanes), factors, *map(from_integers, vectors))
        expected = [
            sum(f * v for f, v in zip(factors, row, strict=True)) % FR.p for row in zip(*vectors, strict=True)
        ]
        assert to_integers(got) == expected
