"""Sector updates: upstream's are read and pass; whatever is changed is refused, with its place."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.errors import InputError
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.modulus import FR
from cuzk.sector.shape import GIB, KIB
from cuzk.sector.update import challenges, encoders, piece_form, read_update
from cuzk.sector.update_shape import update_shape_of
from tests.sector.other_vectors import EXPECT, UPDATES, pieces_of

DEVICE = CpuDevice(1)
SNAP_2K = pieces_of("snap-2k")


def check(pieces):
    update = read_update(pieces)
    update.check_statement()
    for partition in range(update.partition_count):
        update.check_partition(partition, DEVICE)


def refusal(pieces):
    with pytest.raises(InputError) as caught:
        check(pieces)
    assert caught.value.next
    return caught.value


@pytest.mark.parametrize("name", UPDATES)
def test_upstreams_updates_pass_and_give_upstreams_public_inputs(name: str) -> None:
    pieces, expected = pieces_of(name), EXPECT["vectors"][name]
    check(pieces)
    update = read_update(pieces)
    assert update.shape.parameter_stem == expected["param_file"]
    assert update.partition_count == len(expected["parts"])
    for number, part in enumerate(expected["parts"]):
        inputs = [row.tobytes().hex() for row in update.public_inputs(number)]
        assert inputs == part["public_inputs"]


@pytest.mark.parametrize(
    ("sector_bytes", "partition", "first", "last"),
    [
        (2 * KIB, 0, [8, 17, 58, 53, 18, 34, 26, 8, 26], 6),
        (16 * KIB, 1, [418, 278, 431, 372, 490, 486, 275, 403, 503], 264),
        (32 * GIB, 1, [97708639, 130974485, 129766099, 112980354, 118298046, 102858131], 79301781),
        (64 * GIB, 15, [2138518776], 2101464332),
    ],
)
def test_challenges_of_a_partition_are_upstreams(
    sector_bytes: int, partition: int, first: list[int], last: int
) -> None:
    drawn = challenges(update_shape_of(sector_bytes), (7).to_bytes(32, "little"), partition, DEVICE).tolist()
    assert len(drawn) == update_shape_of(sector_bytes).challenges
    assert (drawn[: len(first)], drawn[-1]) == (first, last)


def test_rho_is_upstreams() -> None:
    """phi of 1 and 2, and the hash of it and 3, the high part of a node."""
    one, two = ((value).to_bytes(32, "little") for value in (1, 2))
    shape = update_shape_of(32 * GIB)
    nodes = np.array([3 << 20, (3 << 20) + 5, 4 << 20])
    rhos = encoders(shape, one, two, nodes, DEVICE)
    assert rhos[0].to_bytes(32, "little").hex() == (
        "0f52e60097ac78babd592d8cd02d33645de35fb5d9bf20a1bd5ae897d31f0a03"
    )
    assert rhos[0] == rhos[1] != rhos[2]


def changed(pieces, place, value, *, partition=0):
    """The pieces with one value of a record replaced: fields and numbers of items, and the value's bytes."""
    record = np.frombuffer(
        bytearray(pieces.pieces[partition]), piece_form(update_shape_of(pieces.sector_bytes)).dtype
    )
    holder = record[0]
    *above, last = (int(key) if key.isdigit() else key for key in place.split("."))
    for key in above:
        holder = holder[key]
    holder[last] = value
    others = list(pieces.pieces)
    others[partition] = record.tobytes()
    return replace(pieces, pieces=tuple(others))


ONE = np.frombuffer((1).to_bytes(32, "little"), np.uint8)
TOO_LARGE = np.frombuffer(FR.p.to_bytes(32, "little"), np.uint8)
PROOF = "challenge_proofs.items.3"
WRONG = {
    "comm_c": (ONE, "partition 0", "comm_r_old is not the hash of comm_c"),
    "apex_leafs.items.5": (
        ONE,
        "partition 0, apex leaf 5",
        "the node that the D path of challenge 9 leads to",
    ),
    "apex_leafs.count": (9, "partition 0", "9 apex leaves where 8 are expected"),
    "challenge_proofs.count": (9, "partition 0", "9 challenges where 10 are expected"),
    f"{PROOF}.proof_r_old.root": (ONE, "partition 0, challenge 3, old R path", "does not lead"),
    f"{PROOF}.proof_r_old.leaf": (ONE, "partition 0, challenge 3, old R path", "does not lead"),
    f"{PROOF}.proof_r_new.path.items.1.hashes.items.6": (
        ONE,
        "partition 0, challenge 3, new R path",
        "does not lead",
    ),
    f"{PROOF}.proof_r_new.path.items.1.hashes.items.5": (
        TOO_LARGE,
        "partition 0, challenge 3, new R path, level 1",
        "not below r",
    ),
    f"{PROOF}.proof_r_new.path.items.1.index": (
        8,
        "partition 0, challenge 3, new R path, level 1",
        "index 8 does not lead to node",
    ),
    f"{PROOF}.proof_d_new.path.items.4.hashes.items.0": (
        ONE,
        "partition 0, challenge 3, D path",
        "does not lead",
    ),
    f"{PROOF}.proof_d_new.path.items.4.index": (
        1 << 63,
        "partition 0, challenge 3, D path, level 4",
        "does not lead to node",
    ),
    f"{PROOF}.proof_d_new.tag": (1, "partition 0, challenge 3, D path", "Sub where Single is expected"),
    f"{PROOF}.proof_d_new.path.count": (7, "partition 0, challenge 3, D path", "7 levels where 6"),
    f"{PROOF}.proof_r_old.path.items.0.hashes.count": (
        6,
        "partition 0, challenge 3, old R path, level 0",
        "6 siblings where 7",
    ),
}


