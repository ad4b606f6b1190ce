"""Sectors that nobody sealed: every check passes; where all nodes are labelled, it is sealing to the byte."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from cuzk.errors import UsageError
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.proofs.sources import check_input
from cuzk.sector.porep.c1_reader import parse_c1
from cuzk.sector.porep.c1_writer import encode_c1
from cuzk.sector.porep.public_inputs import graph_of
from cuzk.sector.porep.registered_proof import (
    Feature,
    all_registered_proofs,
    registered_proof,
    registered_proof_of_size,
)
from cuzk.sector.porep.synthesize import LARGEST_LABELLED_NODES, synthesize
from cuzk.sector.shape import GIB, KIB, MIB
from tests.sector.porep.documents import POREP, compact
from tests.sector.porep.sealing import sealed

DEVICE = CpuDevice()
SYNTHETIC, NON_INTERACTIVE = "_1_Feat_SyntheticPoRep", "_2_Feat_NonInteractivePoRep"


def made(name, seed=0, device=DEVICE):
    return synthesize(registered_proof(name), seed=seed, device=device, progress=lambda done, total: None)


def is_fast(registered):
    """Not the larger ones of eleven layers, nor those of which 2^18 nodes are labelled."""
    if registered.feature is Feature.INTERACTIVE:
        return registered.sector_bytes < 32 * GIB or registered.name == "StackedDrg32GiBV1_1"
    return registered.sector_bytes == 2 * KIB


def can_be_made(registered):
    return registered.feature is Feature.INTERACTIVE or registered.shape.nodes <= LARGEST_LABELLED_NODES


def cases(wanted):
    return [
        pytest.param(entry.name, marks=() if is_fast(entry) or not can_be_made(entry) else pytest.mark.slow)
        for entry in all_registered_proofs()
        if wanted(entry)
    ]


def arrays(value, name=""):
    """Every array of a dataclass, by its dotted name."""
    if isinstance(value, np.ndarray):
        return {name: value}
    if not hasattr(value, "__dataclass_fields__"):
        return {}
    parts = [arrays(getattr(value, field), f"{name}.{field}") for field in value.__dataclass_fields__]
    return {name: array for part in parts for name, array in part.items()}


@pytest.mark.parametrize("name", cases(can_be_made))
def test_every_check_passes_in_memory_and_from_the_file_and_arrays_are_the_readers(name):
    c1 = made(name)
    check_input(c1, DEVICE, miner=1000)
    read = parse_c1(encode_c1(c1), origin="c1.json")
    check_input(read, DEVICE, miner=1000)
    assert c1.is_synthetic and read.is_synthetic
    for field in ("registered_proof", "comm_r", "comm_d", "replica_id", "seed", "ticket"):
        assert getattr(c1, field) == getattr(read, field)
    assert (c1.sector_number, c1.sector_bytes) == (read.sector_number, read.sector_bytes)
    for ours, theirs in zip(c1.partitions, read.partitions, strict=True):
        for place, array in arrays(theirs).items():
            same = arrays(ours)[place]
            assert np.array_equal(same, array), place
            assert (same.dtype, same.flags.writeable) == (array.dtype, False), place
            assert same.flags.c_contiguous, place


@pytest.mark.parametrize("name", cases(lambda entry: not can_be_made(entry)))
def test_what_only_sealing_can_answer_is_refused(name):
    with pytest.raises(UsageError, match="only a sealed sector has the answers"):
        made(name)


@pytest.mark.parametrize("name", [f"StackedDrg2KiBV1{feature}" for feature in (SYNTHETIC, NON_INTERACTIVE)])
def test_where_comm_r_decides_the_sector_is_what_sealing_its_data_makes(name):
    c1 = made(name, seed=5)
    ours = json.loads(base64.b64decode(json.loads(encode_c1(c1))["Phase1Out"]))
    d_paths = c1.partitions[0].d_paths
    leaf, sibling = (
        int.from_bytes(bytes(node), "little") for node in (d_paths.leaves[0], d_paths.siblings[0, 0])
    )
    is_second = bin(c1.partitions[0].challenges[0]).count("1") % 2
    first, second = (sibling, leaf) if is_second else (leaf, sibling)
    data = [(first, second)[bin(node).count("1") % 2] for node in range(64)]
    expected = sealed(c1.registered_proof, data, ticket=c1.ticket, seed=c1.seed)
    assert compact(ours) == compact(expected)


def test_a_seed_and_a_name_decide_everything():
    one, again = made("StackedDrg2KiBV1_1", 3), made("StackedDrg2KiBV1_1", 3, CpuDevice(1, lanes=1))
    assert encode_c1(one) == encode_c1(again)
    sectors = [one, made("StackedDrg2KiBV1_1", 4), made("StackedDrg2KiBV1", 3)]
    values = {value for c1 in sectors for value in (c1.comm_d, c1.comm_r, c1.replica_id, c1.seed)}
    assert len(values) == 12


@pytest.mark.parametrize("name", ["StackedDrg2KiBV1", "StackedDrg2KiBV1_1"])
def test_a_challenge_that_is_another_ones_parent_has_one_column(name):
    """In 64 nodes that happens soon, in both directions: as a DRG and as an expander parent."""
    found = set()
    for seed in range(40):
        c1 = made(name, seed)
        (partition,), graph = c1.partitions, graph_of(c1.registered_proof)
        one, other = partition.challenges.tolist()
        for challenge, node in ((0, other), (1, one)):
            parents = graph.parents(int(partition.challenges[challenge]))
            if node in parents:
                column = 1 + parents.index(node)
                found.add("DRG" if column <= 6 else "expander")
                own = partition.columns[1 - challenge, 0]
                assert np.array_equal(partition.columns[challenge, column], own)
                check_input(c1, DEVICE, miner=1000)
    assert found == {"DRG", "expander"}


def test_a_node_has_one_value_in_all_partitions():
    c1 = made("StackedDrg32GiBV1_1", seed=1)
    columns, nodes = {}, {}
    for partition in c1.partitions:
        for place, node in np.ndenumerate(partition.column_nodes):
            column = partition.columns[place].tobytes()
            assert columns.setdefault(int(node), column) == column
            siblings, position = iter(partition.c_paths[place].siblings), int(node)
            for level, arity in enumerate(c1.shape.path_arities):
                first = position - position % arity
                for sibling in range(first, first + arity):
                    if sibling != position:
                        value = next(siblings).tobytes()
                        assert nodes.setdefault((level, sibling), value) == value
                position //= arity
    assert len(columns) > 2600


def test_progress_reaches_its_total_where_it_takes_long():
    said = []
    synthesize(
        registered_proof(f"StackedDrg2KiBV1{SYNTHETIC}"),
        seed=0,
        device=DEVICE,
        progress=lambda done, total: said.append((done, total)),
    )
    assert said and said[-1] == (64, 64)


@pytest.mark.parametrize("file", ["2k-zero.json", "2k-random.json"])
def test_a_sealed_sector_is_not_taken_for_a_synthetic_one(file):
    assert not parse_c1((POREP / file).read_bytes(), origin=file).is_synthetic


def test_a_size_stands_for_version_1_1_and_a_name_must_agree_with_it():
    assert registered_proof_of_size(512 * MIB).name == "StackedDrg512MiBV1_1"
    assert registered_proof_of_size(2 * KIB, "StackedDrg2KiBV1").name == "StackedDrg2KiBV1"
    with pytest.raises(UsageError, match="StackedDrg2KiBV1 is not for sectors of 32GiB"):
        registered_proof_of_size(32 * GIB, "StackedDrg2KiBV1")
    with pytest.raises(UsageError, match="StackedDrg4KiBV1_1"):
        registered_proof_of_size(4 * KIB)
    with pytest.raises(UsageError, match="there is no .* of 3000 bytes"):
        registered_proof_of_size(3000)
