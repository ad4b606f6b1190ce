"""The circuit of sector updates: counts and densities of every size, digests of whole circuits.

Digests and counts come from a run of storage-proofs-update 19.1.0 with bellperson 0.27.0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.digest import input_rows, r1cs_digest, serialized_rows
from cuzk.circuit.empty_sector_update import build, free_values
from cuzk.circuit.rows import evaluate_side, unsatisfied_row
from cuzk.circuit.witness import assign
from cuzk.sector.shape import GIB, KIB, MIB
from cuzk.sector.update import read_update
from cuzk.sector.update_shape import UpdateShape, update_shape_of, update_shapes
from cuzk.sector.update_synthesis import synthesize_update
from tests.circuit.plain import DEVICE, density, satisfying
from tests.sector.other_vectors import EXPECT, UPDATES, pieces_of

BLANK = EXPECT["blank"]["snap 32 GiB"]
SLOW = pytest.mark.slow

# constraints with those of inputs, aux; dense in A, in B; terms of A, B, C
SIZES = {
    2 * KIB: ((1705044, 1703569), (1697189, 444403), (4030893, 1706537, 3616648)),
    4 * KIB: ((2165114, 2163189), (2155229, 564063), None),
    16 * KIB: ((6300026, 6293944), (6284882, 1613422), None),
    32 * KIB: ((6760096, 6753564), (6742922, 1733082), None),
    8 * MIB: ((10007508, 9998039), (9981015, 2567921), (23284279, 10015181, 21302734)),
    16 * MIB: ((10467578, 10457659), (10439055, 2687581), None),
    512 * MIB: ((57450484, 57401314), (57212317, 14916879), (135362853, 57500527, 121971144)),
    32 * GIB: ((81049504, 80978488), (80743581, 20983607), (190374913, 81118127, 172187492)),
    64 * GIB: ((85006106, 84931220), (84682725, 22012683), (199699033, 85077653, 180585650)),
}


@cache
def circuit_of(shape: UpdateShape) -> Circuit:
    """Built here, not by an earlier process."""
    builder = CircuitBuilder(f"update {shape.name}")
    build(builder, shape)
    return builder.circuit()


def r1cs_digests_at(circuit: Circuit, rows: set[int]) -> dict[int, str]:
    """Digests of the first so many rows, which end with an instance."""
    digest, row, found = sha256(), 0, {}
    table = circuit.instances.table
    for i, serialized in enumerate(
        serialized_rows(circuit, int(np.searchsorted(table["first_row"], max(rows))))
    ):
        digest.update(serialized.data)
        row += circuit.templates[table["template"][i]].rows
        if row in rows:
            found[row] = digest.copy().hexdigest()
    return found


@pytest.mark.parametrize("shape", update_shapes(), ids=lambda shape: shape.name)
def test_every_size_has_the_known_counts(shape: UpdateShape) -> None:
    circuit = circuit_of(shape)
    counts, dense, nonzeros = SIZES[shape.sector_bytes]
    assert (circuit.num_constraints, circuit.num_aux, circuit.num_inputs) == (*counts, 5)
    assert density(circuit) == dense
    assert nonzeros is None or circuit.nonzeros == nonzeros
    assert np.flatnonzero(circuit.occurs(1)[: circuit.num_inputs]).tolist() == [0]


@pytest.mark.parametrize("shape", update_shapes(), ids=lambda shape: shape.name)
def test_every_size_follows_the_closed_form(shape: UpdateShape) -> None:
    circuit, p = circuit_of(shape), shape.partition_bits
    eights, twos = (shape.path_arities.count(arity) for arity in (8, 2))
    leaves, levels = shape.apex_leaves, shape.d_path_levels
    rows = 947 + p + 45379 * (leaves - 1) + 45381 * p + 1 + 568 * shape.digests
    aux = 947 + leaves + 2 * p + 45331 * (leaves - 1) + 45333 * p + 567 * shape.digests
    of_one = 326 + 2 * (527 * eights + 313 * twos + 1) + leaves - 1 + 45381 * levels + 1
    aux_of_one = 328 + 2 * (534 * eights + 314 * twos) + leaves - 1 + 45334 * levels
    starts = circuit.instances.table[list(circuit.strands[1:-1])]
    assert starts["first_row"].tolist() == [rows + k * of_one for k in range(shape.challenges)]
    assert starts["first_aux"].tolist() == [aux + k * aux_of_one for k in range(shape.challenges)]


def test_64_gib_is_described_in_little_memory() -> None:
    circuit = circuit_of(update_shape_of(64 * GIB))
    arrays = [circuit.full, circuit.section, *circuit.instances]
    assert sum(array.nbytes for array in arrays) < 20 * MIB


ALL_VECTORS = [pytest.param(name, marks=() if name == "snap-2k" else SLOW) for name in UPDATES]
ROWS_OF_A_PART = ("rows_before_dummies", "rows", "inputs", "aux", "nnz", "r1cs_before_dummies", "r1cs_digest")


@pytest.mark.parametrize("name", ALL_VECTORS)
def test_rows_of_a_whole_circuit_are_upstreams(name: str) -> None:
    parts = EXPECT["vectors"][name]["parts"]
    circuit = circuit_of(update_shape_of(pieces_of(name).sector_bytes))
    found = (
        circuit.rows,
        circuit.num_constraints,
        circuit.num_inputs,
        circuit.num_aux,
        list(circuit.nonzeros),
        r1cs_digest(circuit, strands=len(circuit.strands) - 1),
        r1cs_digest(circuit),
    )
    for part in parts:
        assert found == tuple(part[key] for key in ROWS_OF_A_PART)


@pytest.mark.parametrize("name", ALL_VECTORS)
def test_assignments_of_every_partition_are_upstreams(name: str) -> None:
    update, expected = read_update(pieces_of(name)), EXPECT["vectors"][name]
    circuit = circuit_of(update.shape)
    for number, part in enumerate(expected["parts"]):
        assignment, digests = satisfying(circuit, free_values(update, number))
        assert digests.items() <= part.items()
        assert (assignment.inputs[1:] == update.public_inputs(number)).all()


@pytest.mark.parametrize(
    "sector_bytes", [2 * KIB, pytest.param(32 * KIB, marks=SLOW), pytest.param(8 * MIB, marks=SLOW)]
)
def test_an_update_that_nobody_made_satisfies_every_row(sector_bytes: int) -> None:
    shape = update_shape_of(sector_bytes)
    update = read_update(synthesize_update(shape, seed=1, device=DEVICE, progress=lambda done, total: None))
    circuit, last = circuit_of(shape), shape.partitions - 1
    assignment, _ = satisfying(circuit, free_values(update, last))
    assert (assignment.inputs[1:] == update.public_inputs(last)).all()


@pytest.mark.parametrize(
    ("number", "row"),
    [
        (0, "partition"),  # which partition, and which choice of the high part
        (1, "commitments"),  # comm_r_old
        (7, "apex tree, root"),  # an apex leaf
        (15, "challenge 0, old R path, root"),  # a node of the old replica
        (16, "challenge 0, new R path, root"),  # a data node
        (47, "challenge 0, D path, root"),  # a sibling
    ],
)
def test_a_wrong_value_leaves_a_row_unsatisfied(number: int, row: str) -> None:
    update = read_update(pieces_of("snap-2k"))
    circuit, free = circuit_of(replace(update.shape, challenges=1)), free_values(update, 0)
    numbers = free.numbers[:48].copy()  # 7 values and 8 apex leaves, 2 nodes and 31 siblings of a challenge
    numbers[number, 0] ^= 64 if number == 0 else 1
    assignment = assign(DEVICE, circuit, replace(free, numbers=numbers))
    sides = [evaluate_side(DEVICE, circuit, assignment, side) for side in range(3)]
    wrong = unsatisfied_row(DEVICE, circuit, *sides)
    assert wrong is not None and wrong[1] == row


@pytest.mark.parametrize(
    ("sector_bytes", "before", "last"),
    [
        pytest.param(2 * KIB, EXPECT["vectors"]["snap-2k"]["before"], None, id="2KiB"),
        pytest.param(8 * MIB, EXPECT["vectors"]["snap-8m"]["before"], None, id="8MiB", marks=SLOW),
        pytest.param(32 * GIB, BLANK["before"], "challenge 1", id="32GiB, challenge 0"),
        pytest.param(32 * GIB, BLANK["before"], None, id="32GiB", marks=SLOW),
    ],
)
def test_steps_begin_where_upstreams_do_and_their_rows_are_upstreams(
    sector_bytes: int, before: dict[str, Any], last: str | None
) -> None:
    circuit = circuit_of(update_shape_of(sector_bytes))
    names = list(before)
    marks = [before[name] for name in (names if last is None else names[: names.index(last) + 1])]
    found = r1cs_digests_at(circuit, {mark["rows"] for mark in marks})
    assert found == {mark["rows"]: mark["r1cs"] for mark in marks}
    table = circuit.instances.table
    for mark in marks:
        # What only allocates begins at the same row: the mark stands before or behind it.
        at = table["first_aux"][table["first_row"] == mark["rows"]]
        assert mark["aux"] in at


@SLOW
def test_32_gib_is_upstreams_to_the_last_row() -> None:
    circuit = circuit_of(update_shape_of(32 * GIB))
    assert (circuit.rows, circuit.num_constraints) == (BLANK["rows_before_dummies"], BLANK["rows"])
    digest = sha256()
    for rows in serialized_rows(circuit, circuit.strands[-1]):
        digest.update(rows.data)
    assert digest.hexdigest() == BLANK["r1cs_before_dummies"]
    digest.update(input_rows(circuit.num_inputs))
    assert digest.hexdigest() == BLANK["r1cs"]


def test_the_one_zero_term_is_all_that_digests_have_and_nothing_is_computed_with() -> None:
    circuit = circuit_of(update_shape_of(2 * KIB))
    (number,) = (i for i, template in enumerate(circuit.templates) if 0 in template.values)
    template = circuit.templates[number]
    zero = [template.values[i] == 0 for i in template.coefficients.tolist()]
    assert sum(zero) * circuit.instance_counts[number] == 1
    without = replace(
        template,
        ends=template.ends - np.cumsum(np.bincount(template.term_side[zero], minlength=3)).astype(np.uint32),
        slots=np.delete(template.slots, np.flatnonzero(zero)),
        coefficients=np.delete(template.coefficients, np.flatnonzero(zero)),
    )
    templates = [without if i == number else other for i, other in enumerate(circuit.templates)]
    changed = replace(circuit, templates=tuple(templates))
    (part,) = EXPECT["vectors"]["snap-2k"]["parts"]
    assert r1cs_digest(changed) == part["r1cs_without_zero_term"]
    for ours, without_it in zip(circuit.flat_templates, changed.flat_templates, strict=True):
        assert np.array_equal(ours, without_it)


def test_no_instance_reads_a_variable_twice() -> None:
    """Rows keep terms of different slots apart: two slots of one variable would make two terms of one."""
    for shape in update_shapes()[:5]:
        circuit = circuit_of(shape)
        externals, table = circuit.instances, circuit.instances.table
        for row in table[: circuit.strands[2]]:
            template = circuit.templates[row["template"]]
            bits = externals.external_bits[row["bits_start"] :][: template.external_bits]
            numbers = externals.external_numbers[row["numbers_start"] :][: template.external_numbers]
            assert len(set(bits.tolist())) == len(bits)
            assert len(set(numbers.tolist())) == len(numbers)
