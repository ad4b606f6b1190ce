"""The GPU's schedule of transforms, worked through on plain integers as its head describes it."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from cuzk.kernels.gpu import ntt_schedule
from cuzk.kernels.gpu.ntt_schedule import FactorTable, PassWork, Schedule, first_radix_log2, pass_bits
from cuzk.kernels.modulus import FR
from cuzk.kernels.ntt import Transform, ntt_textbook

R = FR.p
SHIFT = 7


def entry(table: FactorTable, row: int, column: int) -> int:
    return table.first * pow(table.ratio, row, R) * pow(table.root, row * column, R) % R


def entries(table: FactorTable) -> list[list[int]]:
    return [
        [entry(table, row, column) for column in range(1 << table.columns_log2)]
        for row in range(1 << table.rows_log2)
    ]


def run_steps(work: PassWork, roots: list[int], x: list[int]) -> list[int]:
    """Radix by radix in place, then digits reversed: natural order in and out. roots: of the steps."""
    bits, size = work.shape.bits, len(x)
    digits = [first_radix_log2(bits), *[3] * len(work.steps)]
    tables = [entries(table) for table in work.steps]
    below = bits
    for digit, root, table in zip(digits, roots, [*tables, None], strict=True):
        below -= digit
        for block in range(0, size, 1 << (below + digit)):
            for rest in range(1 << below):
                places = [block + (d << below) + rest for d in range(1 << digit)]
                for out, (place, y) in enumerate(
                    zip(places, ntt_textbook([x[place] for place in places], root), strict=True)
                ):
                    x[place] = y * table[out][rest] % R if table and out else y
    return [x[place_of(row, digits)] for row in range(size)]


def place_of(row: int, digits: list[int]) -> int:
    """Where the output of that row lies after the steps: its digits, the lowest first, from the top."""
    place = 0
    for digit in digits:
        place, row = place << digit | row & ((1 << digit) - 1), row >> digit
    return place


def factor_of(work: PassWork, tables: list[list[list[int]]], row: int, column: int) -> int:
    """What a value is multiplied by, beside the steps."""
    if not tables:
        return 1
    if not work.shape.strided and work.shape.inverse:
        digit = row >> (work.shape.bits - 3)
        return tables[0][digit][0] if digit or work.shape.scaled else 1
    low = column & ((1 << work.near_log2) - 1)
    far = tables[1][column >> work.near_log2][row] if len(tables) == 2 else 1
    return tables[0][row][low] * far % R


def run_pass(work: PassWork, kind: Transform, vector: list[int]) -> list[int]:
    columns, rows = 1 << work.columns_log2, 1 << work.shape.bits
    digits = [first_radix_log2(work.shape.bits), *[3] * len(work.steps)]
    roots = [pow(kind.root, kind.n >> digit, R) for digit in digits]
    tables = [entries(table) for table in work.factors]
    out = list(vector)
    for outer, column in product(range(len(vector) // rows // columns), range(columns)):
        places = [(outer * rows + row) * columns + column for row in range(rows)]
        factors = [factor_of(work, tables, row, column) for row in range(rows)]
        x = [out[place] for place in places]
        if not kind.inverse:
            x = [v * f % R for v, f in zip(x, factors, strict=True)]
        x = run_steps(work, roots, x)
        if kind.inverse:
            x = [v * f % R for v, f in zip(x, factors, strict=True)]
        for place, value in zip(places, x, strict=True):
            out[place] = value
    return out


def run_schedule(schedule: Schedule, kind: Transform, vector: list[int]) -> list[int]:
    for work in schedule.works(kind):
        vector = run_pass(work, kind, vector)
    return vector


def expected(schedule: Schedule, kind: Transform, x: list[int]) -> list[int]:
    """By the textbook; coefficients in the schedule's order."""
    order = schedule.coefficients_at(np.arange(kind.n)).tolist()
    factors = [kind.whole_scale * pow(kind.shift, k, R) % R for k in range(kind.n)]
    if kind.inverse:
        y = ntt_textbook(x, kind.root)
        return [y[k] * factors[k] % R for k in order]
    natural = [0] * kind.n
    for row, k in enumerate(order):
        natural[k] = x[row] * factors[k] % R
    return ntt_textbook(natural, kind.root)


def check(schedule: Schedule, **scaling: int) -> None:
    rng = random.Random(schedule.log2_n)
    x = [rng.randrange(R) for _ in range(1 << schedule.log2_n)]
    for inverse in (True, False):
        kind = Transform(schedule.log2_n, inverse, **scaling)
        assert run_schedule(schedule, kind, x) == expected(schedule, kind, x)


@pytest.mark.parametrize("scaling", [{}, {"scale": 5, "shift": SHIFT}])
@pytest.mark.parametrize("log2_n", [6, 7, 8, 9, 10, 11, 12, 13])
def test_one_and_two_passes_are_the_textbooks_transform(log2_n: int, scaling: dict[str, int]) -> None:
    check(Schedule(log2_n), **scaling)


@pytest.mark.parametrize("bits", [(7, 6), (6, 8)])
def test_two_factor_tables_give_what_one_gives(
    bits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ntt_schedule, "_ONE_TABLE_LOG2", 12)
    monkeypatch.setattr(ntt_schedule, "_NEAR_LOG2", 4)
    schedule = Schedule(sum(bits), bits=bits)
    assert len(schedule.works(Transform(schedule.log2_n, inverse=True))[0].factors) == 2
    check(schedule, scale=3, shift=SHIFT)


@pytest.mark.slow
def test_three_passes_are_the_textbooks_transform() -> None:
    check(Schedule(18, bits=(6, 6, 6)), scale=3, shift=SHIFT)


@pytest.mark.parametrize("log2_n", range(33))
def test_every_size_has_passes_that_exist(log2_n: int) -> None:
    schedule = Schedule(log2_n)
    for kind in (Transform(log2_n, True, shift=SHIFT), Transform(log2_n, False, shift=SHIFT)):
        for work in schedule.works(kind, times=True, minus=True):
            assert work.shape.tile <= log2_n
            assert work.shape.threads <= 256
            assert not work.shape.strided or work.shape.tile - work.shape.bits <= work.columns_log2
    assert sum(schedule.bits) == (log2_n if log2_n >= 6 else 0)


def test_the_measured_splits() -> None:
    assert [pass_bits(k) for k in (22, 24, 26, 27)] == [(7, 7, 8), (8, 8, 8), (8, 9, 9), (9, 9, 9)]


def test_another_vector_enters_the_first_pass_and_leaves_the_last() -> None:
    for inverse in (True, False):
        shapes = [work.shape for work in Schedule(27).works(Transform(27, inverse), times=True, minus=True)]
        assert [shape.times for shape in shapes] == [True, False, False]
        assert [shape.minus for shape in shapes] == [False, False, True]


@pytest.mark.parametrize("log2_n", [3, 8, 13, 20])
def test_rows_hold_every_coefficient_once(log2_n: int) -> None:
    order = Schedule(log2_n).coefficients_at(np.arange(1 << log2_n))
    assert np.array_equal(np.sort(order), np.arange(1 << log2_n))
    assert order[-1] == (1 << log2_n) - 1
