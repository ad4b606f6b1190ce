"""The PoRep circuit: counts and densities of every size, and digests of whole circuits and assignments.

Counts of 32 GiB and the small stacked circuits are asserted upstream; the digests come from a run of
filecoin-proofs 19.1.0 with bellperson 0.27.0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.digest import r1cs_digest
from cuzk.circuit.label import label
from cuzk.circuit.numbers import free_bits
from cuzk.circuit.porep import build, challenge, commitments, free_values
from cuzk.circuit.sha256 import constant_bits_be
from cuzk.proofs.kinds import built_circuit
from cuzk.sector.merkle import Paths
from cuzk.sector.porep.c1_reader import read_c1
from cuzk.sector.porep.registered_proof import registered_proof
from cuzk.sector.porep.shape import PorepShape, porep_shape, porep_shapes
from cuzk.sector.porep.synthesize import synthesize
from cuzk.sector.shape import GIB, KIB, MIB
from tests.circuit.plain import DEVICE, density, satisfying
from tests.sector.porep.documents import MADE_UP, POREP

UPSTREAM = json.loads((POREP / "vectors.json").read_text())
FIXED_ROWS = FIXED_AUX = 571

# constraints with those of inputs, aux, inputs; dense in A, in B; terms of A, B, C; bits
SIZES = {
    2 * KIB: ((2687961, 2685673, 40), (2674908, 685521), (6421005, 2689006, 5824682), 2641867),
    8 * MIB: ((3844969, 3842449, 40), (3814996, 1011289), (9388453, 3847886, 8234882), 3730451),
    512 * MIB: ((4423473, 4420837, 40), (4385040, 1174173), (10872177, 4427326, 9439982), 4274743),
    32 * GIB: (
        (130278869, 130169893, 328),
        (129753292, 33112281),
        (309405051, 130327340, 282656500),
        128470791,
    ),
    64 * GIB: (
        (131186177, 131076643, 328),
        (130637542, 33386943),
        (311892525, 131235764, 284512534),
        129287037,
    ),
}


@lru_cache(maxsize=2)
def circuit_of(shape: PorepShape) -> Circuit:
    """Built here, not by an earlier process."""
    return built_circuit(shape)


def first_challenge(shape: PorepShape) -> Circuit:
    builder = CircuitBuilder("the first challenge")
    build(builder, shape, challenges=1)
    return builder.circuit()


@pytest.mark.parametrize("sector_bytes", SIZES, ids=lambda size: porep_shape(size).name)
def test_published_sizes_have_the_known_counts(sector_bytes: int) -> None:
    circuit = circuit_of(porep_shape(sector_bytes))
    counts, dense, nonzeros, bits = SIZES[sector_bytes]
    assert (circuit.num_constraints, circuit.num_aux, circuit.num_inputs) == counts
    assert density(circuit) == dense
    assert circuit.nonzeros == nonzeros
    assert circuit.num_aux - circuit.num_full == bits
    assert np.flatnonzero(circuit.occurs(1)[: circuit.num_inputs]).tolist() == [0]


@pytest.mark.parametrize("shape", porep_shapes(), ids=lambda shape: shape.name)
def test_every_size_follows_the_closed_form(shape: PorepShape) -> None:
    d, layers = shape.d_levels, shape.layers
    eights = shape.path_arities.count(8)
    twos = shape.path_arities.count(2)
    column = {2: 311, 11: 598}[layers]
    rows = 45382 * d + 2 + 14 * (column + 530 * eights + 314 * twos + 2) + 65 + 1536 + 3584 * (layers - 1)
    rows += 522269 * layers + 1 + 2 * (530 * eights + 314 * twos + 2) + column
    aux = 1 + 45335 * d + 14 * (layers + column + 537 * eights + 315 * twos) + 64 + 1530
    aux += 3570 * (layers - 1) + 521749 * layers + 1 + 2 * (537 * eights + 315 * twos) + column
    circuit = circuit_of(shape)
    count = shape.challenges
    assert (circuit.rows, circuit.num_aux) == (FIXED_ROWS + count * rows, FIXED_AUX + count * aux)
    assert circuit.num_inputs == 4 + 18 * count
    starts = [int(circuit.instances.table["first_row"][strand]) for strand in circuit.strands[1:-1]]
    assert starts == [FIXED_ROWS + k * rows for k in range(count)]


def test_32_gib_is_described_in_little_memory() -> None:
    circuit = circuit_of(porep_shape(32 * GIB))
    arrays = [circuit.full, circuit.section, *circuit.instances]
    assert sum(array.nbytes for array in arrays) < 32 * MIB


@pytest.mark.parametrize(
    ("levels", "arities", "rows"),
    [(3, [2, 2, 2], 1206212), (3, [8], 1199620), (5, [8, 4], 1296576), (6, [8, 4, 2], 1346982)],
)
def test_small_stacked_circuits_have_the_rows_that_upstream_asserts(
    levels: int, arities: list[int], rows: int
) -> None:
    """storage-proofs-porep, stacked_circuit.rs: two layers, one challenge."""
    shape: Any = SimpleNamespace(d_arities=[2] * levels, path_arities=arities, layers=2)
    builder = CircuitBuilder("stacked")
    challenge(builder, shape, commitments(builder))
    circuit = builder.circuit()
    assert (circuit.rows, circuit.num_inputs) == (rows, 22)


def test_label_has_the_rows_that_upstream_asserts() -> None:
    """create_label.rs: 38 x 256 free bits, the node a constant."""
    builder = CircuitBuilder("label")
    replica_id, *parents = (free_bits(builder, 256) for _ in range(38))
    label(builder, replica_id, 1, constant_bits_be(2, 64)[::-1], parents)
    assert builder.circuit().rows == 532025


def test_fixed_part_has_the_known_rows() -> None:
    circuit = circuit_of(porep_shape(2 * KIB))
    expected = "681bfeb5237a77e92c0fc9dfbf20ef5588a0c960a9ac7ad6e9f6f84be2f4b97b"
    assert r1cs_digest(circuit, strands=1) == expected


@pytest.mark.parametrize(
    "sector_bytes",
    [pytest.param(2 * KIB), *(pytest.param(size, marks=pytest.mark.slow) for size in list(SIZES)[1:])],
    ids=lambda size: porep_shape(size).name,
)
def test_first_challenge_has_the_known_rows(sector_bytes: int) -> None:
    shape = porep_shape(sector_bytes)
    circuit = first_challenge(shape)
    assert r1cs_digest(circuit, strands=2) == UPSTREAM["r1cs_after_challenge_0"][shape.name]


def cases() -> list[Any]:
    fast = {"2k-zero.json"}
    return [
        pytest.param(case, id=case["file"], marks=() if case["file"] in fast else pytest.mark.slow)
        for case in UPSTREAM["cases"]
    ]


@pytest.mark.parametrize("case", cases())
def test_whole_circuit_and_assignment_are_upstreams(case: dict[str, Any]) -> None:
    shape = porep_shape(case["sector_size"])
    c1 = read_c1(POREP / case["file"], registered=MADE_UP.get(case["file"]))
    circuit = circuit_of(shape)
    for k, expected in enumerate(case["partitions"]):
        _, digests = satisfying(circuit, free_values(c1, k))
        assert {
            "constraints_with_dummies": circuit.num_constraints,
            "inputs": circuit.num_inputs,
            "aux": circuit.num_aux,
            "nnz_abc": list(circuit.nonzeros),
            "r1cs_digest": r1cs_digest(circuit),
            **digests,
            "after_challenge_0": {
                "constraints": int(circuit.instances.table["first_row"][circuit.strands[2]]),
                "aux": int(circuit.instances.table["first_aux"][circuit.strands[2]]),
                "r1cs_digest": r1cs_digest(circuit, strands=2),
            },
        } == expected


@pytest.mark.parametrize(
    "name",
    [
        "StackedDrg2KiBV1",
        "StackedDrg2KiBV1_1",
        "StackedDrg2KiBV1_1_Feat_SyntheticPoRep",
        "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep",
        pytest.param("StackedDrg8MiBV1_1", marks=pytest.mark.slow),
    ],
)
def test_a_sector_that_nobody_sealed_satisfies_every_row_and_gives_a_verifiers_inputs(name: str) -> None:
    c1 = synthesize(registered_proof(name), seed=1, device=DEVICE, progress=lambda done, total: None)
    circuit = circuit_of(c1.shape)
    last = c1.partition_count - 1
    assignment, _ = satisfying(circuit, free_values(c1, last))
    assert (assignment.inputs[1:] == c1.public_inputs(last)).all()


def test_free_values_are_in_the_order_in_which_the_circuit_allocates_them() -> None:
    """Challenge by challenge, parent by parent, as `challenge` is written; of paths with many levels."""
    name = "StackedDrg32GiBV1_1"
    c1 = synthesize(registered_proof(name), seed=1, device=DEVICE, progress=lambda done, total: None)
    given, shape = c1.partitions[1], c1.shape
    numbers = [c1.replica_id, c1.comm_d, c1.comm_r, given.comm_r_last, given.comm_c]
    bits: list[int] = []

    def path(paths: Paths, *at: int, arities: Sequence[int] = shape.path_arities) -> None:
        numbers.extend(map(bytes, paths.siblings[at]))
        for index, arity in zip(paths.indices[at].tolist(), arities, strict=True):
            bits.extend(index >> i & 1 for i in range(arity.bit_length() - 1))

    for number, node in enumerate(given.challenges.tolist()):
        numbers.append(bytes(given.d_paths.leaves[number]))
        path(given.d_paths, number, arities=shape.d_arities)
        for parent in range(1, 15):
            numbers.extend(map(bytes, given.columns[number, parent]))
            path(given.c_paths, number, parent)
        bits.extend(node >> i & 1 for i in range(64))
        path(given.r_paths, number)
        path(given.c_paths, number, 0)
    free = free_values(c1, 1)
    assert free.numbers.tobytes() == b"".join(numbers)
    assert free.bits.tolist() == bits


def test_no_instance_reads_a_variable_twice() -> None:
    """Rows keep terms of different slots apart: two slots of one variable would make two terms of one."""
    circuit = first_challenge(porep_shape(32 * GIB))
    externals, table = circuit.instances, circuit.instances.table
    for row in table:
        template = circuit.templates[row["template"]]
        bits = externals.external_bits[row["bits_start"] :][: template.external_bits]
        numbers = externals.external_numbers[row["numbers_start"] :][: template.external_numbers]
        assert len(set(bits.tolist())) == len(bits)
        assert len(set(numbers.tolist())) == len(numbers)
        own = circuit.num_inputs + row["first_aux"]
        assert (bits < row["first_aux"]).all() and (numbers < own).all()
