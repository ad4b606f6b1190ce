"""Strands that are copied: the circuit is the one that building each of them gives."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.merkle_path import merkle_path
from cuzk.circuit.numbers import equate, free_number, free_numbers, inputize, pack_into_input, to_bits
from cuzk.circuit.poseidon import poseidon
from tests.circuit.plain import matrix_rows


def begun(builder: CircuitBuilder) -> tuple[int, int]:
    root, other = free_numbers(builder, 2)
    inputize(builder, root)
    return root, other


def strand(builder: CircuitBuilder, root: int, other: int) -> None:
    """Reads variables of the first strand, its own, and an input of its own and one of the first strand."""
    leaf = free_number(builder)
    inputize(builder, leaf)
    with builder.section("path"):
        merkle_path(builder, leaf, root, [8, 2], poseidon)
    pack_into_input(builder, to_bits(builder, other)[:5])
    equate(builder, -2, poseidon(builder, [leaf, other]))


def copied(count: int) -> Circuit:
    builder = CircuitBuilder("alike")
    shared = begun(builder)
    with builder.strands("strand", count):
        strand(builder, *shared)
    return builder.circuit()


def built(count: int) -> Circuit:
    builder = CircuitBuilder("alike")
    shared = begun(builder)
    for number in range(count):
        builder.begin_strand(f"strand {number}")
        strand(builder, *shared)
    return builder.circuit()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_copies_have_the_rows_places_and_names_of_strands_built_one_by_one(count: int) -> None:
    fast, slow = copied(count), built(count)
    assert matrix_rows(fast) == matrix_rows(slow)
    for name in slow.instances._fields:
        assert np.array_equal(getattr(fast.instances, name), getattr(slow.instances, name)), name
    plain = {field.name for field in fields(slow)} - {"templates", "instances", "section", "sections"}
    assert {name: getattr(fast, name) for name in plain} == {name: getattr(slow, name) for name in plain}
    rows = range(slow.num_constraints)
    assert [fast.name_of_row(row) for row in rows] == [slow.name_of_row(row) for row in rows]


def test_a_row_is_named_with_its_strand() -> None:
    circuit = copied(3)
    last = int(circuit.instances.table["first_row"][circuit.strands[4] - 1])
    assert circuit.name_of_row(last) == "strand 2"
    assert {circuit.name_of_row(row).split(",")[0] for row in range(1, circuit.rows)} == {
        "strand 0", "strand 1", "strand 2"
    }  # fmt: skip


def test_an_instance_may_follow_the_strands() -> None:
    builder = CircuitBuilder("more")
    shared = begun(builder)
    with builder.strands("strand", 3):
        strand(builder, *shared)
    builder.begin_strand("end")
    equate(builder, *shared)
    circuit = builder.circuit()
    assert circuit.rows == copied(3).rows + 1
    assert circuit.name_of_row(circuit.rows - 1) == "end"
    assert matrix_rows(circuit)[circuit.rows - 1][0] == {circuit.num_inputs: 1}