@pytest.mark.parametrize("place", WRONG)
def test_a_wrong_value_is_refused_with_its_place(place: str) -> None:
    value, where, what = WRONG[place]
    error = refusal(changed(SNAP_2K, place, value))
    assert re.fullmatch(f"snap-2k, ({where})", error.where), error.where
    assert what in error.what


def test_a_value_of_the_second_partition_is_named_there() -> None:
    pieces = changed(pieces_of("snap-16k"), f"{PROOF}.proof_r_old.leaf", ONE, partition=1)
    assert refusal(pieces).where == "snap-16k, partition 1, challenge 3, old R path"


def test_an_apex_leaf_that_no_challenge_is_below_is_refused() -> None:
    pieces = pieces_of("snap-16k")
    challenged = challenges(update_shape_of(16 * KIB), pieces.comm_r_new, 1, DEVICE)
    below = min(set(range(128)) - set((challenged // 2 % 128).tolist()))
    error = refusal(changed(pieces, f"apex_leafs.items.{below}", ONE, partition=1))
    assert (error.where, error.what) == (
        "snap-16k, partition 1, apex leaves",
        "these do not lead to comm_d_new",
    )


def test_paths_of_a_whole_replica_that_do_not_fit_the_data_are_an_encoding_that_is_wrong() -> None:
    """The old replica in the place of the new one: every path leads somewhere, and comm_r_new is its own."""
    pieces = SNAP_2K
    for challenge in range(10):
        place = f"challenge_proofs.items.{challenge}"
        record = np.frombuffer(pieces.pieces[0], piece_form(update_shape_of(2 * KIB)).dtype)
        old = record[0]["challenge_proofs"]["items"][challenge]["proof_r_old"]
        pieces = changed(pieces, f"{place}.proof_r_new", old)
    error = refusal(replace(pieces, comm_r_new=pieces.comm_r_old))
    assert error.what == "the opened nodes are not those that comm_r_new asks for"
    error = refusal(pieces)
    assert error.what.startswith("comm_r_new is not the hash of comm_c and the root")


def test_the_place_of_an_encoding_that_is_wrong_is_its_challenge(monkeypatch: pytest.MonkeyPatch) -> None:
    """No replica can be found that fits all else: so another rho is expected here."""

    def one_is_other(*given: object) -> list[int]:
        rhos = encoders(*given)
        rhos[4] += 1
        return rhos

    monkeypatch.setattr("cuzk.sector.update.encoders", one_is_other)
    error = refusal(SNAP_2K)
    assert error.where == "snap-2k, partition 0, challenge 4, encoding"
    assert error.what.startswith("old replica + data * rho is not the new replica")


@pytest.mark.parametrize("name", ["comm_r_old", "comm_r_new", "comm_d_new"])
@pytest.mark.parametrize(
    ("value", "what"),
    [
        (bytes(32), "is all zeros"),
        (FR.p.to_bytes(32, "little"), "is not below r"),
        (b"\1" * 31, "has 31 bytes where 32 are expected"),
    ],
)
def test_commitments_that_cannot_be_are_refused_by_name(name: str, value: bytes, what: str) -> None:
    error = refusal(replace(SNAP_2K, **{name: value}))
    assert (error.where, error.what) == (f"snap-2k, {name}", f"{name} {what}")


def test_pieces_in_another_order_or_number_are_refused() -> None:
    pieces = pieces_of("snap-16k")
    error = refusal(replace(pieces, pieces=pieces.pieces[::-1]))
    assert error.where == "snap-16k, partition 0"
    assert error.what == "the opened nodes are not those that comm_r_new asks for"
    error = refusal(replace(pieces, pieces=pieces.pieces[:1]))
    assert error.what == "1 partition proofs where 16KiB needs 2"
    error = refusal(replace(pieces, pieces=(pieces.pieces[0], pieces.pieces[1][:-1])))
    assert error.where == "snap-16k, partition 1"
    assert error.what == "the piece has 25303 bytes where 25304 are expected"


@settings(max_examples=60)
@given(st.integers(0, len(SNAP_2K.pieces[0]) - 1), st.integers(0, 7))
def test_every_flipped_bit_of_a_piece_is_refused(byte: int, bit: int) -> None:
    piece = bytearray(SNAP_2K.pieces[0])
    piece[byte] ^= 1 << bit
    assert refusal(replace(SNAP_2K, pieces=(bytes(piece),))).where.startswith("snap-2k, partition 0")


@settings(max_examples=20)
@given(st.sampled_from(["comm_r_old", "comm_r_new", "comm_d_new"]), st.integers(0, 31), st.integers(0, 7))
def test_every_flipped_bit_of_a_commitment_is_refused(name: str, byte: int, bit: int) -> None:
    commitment = bytearray(getattr(SNAP_2K, name))
    commitment[byte] ^= 1 << bit
    refusal(replace(SNAP_2K, **{name: bytes(commitment)}))


def test_facts_name_commitments_and_challenged_nodes() -> None:
    facts = read_update(SNAP_2K).facts()
    assert facts["sector"]["sector_number"] == 200
    assert facts["commitments"]["comm_d_new"] == SNAP_2K.comm_d_new.hex()
    drawn = challenges(update_shape_of(2 * KIB), SNAP_2K.comm_r_new, 0, DEVICE).tolist()
    assert facts["challenged_nodes"]["partition_0"] == list(drawn)
