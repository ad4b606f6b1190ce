"""The circuit of proofs of spacetime: counts of every size, digests of circuits and assignments.

Counts marked upstream are asserted there; the others, and the digests, come from a run of filecoin-proofs
19.1.0 with bellperson 0.27.0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.digest import r1cs_digest
from cuzk.circuit.fallback_post import build, free_values
from cuzk.circuit.rows import evaluate_side, unsatisfied_row
from cuzk.circuit.witness import assign, free_counts, free_places
from cuzk.sector.post import read_post, synthesize_post
from cuzk.sector.post_shape import WINDOW, WINNING, post_shape
from cuzk.sector.shape import GIB, KIB, MIB
from tests.circuit.plain import DEVICE, density, satisfying
from tests.sector.other_vectors import EXPECT, POSTS, expected, pieces_of

# rows without those of inputs, aux, inputs; dense in A, in B; terms of A, B, C
SIZES = {
    (WINNING, 2 * KIB): ((90750, 91674, 133), (69300, 66792), (621985, 92070, 113652)),
    (WINNING, 8 * MIB): ((230670, 233442, 133), (176748, 169488), (1585585, 234366, 289476)),
    (WINNING, 512 * MIB): ((300630, 304326, 133), (230472, 220836), (2067385, 305514, 377388)),
    (WINNING, 32 * GIB): ((370590, 375210, 133), (284196, 272184), (2549185, 376662, 465300)),
    (WINNING, 64 * GIB): ((391314, 396000, 133), (299838, 287694), (2689501, 397518, 491040)),
    (WINDOW, 2 * KIB): ((21866, 22128, 23), (16770, 16028), (150285, 22230, 27456)),
    (WINDOW, 8 * MIB): ((64266, 65088, 23), (49330, 47148), (442285, 65350, 80736)),
    (WINDOW, 512 * MIB): ((85466, 86568, 23), (65610, 62708), (588285, 86910, 107376)),
}
LARGE = {
    (WINDOW, 32 * GIB): (
        (125279217, 126902376, 25840),  # upstream: the rows
        (96179805, 91925766),
        (862416559, 127398015, 157401792),
    ),
    (WINDOW, 64 * GIB): (
        (129887900, 131500200, 25301),  # upstream: the rows
        (99624500, 95413200),
        (893324601, 132008500, 163088400),
    ),
}
UNPUBLISHED = {  # rows, aux, dense in A, in B
    (WINNING, 4 * KIB): (111474, 112464, 84942, 82302),
    (WINNING, 16 * KIB): (125730, 127116, 96162, 92466),
    (WINNING, 32 * KIB): (146454, 147906, 111804, 107976),
    (WINDOW, 4 * KIB): (28146, 28428, 21510, 20728),
    (WINDOW, 16 * KIB): (32466, 32868, 24910, 23808),
    (WINDOW, 32 * KIB): (38746, 39168, 29650, 28508),
}


def build_circuit(shape: Any) -> Circuit:
    builder = CircuitBuilder(f"{shape.kind} {shape.name}")
    build(builder, shape)
    return builder.circuit()


@lru_cache(maxsize=2)
def circuit_of(kind: str, sector_bytes: int) -> Circuit:
    return build_circuit(post_shape(kind, sector_bytes))


@pytest.mark.parametrize(("kind", "sectors", "challenges"), [(WINDOW, 2, 10), (WINNING, 66, 1)])
def test_free_values_are_counted_without_a_look_at_each(kind: str, sectors: int, challenges: int) -> None:
    """A 2 KiB sector has 64 nodes in two levels of eight."""
    circuit = circuit_of(kind, 2 * KIB)
    numbers, bits = free_counts(circuit)
    assert (numbers, bits) == (sectors * (3 + challenges * (1 + 7 + 7)), sectors * challenges * 6)
    assert (numbers, bits) == tuple(map(len, free_places(circuit)))


@pytest.mark.parametrize(
    ("kind", "sector_bytes"), [*SIZES, *(pytest.param(*size, marks=pytest.mark.slow) for size in LARGE)]
)
def test_published_sizes_have_the_known_counts(kind: str, sector_bytes: int) -> None:
    circuit = circuit_of(kind, sector_bytes)
    counts, dense, nonzeros = (SIZES | LARGE)[kind, sector_bytes]
    assert (circuit.rows, circuit.num_aux, circuit.num_inputs) == counts
    assert density(circuit) == dense
    assert circuit.nonzeros == nonzeros
    assert np.flatnonzero(circuit.occurs(1)[: circuit.num_inputs]).tolist() == [0]


@pytest.mark.parametrize(("kind", "sector_bytes"), UNPUBLISHED)
def test_other_sizes_have_the_known_counts(kind: str, sector_bytes: int) -> None:
    circuit = circuit_of(kind, sector_bytes)
    assert (circuit.rows, circuit.num_aux, *density(circuit)) == UNPUBLISHED[kind, sector_bytes]


def test_a_whole_window_of_32_gib_is_described_in_little_memory() -> None:
    circuit = circuit_of(WINDOW, 32 * GIB)
    (rows, aux, inputs), _, nonzeros = LARGE[WINDOW, 32 * GIB]
    assert (circuit.rows, circuit.num_aux, circuit.num_inputs) == (rows, aux, inputs)
    assert circuit.nonzeros == nonzeros
    assert sum(array.nbytes for array in (circuit.section, *circuit.instances)) < 128 * MIB
    last = circuit.strands[2349]
    place = tuple(int(circuit.instances.table[column][last]) for column in ("first_row", "first_aux"))
    assert place == (2348 * 53333, 2348 * 54024)
    assert circuit.name_of_row(rows - 1) == "sector 2348, challenge 9, root"


@pytest.mark.parametrize(("arities", "rows"), [([8, 8], 16869), ([8, 8, 4], 22674), ([8, 8, 4, 2], 27384)])
def test_small_circuits_have_the_rows_that_upstream_asserts(arities: list[int], rows: int) -> None:
    """storage-proofs-post, fallback_circuit.rs: three sectors of five challenges."""
    shape = SimpleNamespace(
        kind="small",
        name="window",
        is_winning=False,
        sector_count=3,
        challenge_count=5,
        path_arities=arities,
    )
    circuit = build_circuit(shape)
    assert (circuit.rows, circuit.num_inputs) == (rows, 19)


@pytest.mark.parametrize(
    ("name", "kind", "sector_bytes"),
    [
        ("winning 32 GiB", WINNING, 32 * GIB),
        ("winning 64 GiB", WINNING, 64 * GIB),
        ("window 32 GiB, one sector", WINDOW, 32 * GIB),
        ("window 64 GiB, one sector", WINDOW, 64 * GIB),
    ],
)
def test_production_shapes_have_upstreams_rows(name: str, kind: str, sector_bytes: int) -> None:
    shape = post_shape(kind, sector_bytes)
    circuit = build_circuit(replace(shape, sector_count=1) if kind == WINDOW else shape)
    assert {
        "rows_before_dummies": circuit.rows,
        "r1cs_before_dummies": r1cs_digest(circuit, strands=len(circuit.strands) - 1),
        "rows": circuit.num_constraints,
        "r1cs": r1cs_digest(circuit),
        "aux": circuit.num_aux,
        "inputs": circuit.num_inputs,
    } == EXPECT["blank"][name]


@pytest.mark.parametrize("name", POSTS)
def test_whole_circuit_and_assignment_are_upstreams(name: str) -> None:
    given = read_post(pieces_of(name))
    circuit = circuit_of(given.shape.kind, given.shape.sector_bytes)
    _, digests = satisfying(circuit, free_values(given, 0))
    assert {
        "partition": given.partition_index,
        "rows_before_dummies": circuit.rows,
        "r1cs_before_dummies": r1cs_digest(circuit, strands=len(circuit.strands) - 1),
        "rows": circuit.num_constraints,
        "inputs": circuit.num_inputs,
        "aux": circuit.num_aux,
        "nnz": list(circuit.nonzeros),
        "zero_coefficients": 0,
        "r1cs_digest": r1cs_digest(circuit),
        **digests,
    } == expected(name)


@pytest.mark.parametrize(("kind", "sectors"), [(WINDOW, 1), (WINDOW, 2), (WINNING, 1)])
def test_sectors_that_nobody_sealed_satisfy_every_row_and_give_a_verifiers_inputs(
    kind: str, sectors: int
) -> None:
    shape = post_shape(kind, 32 * KIB)
    made = synthesize_post(shape, seed=1, device=DEVICE, progress=lambda *_: None, sectors=sectors)
    given, circuit = read_post(made), circuit_of(kind, 32 * KIB)
    assignment, _ = satisfying(circuit, free_values(given, 0))
    assert (assignment.inputs[1:] == given.public_inputs(0)).all()


def test_a_row_that_does_not_hold_is_named_by_sector_challenge_and_level() -> None:
    given = read_post(pieces_of("window-2k"))
    circuit, free = circuit_of(WINDOW, 2 * KIB), free_values(given, 0)
    numbers = free.numbers.copy()
    a_sector = 3 + 10 * 15
    numbers[a_sector + 3 + 4 * 15 + 1] ^= 1  # the first sibling of challenge 4 of the second sector
    assignment = assign(DEVICE, circuit, replace(free, numbers=numbers))
    sides = [evaluate_side(DEVICE, circuit, assignment, side) for side in range(3)]
    found = unsatisfied_row(DEVICE, circuit, *sides)
    assert found is not None and found[1] == "sector 1, challenge 4, root"


def test_waves_are_as_many_as_a_path_is_long() -> None:
    """Insertion and hash, a level; the sectors of a window go side by side."""
    shape = replace(post_shape(WINDOW, 64 * GIB), sector_count=3)
    assert len(build_circuit(shape).waves.starts) - 1 == 2 * 11
