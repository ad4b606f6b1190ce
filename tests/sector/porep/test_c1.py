"""What passes the checks, what does not, and whether the place of the damage is named."""

import base64
import copy
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.errors import InputError
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.proofs.sources import check_input
from cuzk.sector.api_version import ApiVersion
from cuzk.sector.porep.c1_reader import parse_c1, read_c1
from cuzk.sector.porep.labels import label_of, labels_of
from cuzk.sector.porep.registered_proof import Feature, RegisteredProof, registered_proof
from tests.sector.porep import sealing
from tests.sector.porep.documents import CASES, MADE_UP, POREP, compact, inner, wrapped
from tests.sector.porep.sealing import sealed

DEVICE = CpuDevice(1)
ZERO = inner("2k-zero.json")


@pytest.mark.parametrize("file", CASES)
def test_upstreams_sectors_pass(file):
    check_input(read_c1(POREP / file, registered=MADE_UP.get(file)), DEVICE, miner=CASES[file]["miner"])


def test_upstreams_sectors_pass_on_one_lane_too():
    check_input(read_c1(POREP / "shape-16k.json", registered=MADE_UP["shape-16k.json"]), CpuDevice(2, 1))


@pytest.mark.parametrize(
    "name",
    [
        "StackedDrg2KiBV1",
        "StackedDrg2KiBV1_1",
        "StackedDrg2KiBV1_1_Feat_SyntheticPoRep",
        "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep",
    ],
)
def test_a_sector_sealed_here_passes_for_every_version_and_feature(name):
    data = [random.Random(name).randrange(2**254) for _ in range(64)]
    check_input(parse_c1(wrapped(sealed(registered_proof(name), data)), origin="sealed"), DEVICE, miner=1000)


def test_a_sector_whose_trees_have_a_top_level_passes():
    registered = RegisteredProof(
        number=99,
        name="StackedDrg32KiBV1_1",
        sector_bytes=32 << 10,
        api_version=ApiVersion.V1_1,
        feature=Feature.INTERACTIVE,
    )
    document = sealed(registered, range(1024))
    check_input(parse_c1(compact(document), origin="sealed", registered=registered), DEVICE)


def refusal(document, *, miner=None, **changes):
    with pytest.raises(InputError) as caught:
        check_input(parse_c1(wrapped(document, **changes), origin="c1.json"), DEVICE, miner=miner)
    assert caught.value.where.startswith("c1.json") and caught.value.next
    return str(caught.value)


def at(document, path):
    """Holder and key of the value at a dotted path; a leading digit leads into the proofs."""
    keys = [int(key) if key.isdigit() else key for key in path.split(".")]
    holder = document
    if isinstance(keys[0], int):
        holder = document["vanilla_proofs"]["StackedDrg2KiBV1"]
    for key in keys[:-1]:
        holder = holder[key]
    return holder, keys[-1]


PROOFS = "0.1.replica_column_proofs"
C_PATH = f"{PROOFS}.exp_parents.4.inclusion_proof.data.Single"
LABEL = "0.1.labeling_proofs"
FLIPS = {
    "comm_d": ("comm_d.3", "challenge 0, D path: the path's root is not the comm_d"),
    "comm_r": ("comm_r.3", "partition 0: comm_r is not the hash of comm_c and comm_r_last"),
    "replica_id": ("replica_id.0", "challenge 0: node 8 is opened, but replica_id and seed ask for node"),
    "seed": ("seed.0", "challenge 0: node 8 is opened, but replica_id and seed ask for node"),
    "d_leaf": ("0.1.comm_d_proofs.data.Single.leaf.0", "challenge 1, D path: the path does not lead"),
    "d_root": ("0.1.comm_d_proofs.data.Single.root.0", "challenge 1, D path: the path does not lead"),
    "d_sibling": ("0.0.comm_d_proofs.data.Single.path.path.5.hashes.0.9", "challenge 0, D path"),
    "r_leaf": ("0.1.comm_r_last_proof.data.Single.leaf.0", "challenge 1, R path: the path does not lead"),
    "r_root": ("0.1.comm_r_last_proof.data.Single.root.0", "challenge 1, R path: the path does not lead"),
    "r_index": ("0.1.comm_r_last_proof.data.Single.path.path.1.index", "challenge 1, R path, level 1: index"),
    "c_leaf": (f"{C_PATH}.leaf.0", "challenge 1, C path of expander parent 4: the path does not lead"),
    "c_root": (f"{C_PATH}.root.0", "challenge 1, C path of expander parent 4: the path does not lead"),
    "c_sibling": (f"{C_PATH}.path.path.1.hashes.6.30", "challenge 1, C path of expander parent 4"),
    "c_index": (f"{C_PATH}.path.path.0.index", "C path of expander parent 4, level 0: index"),
    "own_row": (f"{PROOFS}.c_x.column.rows.1.0", "challenge 1, column of the challenged node: the column"),
    "drg_row": (f"{PROOFS}.drg_parents.0.column.rows.0.0", "challenge 1, column of DRG parent 0: the column"),
    "column_node": (f"{PROOFS}.drg_parents.2.column.index", "challenge 1, column of DRG parent 2: node"),
    "label_node": (f"{LABEL}.1.node", "challenge 1, label of layer 2: the label says layer 2 of node 55"),
    "label_layer": (f"{LABEL}.0.layer_index", "challenge 1, label of layer 1: the label says layer 0"),
    "label_parent": (
        f"{LABEL}.1.parents.20.0",
        "label of layer 2, parent 20: the parent is not the label of",
    ),
    "encoding_parent": ("0.0.encoding_proof.parents.36.5", "challenge 0, encoding, parent 36"),
    "encoding_node": (
        "0.0.encoding_proof.node",
        "challenge 0, encoding: the encoding says layer 2 of node 9",
    ),
}


