"""Reading c1 files: upstream's own ones, the forms they come in, and what a damaged one is answered with."""

import gzip

import numpy as np
import pytest

from cuzk.errors import InputError
from cuzk.sector.porep.c1_reader import parse_c1, read_c1
from tests.sector.porep.documents import CASES, MADE_UP, POREP, compact, inner, outer, wrapped

ZERO = "2k-zero.json"


def same(one, other):
    """Two parsed documents are equal in everything but their origin."""
    names = ("registered_proof", "comm_r", "comm_d", "replica_id", "seed", "ticket")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    return all(arrays_equal(a, b) for a, b in zip(one.partitions, other.partitions, strict=True))


def arrays_equal(one, other):
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if hasattr(one, "__dataclass_fields__"):
        return all(arrays_equal(getattr(one, f), getattr(other, f)) for f in one.__dataclass_fields__)
    return one == other


def sorted_keys(value):
    """As Go's encoder writes maps, and without the `_h` that only serde writes."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value) if key != "_h"}
    return [sorted_keys(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.parametrize("file", CASES)
def test_upstreams_files_are_read_as_they_were_made(file):
    case = CASES[file]
    c1 = read_c1(POREP / file, registered=MADE_UP.get(file))
    assert c1.registered_proof.name == case["registered_proof"]
    assert (c1.sector_number, c1.sector_bytes) == (case["sector_number"], case["sector_size"])
    for name in ("comm_r", "comm_d", "replica_id", "seed", "ticket"):
        assert getattr(c1, name).hex() == case[name]
    for partition, expected in zip(c1.partitions, case["partitions"], strict=True):
        challenges = [int.from_bytes(bytes.fromhex(v), "little") for v in expected["public_inputs"][3::18]]
        assert partition.challenges.tolist() == challenges


@pytest.mark.parametrize("file", ["2k-random.json", "shape-16k.json"])
def test_arrays_hold_the_documents_hashes_in_order(file):
    c1 = read_c1(POREP / file, registered=MADE_UP.get(file))
    (proofs,) = inner(file)["vanilla_proofs"].values()
    (partition,), challenge = c1.partitions, 1
    proof = proofs[0][challenge]
    column = proof["replica_column_proofs"]["exp_parents"][7]
    (body,) = column["inclusion_proof"]["data"].values()
    elements = [e for part in ("path", "base_proof", "sub_proof") if part in body for e in body[part]["path"]]
    path = partition.c_paths[challenge, 14]
    assert path.siblings.tolist() == [sibling for element in elements for sibling in element["hashes"]]
    assert path.indices.tolist() == [element["index"] for element in elements]
    assert path.leaves.tolist() == body["leaf"] and path.roots.tolist() == body["root"]
    assert partition.columns[challenge, 14].tolist() == column["column"]["rows"]
    assert partition.column_nodes[challenge, 14] == column["column"]["index"]
    assert partition.labelings.parents[challenge, 1].tolist() == proof["labeling_proofs"][1]["parents"]
    assert partition.d_paths.leaves[challenge].tolist() == proof["comm_d_proofs"]["data"]["Single"]["leaf"]
    assert not partition.columns.flags.writeable and not path.indices.flags.writeable


@pytest.mark.parametrize("form", ["inner", "inner gzipped", "outer gzipped", "keys sorted", "unknown keys"])
def test_every_form_of_the_file_reads_the_same(form):
    document = inner(ZERO)
    data = {
        "inner": lambda: compact(document),
        "inner gzipped": lambda: gzip.compress(compact(document)),
        "outer gzipped": lambda: gzip.compress((POREP / ZERO).read_bytes()),
        "keys sorted": lambda: wrapped(sorted_keys(document)),
        "unknown keys": lambda: wrapped(document | {"later": [{"x": None}]}, Later={"y": 1.5}),
    }[form]()
    c1 = parse_c1(data, origin="bytes")
    assert same(c1, read_c1(POREP / ZERO))
    assert (c1.sector_number is None) == form.startswith("inner")


def refusal(data):
    with pytest.raises(InputError) as caught:
        parse_c1(data, origin="c1.json")
    assert caught.value.where.startswith("c1.json") and caught.value.next
    assert len(str(caught.value)) < 500
    return str(caught.value)


WHOLE = (POREP / ZERO).read_bytes()


NO_C1 = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "truncated": (WHOLE[:-1000], "truncated"),
    "not_json": (b"\x00\x01\x02", "not whole JSON"),
    "not_an_object": (b"[1, 2]", "Expected `object`"),
    "followed_by_more": (WHOLE + b"{}", "not whole JSON"),
    "no_known_key": (b"{}", "registered_proof"),
    "not_base64": (compact(outer(ZERO) | {"Phase1Out": "!!!"}), "Phase1Out"),
    "phase1out_a_number": (compact(outer(ZERO) | {"Phase1Out": 5}), "Phase1Out"),
    "phase1out_empty": (compact(outer(ZERO) | {"Phase1Out": ""}), "Phase1Out"),
    "sector_number_negative": (compact(outer(ZERO) | {"SectorNum": -1}), "SectorNum"),
    "sector_size_a_string": (compact(outer(ZERO) | {"SectorSize": "2048"}), "SectorSize"),
    "gzip_truncated": (gzip.compress(WHOLE)[:-20], "truncated"),
    "gzip_damaged": (b"\x1f\x8b" + WHOLE[:100], "damaged"),
    "nested_too_deep": (b'{"x":' + b"[" * 100_000, "not whole JSON"),
    "keys_not_utf8": (b'{"\xff\xfe": 1}', "c1.json"),
}


@pytest.mark.parametrize("name", NO_C1)
def test_a_file_that_is_no_c1_is_refused(name):
    data, reason = NO_C1[name]
    assert reason in refusal(data)


C_PATH = "0.1.replica_column_proofs.drg_parents.3.inclusion_proof.data.Single.path.path.1"
DAMAGES = {
    "missing_commitment": ("comm_r", None, "comm_r"),
    "commitment_a_string": ("seed", "00" * 32, "seed"),
    "unknown_registered_proof": ("registered_proof", "StackedDrg3KiBV1", "registered_proof"),
    "registered_proof_of_another_size": ("registered_proof", "StackedDrg8MiBV1_1", "StackedDrg8MiBV1"),
    "no_proofs": ("vanilla_proofs", {}, "StackedDrg2KiBV1"),
    "proofs_a_list": ("vanilla_proofs", [], "vanilla_proofs"),
    "no_partition": ("", [], "0 partitions where 1"),
    "empty_partition": ("0", [], "partition 0: 0 challenges where 2"),
    "challenge_null": ("0.1", None, "partition 0: 1 challenges where 2"),
    "challenge_a_number": ("0.1", 7, "partition 0, challenge 1: Expected `object`"),
    "hash_too_short": (f"{C_PATH}.hashes.2", [0] * 31, "challenge 1, replica_column_proofs.drg_parents[3]"),
    "hash_too_long": ("0.0.comm_d_proofs.data.Single.leaf", [0] * 33, "challenge 0, comm_d_proofs.data"),
    "byte_256": ("0.0.comm_d_proofs.data.Single.leaf.31", 256, "comm_d_proofs.data.Single.leaf[31]"),
    "byte_negative": ("0.0.comm_d_proofs.data.Single.leaf.0", -1, "comm_d_proofs.data.Single.leaf[0]"),
    "byte_a_float": ("0.0.comm_d_proofs.data.Single.leaf.0", 1.5, "comm_d_proofs.data.Single.leaf[0]"),
    "byte_true": ("0.0.comm_d_proofs.data.Single.leaf.0", True, "comm_d_proofs.data.Single.leaf[0]"),
    "index_of_no_child": (f"{C_PATH}.index", 8, "C path of DRG parent 3, path, level 1: index 8 among 8"),
    "index_negative": (f"{C_PATH}.index", -1, "drg_parents[3].inclusion_proof"),
    "index_huge": (f"{C_PATH}.index", 2**64, "drg_parents[3].inclusion_proof"),
    "sibling_missing": (f"{C_PATH}.hashes.0", None, "C path of DRG parent 3, path, level 1: 6 siblings"),
    "level_missing": (C_PATH, None, "C path of DRG parent 3, path: 1 levels where 2"),
    "path_of_no_form": ("0.0.comm_r_last_proof.data", {}, "R path: the path says nothing"),
    "column_row_missing": (
        "0.0.replica_column_proofs.exp_parents.7.column.rows.1",
        None,
        "column of expander parent 7: 1 rows where 2",
    ),
    "parent_missing": ("0.0.replica_column_proofs.drg_parents.5", None, "challenge 0: 5 DRG parents where 6"),
    "label_missing": ("0.1.labeling_proofs.0", None, "challenge 1: 1 labels where 2"),
    "label_parent_missing": (
        "0.1.labeling_proofs.1.parents.36",
        None,
        "label of layer 2: 36 parents where 37",
    ),
    "node_too_large": ("0.1.labeling_proofs.1.node", 2**63, "challenge 1, labeling_proofs[1].node"),
}


def damaged(path, value):
    """A c1 whose value at `path` is replaced, or removed if None; a digit leads into the proofs."""
    document = inner(ZERO)
    holder, keys = document, path.split(".")
    if path == "" or keys[0].isdigit():
        holder, keys = document["vanilla_proofs"], ["StackedDrg2KiBV1", *filter(None, keys)]
    *above, last = (int(key) if key.isdigit() else key for key in keys)
    for key in above:
        holder = holder[key]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    return wrapped(document)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_document_of_the_wrong_form_is_refused_with_its_place(name):
    path, value, place = DAMAGES[name]
    assert place in refusal(damaged(path, value))


def test_extra_partitions_and_challenges_are_refused():
    document = inner(ZERO)
    (proofs,) = document["vanilla_proofs"].values()
    proofs.append(proofs[0])
    assert "vanilla_proofs: 2 partitions where 1" in refusal(wrapped(document))
    del proofs[1]
    proofs[0].append(proofs[0][0])
    assert "partition 0: 3 challenges where 2" in refusal(wrapped(document))


def test_a_sub_form_where_the_size_has_a_single_tree_is_refused():
    document = inner(ZERO)
    data = document["vanilla_proofs"]["StackedDrg2KiBV1"][0][0]["comm_r_last_proof"]["data"]
    data["Sub"] = data["Single"] | {"base_proof": {"path": []}, "sub_proof": {"path": []}}
    assert "R path: the path says Single and Sub where Single" in refusal(wrapped(document))


@pytest.mark.parametrize("kind", ["missing", "a folder"])
def test_a_file_that_cannot_be_opened_is_refused(tmp_path, kind):
    path = tmp_path if kind == "a folder" else tmp_path / "c1.json"
    with pytest.raises(InputError, match="cannot be read") as caught:
        read_c1(path)
    assert caught.value.where == str(path)
