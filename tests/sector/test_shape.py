"""Known answers: the published parameter manifest, and names that upstream gave its own files."""

import json
from pathlib import Path

import pytest

from cuzk.errors import InputError
from cuzk.groth16.parameters.manifest import is_published
from cuzk.sector.porep.registered_proof import Feature, all_registered_proofs, registered_proof
from cuzk.sector.porep.shape import porep_shape, porep_shapes
from cuzk.sector.shape import GIB, KIB, MIB, shape_of

VECTORS = Path(__file__).parent.parent / "vectors"
CASES = json.loads((VECTORS / "porep" / "vectors.json").read_text())["cases"]


@pytest.mark.parametrize(
    "shape", [s for s in porep_shapes() if is_published(s.parameter_stem)], ids=lambda s: s.name
)
def test_parameter_names_of_published_sizes_are_in_the_manifest_with_their_size(shape):
    manifest = json.loads((VECTORS / "parameters.json").read_text())
    for ending in (".params", ".vk"):
        assert manifest[shape.parameter_stem + ending]["sector_size"] == shape.sector_bytes


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["file"])
def test_parameter_names_are_upstreams(case):
    assert porep_shape(case["sector_size"]).parameter_stem == case["parameter_id"]


@pytest.mark.parametrize(
    "sector_bytes, start",
    [
        (4 * KIB, "71fadf77"),
        (16 * KIB, "5d6414be"),
        (32 * KIB, "2a21b24b"),
        (16 * MIB, "86c715b3"),
        (GIB, "002b03e3"),
    ],
)
def test_parameter_names_of_unpublished_sizes(sector_bytes, start):
    shape = porep_shape(sector_bytes)
    assert not is_published(shape.parameter_stem)
    assert shape.parameter_stem.rpartition("-")[2].startswith(start)


@pytest.mark.parametrize(
    "name, d_levels, arities, layers, challenges, partitions",
    [
        ("2KiB", 6, (8, 8), 2, 2, 1),
        ("4KiB", 7, (8, 8, 2), 2, 2, 1),
        ("16KiB", 9, (8, 8, 8), 2, 2, 1),
        ("32KiB", 10, (8, 8, 8, 2), 2, 2, 1),
        ("8MiB", 18, (8,) * 6, 2, 2, 1),
        ("16MiB", 19, (8,) * 6 + (2,), 2, 2, 1),
        ("512MiB", 24, (8,) * 8, 2, 2, 1),
        ("1GiB", 25, (8,) * 8 + (2,), 2, 2, 1),
        ("32GiB", 30, (8,) * 10, 11, 18, 10),
        ("64GiB", 31, (8,) * 10 + (2,), 11, 18, 10),
    ],
)
def test_shapes(name, d_levels, arities, layers, challenges, partitions):
    (shape,) = [s for s in porep_shapes() if s.name == name]
    assert (shape.d_levels, shape.path_arities) == (d_levels, arities)
    assert (shape.layers, shape.challenges, shape.partitions) == (layers, challenges, partitions)


@pytest.mark.parametrize("sector_bytes", [0, -1, 1, 2047, 2049, 8 * KIB, 128 * GIB])
def test_a_size_without_circuit_is_refused(sector_bytes):
    with pytest.raises(InputError, match="2KiB"):
        shape_of(sector_bytes)


@pytest.mark.parametrize(
    "name, number, size_key, partitions",
    [
        ("StackedDrg2KiBV1", 0, "StackedDrg2KiBV1", 1),
        ("StackedDrg32GiBV1_1", 8, "StackedDrg32GiBV1", 10),
        ("StackedDrg64GiBV1_1_Feat_SyntheticPoRep", 14, "StackedDrg64GiBV1", 10),
        ("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep", 15, "StackedDrg2KiBV1", 13),
        ("StackedDrg32GiBV1_2_Feat_NonInteractivePoRep", 18, "StackedDrg32GiBV1", 126),
    ],
)
def test_registered_proofs(name, number, size_key, partitions):
    entry = registered_proof(name)
    assert (entry.number, entry.size_key, entry.partitions) == (number, size_key, partitions)
    assert entry.porep_id == bytes([number]) + bytes(31)


def test_the_registry_is_numbered_without_gaps_and_twenty_long():
    assert [entry.number for entry in all_registered_proofs()] == list(range(20))
    assert [entry.feature for entry in all_registered_proofs()].count(Feature.SYNTHETIC) == 5


@pytest.mark.parametrize("name", ["", "StackedDrg2KiB", "StackedDrg4KiBV1_1", "stackeddrg2kibv1", "X" * 9999])
def test_an_unknown_registered_proof_is_refused_in_a_short_message(name):
    with pytest.raises(InputError) as refusal:
        registered_proof(name)
    assert len(str(refusal.value)) < 400