@pytest.mark.parametrize("name", FLIPS)
def test_a_flipped_bit_is_found_and_placed(name):
    path, place = FLIPS[name]
    document = copy.deepcopy(ZERO)
    holder, key = at(document, path)
    holder[key] ^= 1
    assert place in refusal(document)


NOT_BELOW_R = {
    "comm_r": "c1.json, comm_r: comm_r is not below r",
    "comm_d": "c1.json, comm_d: comm_d is not below r",
    "replica_id": "c1.json, replica_id: replica_id is not below r",
    "0.0.comm_d_proofs.data.Single.leaf": "challenge 0, D path, leaf: the hash is not below r",
    "0.1.comm_r_last_proof.data.Single.root": "challenge 1, R path, root: the hash is not below r",
    f"{C_PATH}.path.path.1.hashes.6": "challenge 1, C path of expander parent 4, level 1: the hash is not",
    f"{PROOFS}.drg_parents.5.column.rows.1": "challenge 1, column of DRG parent 5, layer 2: the hash is not",
    f"{LABEL}.0.parents.36": "challenge 1, label of layer 1, parent 36: the hash is not below r",
    "0.0.encoding_proof.parents.7": "challenge 0, encoding, parent 7: the hash is not below r",
}
R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


@pytest.mark.parametrize("path", NOT_BELOW_R)
@pytest.mark.parametrize("value", [R, R + 1, R + 2**64, R + 2**192, 2**256 - 1])
def test_a_hash_that_is_not_below_r_is_found_and_placed(path, value):
    document = copy.deepcopy(ZERO)
    holder, key = at(document, path)
    holder[key] = list(value.to_bytes(32, "little"))
    assert NOT_BELOW_R[path] in refusal(document)


def test_the_largest_hash_below_r_is_refused_for_what_it_says_and_not_for_its_size():
    document = copy.deepcopy(ZERO)
    holder, key = at(document, f"{PROOFS}.drg_parents.5.column.rows.1")
    holder[key] = list((R - 1).to_bytes(32, "little"))
    assert "DRG parent 5: the column does not hash" in refusal(document)


@pytest.mark.parametrize("name", ["comm_d", "comm_r", "seed"])
def test_an_all_zero_commitment_or_seed_is_refused(name):
    assert f"{name} is all zeros" in refusal(ZERO | {name: [0] * 32})


@pytest.mark.parametrize("name", ["replica_id", "ticket", "comm_d"])
def test_with_the_miner_known_a_flipped_bit_in_what_replica_id_hashes_is_found(name):
    flipped = [ZERO[name][0] ^ 1, *ZERO[name][1:]]
    message = refusal(ZERO | {name: flipped}, miner=1000)
    assert "replica_id is not that of miner 1000, sector 1, this ticket and comm_d" in message


def test_the_sector_of_another_miner_or_number_is_refused():
    assert "miner 1001, sector 1" in refusal(ZERO, miner=1001)
    assert "miner 1000, sector 2" in refusal(ZERO, miner=1000, SectorNum=2)


def test_a_miner_cannot_be_checked_without_a_sector_number():
    with pytest.raises(InputError, match="no sector number"):
        check_input(parse_c1(compact(ZERO), origin="c1.json"), DEVICE, miner=1000)
    check_input(parse_c1(compact(ZERO), origin="c1.json"), DEVICE)


def test_a_wrapper_that_contradicts_the_registered_proof_is_refused():
    assert "SectorSize is 8388608" in refusal(ZERO, SectorSize=8 << 20)


@pytest.mark.parametrize("name", ["StackedDrg2KiBV1", "StackedDrg2KiBV1_1_Feat_SyntheticPoRep"])
def test_a_sector_of_another_version_or_feature_is_refused(name):
    with pytest.raises(InputError, match="ask for node|but the graph has node"):
        check_input(parse_c1(wrapped(ZERO | {"registered_proof": name}), origin="c1.json"), DEVICE)


def test_challenges_of_the_other_order_are_refused():
    document = copy.deepcopy(ZERO)
    document["vanilla_proofs"]["StackedDrg2KiBV1"][0].reverse()
    assert "challenge 0: node 54 is opened, but replica_id and seed ask for node 8" in refusal(document)


