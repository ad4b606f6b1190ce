"""Sizes of updates: names of parameters, challenges and digests, against upstream's tables."""

from __future__ import annotations

import json

import pytest

from cuzk.errors import InputError
from cuzk.sector.shape import GIB, KIB, MIB
from cuzk.sector.update_shape import update_shape_of, update_shapes
from tests.sector.other_vectors import EXPECT, OTHER, UPDATES

# p, high select, b, g, D, e
TABLE = {
    2 * KIB: (0, 1, 6, 42, 1, 3),
    4 * KIB: (0, 1, 7, 36, 1, 4),
    16 * KIB: (1, 1, 8, 31, 1, 1),
    32 * KIB: (1, 1, 9, 28, 1, 2),
    8 * MIB: (2, 8, 16, 15, 1, 9),
    16 * MIB: (2, 8, 17, 14, 1, 10),
    512 * MIB: (4, 8, 20, 12, 8, 13),
    32 * GIB: (4, 8, 26, 9, 10, 19),
    64 * GIB: (4, 8, 27, 9, 10, 20),
}


@pytest.mark.parametrize("shape", update_shapes(), ids=lambda shape: shape.name)
def test_what_a_size_decides_is_upstreams(shape) -> None:
    assert update_shape_of(shape.sector_bytes) == shape
    assert (
        shape.partition_bits,
        shape.high_select,
        shape.challenge_bits,
        shape.challenges_a_digest,
        shape.digests,
        shape.d_path_levels,
    ) == TABLE[shape.sector_bytes]


@pytest.mark.parametrize("sector_bytes", [2 * KIB, 8 * MIB, 512 * MIB, 32 * GIB, 64 * GIB])
def test_published_parameters_have_their_names(sector_bytes: int) -> None:
    manifest = json.loads((OTHER.parent / "parameters.json").read_text())
    names = {name.removesuffix(".params") for name in manifest if name.endswith(".params")}
    assert update_shape_of(sector_bytes).parameter_stem in names


@pytest.mark.parametrize("name", UPDATES)
def test_parameters_of_vectors_have_their_names(name: str) -> None:
    (shape,) = (
        shape for shape in update_shapes() if shape.parameter_stem == EXPECT["vectors"][name]["param_file"]
    )
    assert shape.kind == "snap-update"


def test_a_gibibyte_has_no_update() -> None:
    with pytest.raises(InputError, match="there is no snap proof of 1GiB"):
        update_shape_of(GIB)
