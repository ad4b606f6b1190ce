"""Rows and their transpose against plain ints, and what is said of a row that is not satisfied."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.merkle_path import merkle_path, sha256_node
from cuzk.circuit.numbers import free_numbers, inputize
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.rows import evaluate_at, evaluate_rows, evaluate_side, tasks, unsatisfied_row
from cuzk.circuit.tables import signed_powers
from cuzk.circuit.witness import Assignment, assign
from cuzk.kernels.circuit.instances import SIGN
from cuzk.kernels.fr_vector import from_integers
from cuzk.kernels.modulus import FR
from tests.circuit.plain import DEVICE, aux_is_full, ints, matrix_rows, row_values, solve, variables
from tests.toy_circuit import TOY_PUBLIC_INPUT, toy_circuit, toy_values


def path_circuit() -> CircuitBuilder:
    """One level of each kind of hash: every kind of template but the long SHA-256 variants."""
    builder = CircuitBuilder("path")
    with builder.section("start"):
        leaf, root = free_numbers(builder, 2)
        inputize(builder, root)
    builder.begin_strand()
    with builder.section("D path"):
        merkle_path(builder, leaf, root, [2], sha256_node)
    builder.begin_strand()
    with builder.section("R path"):
        merkle_path(builder, leaf, root, [8], poseidon)
    return builder


@pytest.fixture(scope="module")
def path() -> tuple[Circuit, Assignment]:
    """Its roots are not what its leaves hash to: the equalities are not satisfied, all other rows are."""
    random = Random(1)
    numbers = [FR.p - 1, 7, *(random.randrange(FR.p) for _ in range(8))]
    return solve(path_circuit(), numbers, [1, 0, 1, 1])


def test_toy_circuit_has_upstreams_sizes_and_public_input() -> None:
    circuit = toy_circuit()
    assignment = assign(DEVICE, circuit, toy_values())
    assert (circuit.num_constraints, circuit.num_aux, circuit.num_inputs) == (314, 313, 2)
    assert ints(assignment.inputs) == [1, TOY_PUBLIC_INPUT]
    # |a| = 236 and |b| = 235 points in its parameters
    assert circuit.num_inputs + int(circuit.a_aux_density.sum()) == 236
    assert int(circuit.occurs(1).sum()) == 235


@pytest.mark.parametrize("side", [0, 1, 2])
def test_rows_are_those_of_plain_ints(path: tuple[Circuit, Assignment], side: int) -> None:
    circuit, assignment = path
    expected = row_values(circuit, variables(circuit, assignment), side)
    assert ints(evaluate_side(DEVICE, circuit, assignment, side)) == expected


@pytest.mark.parametrize("side", [0, 1, 2])
def test_rows_of_an_assignment_that_satisfies_nothing_are_those_of_plain_ints(side: int) -> None:
    """Sums of bits may then be negative, or r and more."""
    circuit = path_circuit().circuit()
    random = np.random.default_rng(side)
    count = circuit.num_inputs + circuit.num_full
    bits = random.integers(0, 2, circuit.num_aux, dtype=np.uint8)
    bits[circuit.num_aux // 2 :] = side == 2
    bits[aux_is_full(circuit)] = 0
    values = from_integers([Random(side).randrange(FR.p) for _ in range(count)])
    values[0] = [1, 0, 0, 0]
    assignment = Assignment(values=values, bits=bits, num_inputs=circuit.num_inputs)
    expected = row_values(circuit, variables(circuit, assignment), side)
    assert ints(evaluate_side(DEVICE, circuit, assignment, side)) == expected


def test_rows_fill_an_array_that_is_given_and_clear_the_rest(path: tuple[Circuit, Assignment]) -> None:
    circuit, assignment = path
    count = circuit.num_constraints
    given = tuple(np.full((count + 9, 4), 5, dtype=np.uint64) for _ in range(2))
    filled = evaluate_rows(DEVICE, circuit, assignment, out=given)
    for array, into, fresh in zip(given, filled, evaluate_rows(DEVICE, circuit, assignment), strict=True):
        assert into is array
        assert (array[:count] == fresh).all() and (array[count:] == 0).all()


def test_transpose_is_that_of_plain_ints(path: tuple[Circuit, Assignment]) -> None:
    circuit, _ = path
    edges = [0, 1, FR.p - 1, FR.p - 2]
    random = Random(3)
    lagrange = [
        random.choice(edges) if random.random() < 0.2 else random.randrange(FR.p)
        for _ in range(circuit.num_constraints)
    ]
    expected = [[0] * (circuit.num_inputs + circuit.num_aux) for _ in range(3)]
    for weight, row in zip(lagrange, matrix_rows(circuit), strict=True):
        for total, side in zip(expected, row, strict=True):
            for variable, factor in side.items():
                total[variable] = (total[variable] + factor * weight) % FR.p
    assert [ints(side) for side in evaluate_at(DEVICE, circuit, from_integers(lagrange))] == expected


def test_transpose_does_not_depend_on_how_work_is_cut(
    path: tuple[Circuit, Assignment], monkeypatch: pytest.MonkeyPatch
) -> None:
    circuit, _ = path
    lagrange = np.random.default_rng(4).integers(0, 1 << 62, (circuit.num_constraints, 4), dtype=np.uint64)
    whole = evaluate_at(DEVICE, circuit, lagrange)
    monkeypatch.setattr("cuzk.circuit.rows.ROWS_A_BATCH", 1000)
    assert all((x == y).all() for x, y in zip(evaluate_at(DEVICE, circuit, lagrange), whole, strict=True))


@pytest.mark.parametrize("rows", [1, 100, 30000, 1 << 30])
def test_tasks_cover_all_instances_once(path: tuple[Circuit, Assignment], rows: int) -> None:
    count = len(path[0].instances.table)
    ranges = list(tasks(path[0], 2, count, rows))
    assert [i for begin, end in ranges for i in range(begin, end)] == list(range(2, count))
    assert all(begin < end for begin, end in ranges)


def test_first_unsatisfied_row_is_named(path: tuple[Circuit, Assignment]) -> None:
    circuit, assignment = path

    def first(bits: np.ndarray) -> tuple[int, str] | None:
        changed = Assignment(values=assignment.values, bits=bits, num_inputs=assignment.num_inputs)
        sides = [evaluate_side(DEVICE, circuit, changed, side) for side in range(3)]
        return unsatisfied_row(DEVICE, circuit, *sides)

    assert first(assignment.bits) == (45384, "D path, root")
    flipped = assignment.bits.copy()
    templates = [circuit.templates[number].name for number in circuit.instances.table["template"]]
    flipped[circuit.instances.table["first_aux"][templates.index("SHA-256 block")] + 20000] ^= 1
    found = first(flipped)
    assert found is not None
    assert found[1].startswith("D path, level 0, SHA block 0, round ")


def test_inputs_rows_are_named(path: tuple[Circuit, Assignment]) -> None:
    circuit, _ = path
    assert circuit.name_of_row(circuit.num_constraints - 1) == f"input {circuit.num_inputs - 1}"
    assert circuit.name_of_row(0) == "start"
    assert circuit.name_of_row(circuit.rows - 1) == "R path, root"


@pytest.mark.parametrize(
    ("value", "powers"),
    [
        (1, [0]),
        (FR.p - 1, [SIGN]),
        (FR.p - 2, [SIGN + 1]),
        ((1 << 253) + (1 << 7), [7, 253]),
        ((1 << 200) - 1, [SIGN, 200]),
        (0b10101, [0, 2, 4]),
        (0b1010101, []),
        (FR.p // 2, []),
    ],
)
def test_coefficients_split_into_signed_powers_of_two(value: int, powers: list[int]) -> None:
    assert signed_powers(value) == powers
    total = sum((-1) ** (code >= SIGN) * 2 ** (code % SIGN) for code in powers)
    assert not powers or total % FR.p == value