def test_a_replica_that_does_not_encode_the_data_is_refused():
    """Everything else holds: both trees and commitments are whole, but of two different sectors' data."""
    registered = registered_proof("StackedDrg2KiBV1_1")
    data, other = [5] * 64, [6] * 64
    document = sealed(registered, data, replica_of=other)
    assert "challenge 0, encoding: label of the last layer + data is not the replica" in refusal(document)


LABEL_IS_WRONG = (
    "challenge 1, column of the challenged node, layer 1: "
    "the label does not recompute from replica_id and its parents"
)


@pytest.mark.parametrize(
    "parent_in_layer, told",
    [
        (None, LABEL_IS_WRONG),
        (
            1,
            "challenge 0, label of layer 1, parent 3: the parent is not the label of DRG parent 3 in layer 1",
        ),
        (2, LABEL_IS_WRONG),
    ],
)
def test_of_wrong_labels_and_parents_those_of_the_lowest_layer_are_told(parent_in_layer, told, monkeypatch):
    """All else holds: what depends on the wrong label was made from it."""
    registered, data = registered_proof("StackedDrg2KiBV1_1"), [5] * 64
    good = parse_c1(compact(sealed(registered, data)), origin="sealed")
    wrong, right = (1, int(good.partitions[0].challenges[1])), sealing.label
    monkeypatch.setattr(sealing, "label", lambda replica, *at: right(replica, *at) + (at[:2] == wrong))
    document = sealed(registered, data)
    if parent_in_layer is not None:
        parents, _ = at(document, f"0.0.labeling_proofs.{parent_in_layer - 1}.parents.3")
        parents[3] = parents[4]
    assert told in refusal(document)


def test_labels_of_all_layers_are_those_made_one_by_one():
    """Of the first and the last node, whose numbers have all bits."""
    draw = random.Random(3)
    replica = draw.randbytes(32)
    parents = np.frombuffer(draw.randbytes(2 * 11 * 37 * 32), np.uint8).reshape(2, 11, 37, 32)
    nodes = np.array([1, 2**63 - 1])
    expected = [
        [label_of(replica, layer, int(node), parents[i, layer].tobytes()) for layer in range(11)]
        for i, node in enumerate(nodes)
    ]
    assert [list(map(bytes, rows)) for rows in labels_of(replica, nodes, parents)] == expected


def leaves(value, path=()):
    """Places of all numbers in a document."""
    if isinstance(value, int):
        return [path]
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [place for key, entry in entries for place in leaves(entry, (*path, key))]


PLACES = leaves(ZERO)


@settings(max_examples=150)
@given(place=st.sampled_from(PLACES), bit=st.integers(0, 7))
def test_no_flipped_bit_anywhere_passes(place, bit):
    document = copy.deepcopy(ZERO)
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] ^= 1 << bit
    message = refusal(document, miner=1000)
    if place[0] == "vanilla_proofs":
        assert f"challenge {place[3]}" in message or f"[{place[3]}]" in message


VALUES = st.sampled_from([None, True, -1, 0, 256, 2**63, 2**64, 1.5, "", "x", [], {}, [[]], {"Single": None}])


def containers(value, path=()):
    """Places of everything in a document down to the hashes."""
    if isinstance(value, list) and value and isinstance(value[0], int):
        return [path]
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path] * bool(path) + [p for key, entry in entries for p in containers(entry, (*path, key))]


CONTAINERS = containers(ZERO)


@settings(max_examples=150)
@given(data=st.data())
def test_a_mutated_document_is_refused_or_passes_but_never_crashes(data):
    document = copy.deepcopy(ZERO)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(CONTAINERS))
        holder = document
        try:
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]]
        except (LookupError, TypeError):  # an earlier change removed the place
            continue
        change = data.draw(st.sampled_from(["replace", "delete", "repeat"]))
        if change == "replace":
            holder[place[-1]] = data.draw(VALUES)
        elif change == "delete":
            del holder[place[-1]]
        elif isinstance(holder, list):
            holder.insert(place[-1], copy.deepcopy(holder[place[-1]]))
    try:
        check_input(parse_c1(wrapped(document), origin="c1.json"), DEVICE, miner=1000)
    except InputError as error:
        assert len(str(error)) < 500


FILE = (POREP / "2k-zero.json").read_bytes()
INNER = base64.b64decode(json.loads(FILE)["Phase1Out"])


@settings(max_examples=150)
@given(
    text=st.sampled_from([FILE, INNER]),
    cut=st.floats(0, 1),
    length=st.integers(0, 5),
    patch=st.binary(max_size=5),
)
def test_a_file_with_changed_bytes_is_refused_or_passes_but_never_crashes(text, cut, length, patch):
    start = int(cut * len(text))
    damaged = text[:start] + patch + text[start + length :]
    try:
        check_input(parse_c1(damaged, origin="c1.json"), DEVICE)
    except InputError as error:
        assert len(str(error)) < 500
