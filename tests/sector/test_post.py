"""Proofs of spacetime as they are given: challenges, public inputs, and what is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.errors import InputError, UsageError
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.modulus import FR
from cuzk.sector.api_version import ApiVersion
from cuzk.sector.pieces import Pieces
from cuzk.sector.post import PostInput, challenges, piece_form, read_post, synthesize_post
from cuzk.sector.post_shape import WINDOW, WINNING, post_shape, post_shapes
from cuzk.sector.shape import GIB, KIB, MIB, all_shapes
from tests.sector.other_vectors import EXPECT, POSTS, document, expected, pieces_of

DEVICE = CpuDevice(threads=2)
PATH_BYTES = 556  # of an R path at 2 KiB
FIRST_PATH = 8 + 32 + 8 + 8  # behind sector, comm_r and two counts


def check(given: Pieces) -> None:
    read = read_post(given)
    read.check_statement()
    read.check_partition(0, DEVICE)


def refusal(given: Pieces) -> str:
    with pytest.raises(InputError) as caught:
        check(given)
    assert caught.value.where and caught.value.where.startswith(given.origin) and caught.value.next
    return str(caught.value)


def changed(given: Pieces, number: int, change: Callable[[bytearray], None]) -> Pieces:
    """With piece `number` changed."""
    piece = bytearray(given.pieces[number])
    change(piece)
    return replace(given, pieces=(*given.pieces[:number], bytes(piece), *given.pieces[number + 1 :]))


def flipped(given: Pieces, number: int, byte: int, bit: int = 0) -> Pieces:
    def flip(piece: bytearray) -> None:
        piece[byte] ^= 1 << bit

    return changed(given, number, flip)


# ---- what passes ----


@pytest.mark.parametrize("name", POSTS)
def test_upstreams_sectors_pass_and_have_a_verifiers_inputs(name: str) -> None:
    read = read_post(pieces_of(name))
    check(pieces_of(name))
    assert [row.tobytes().hex() for row in read.public_inputs(0)] == expected(name)["public_inputs"]
    said = document(name)["sectors"]
    assert read.sector_ids.tolist() == [sector["id"] for sector in said]
    assert [row.tobytes().hex() for row in read.comm_r] == [sector["comm_r"] for sector in said]


def test_challenges_of_32_gib_are_those_of_a_real_sector() -> None:
    """A window piece in Curio's repository: sector 1, randomness all zeros, API 1.0.0, partition 0."""
    shape, ids = post_shape(WINDOW, 32 * GIB), np.array([1], dtype=np.uint64)
    assert challenges(shape, ApiVersion.V1_0, bytes(32), 0, ids).tolist() == [
        [
            707914199, 439148358, 967788220, 548708700, 1061661429,
            6202012, 1055504637, 389535735, 1000069704, 600088878,
        ]
    ]  # fmt: skip


def test_under_api_1_0_0_challenges_depend_on_the_place_in_the_deadline() -> None:
    shape, ids = post_shape(WINDOW, 32 * GIB), np.array([5, 9], dtype=np.uint64)
    old = [challenges(shape, ApiVersion.V1_0, bytes(32), partition, ids) for partition in (0, 1)]
    new = [challenges(shape, ApiVersion.V1_2, bytes(32), partition, ids) for partition in (0, 1)]
    assert np.array_equal(new[0], new[1])
    assert np.array_equal(old[0][0], new[0][0])  # the very first sector counts from 0
    assert not (old[0][1] == new[0][1]).any() and not (old[1] == old[0]).any()


@pytest.mark.parametrize("kind", [WINNING, WINDOW])
def test_parameters_have_their_published_names(kind: str) -> None:
    manifest = json.loads((Path(__file__).parents[1] / "vectors" / "parameters.json").read_text())
    stems = {name.rsplit(".", 1)[0] for name in manifest}
    published = {2 * KIB, 8 * MIB, 512 * MIB, 32 * GIB, 64 * GIB}
    shapes = post_shapes(kind)
    assert [shape.sector_bytes for shape in shapes] == [shape.sector_bytes for shape in all_shapes()]
    assert {shape.sector_bytes for shape in shapes if shape.parameter_stem in stems} == published


def test_unpublished_parameters_have_upstreams_names() -> None:
    for name in POSTS:
        stem = read_post(pieces_of(name)).shape.parameter_stem
        assert f"{stem}." in EXPECT["vectors"][name]["param_file"] + "."


# ---- what does not ----

PLACES = {  # of window-2k, piece 1: byte, and what is said of it
    "sector": (0, r"piece 1 \(sector 106\), challenge 0, R path, level 0: index . does not lead to node"),
    "comm_r": (8, r"piece 1 \(sector 107\): comm_r is not the hash of comm_c and comm_r_last"),
    "sectors": (40, "piece 1: 0 sectors where 1 are expected"),
    "challenges": (48, "piece 1: 11 challenges where 10 are expected"),
    "tag": (FIRST_PATH, "piece 1, challenge 0: the path says Sub where Single is expected"),
    "root": (FIRST_PATH + 4, "challenge 0, R path: the path's root is not the comm_r_last"),
    "leaf": (FIRST_PATH + 3 * PATH_BYTES + 36, "challenge 3, R path: the path does not lead from its leaf"),
    "levels": (FIRST_PATH + 68, "piece 1, challenge 0: 3 levels where 2 are expected"),
    "siblings": (FIRST_PATH + 76, "piece 1, challenge 0, level 0: 6 siblings where 7 are expected"),
    "sibling": (FIRST_PATH + 9 * PATH_BYTES + 84, "challenge 9, R path: the path does not lead from its"),
    "index": (FIRST_PATH + 9 * PATH_BYTES - 8, "challenge 8, R path, level 1: index . does not lead to node"),
    "comm_c": (FIRST_PATH + 10 * PATH_BYTES, r"piece 1 \(sector 107\): comm_r is not the hash of comm_c"),
    "comm_r_last": (FIRST_PATH + 10 * PATH_BYTES + 32, r"piece 1 \(sector 107\): comm_r is not the hash"),
}


@pytest.mark.parametrize("part", PLACES)
def test_a_flipped_bit_is_found_and_placed(part: str) -> None:
    byte, said = PLACES[part]
    with pytest.raises(InputError, match=said):
        check(flipped(pieces_of("window-2k"), 1, byte))


@settings(max_examples=150)
@given(data=st.data())
def test_no_flipped_bit_anywhere_passes(data: st.DataObject) -> None:
    whole = pieces_of(data.draw(st.sampled_from(["window-2k", "window-16k", "winning-32k"])))
    number = data.draw(st.integers(0, len(whole.pieces) - 1))
    byte = data.draw(st.integers(0, len(whole.pieces[number]) - 1))
    said = refusal(flipped(whole, number, byte, data.draw(st.integers(0, 7))))
    assert f"piece {number}" in said or (byte < 8 and "comes after sector" in said)
    path = (len(whole.pieces[number]) - FIRST_PATH - 64) // read_post(whole).shape.challenges
    challenge = (byte - FIRST_PATH) // path
    if 0 <= challenge < read_post(whole).shape.challenges and byte >= FIRST_PATH:
        assert f"challenge {challenge}" in said


@settings(max_examples=200)
@given(data=st.data())
def test_a_mutated_piece_is_refused_and_never_crashes(data: st.DataObject) -> None:
    """Bytes replaced, cut out or put in, the end cut off: whatever it is, it is said where."""
    whole = pieces_of(data.draw(st.sampled_from(["window-2k", "window-4k", "winning-2k"])))
    number = data.draw(st.integers(0, len(whole.pieces) - 1))

    def mutate(piece: bytearray) -> None:
        at = data.draw(st.integers(0, len(piece)))
        end = data.draw(st.sampled_from([at, at + 1, at + 8, at + 32, len(piece)]))
        piece[at:end] = data.draw(st.binary(max_size=40))

    mutated = changed(whole, number, mutate)
    if mutated.pieces != whole.pieces:
        assert "piece" in refusal(mutated)


@pytest.mark.parametrize(
    ("at", "place"),
    [
        (8, "comm_r"),
        (FIRST_PATH + 4, "challenge 0, R path, root"),
        (FIRST_PATH + PATH_BYTES + 36, "challenge 1, R path, leaf"),
        (FIRST_PATH + PATH_BYTES - 8 - 32, "challenge 0, R path, level 1"),
        (FIRST_PATH + 10 * PATH_BYTES, "comm_c"),
        (FIRST_PATH + 10 * PATH_BYTES + 32, "comm_r_last"),
    ],
)
@pytest.mark.parametrize("value", [FR.p, 2**256 - 1])
def test_a_hash_that_is_not_below_r_is_found_and_placed(at: int, place: str, value: int) -> None:
    def overflow(piece: bytearray) -> None:
        piece[at : at + 32] = value.to_bytes(32, "little")

    said = refusal(changed(pieces_of("window-2k"), 0, overflow))
    assert f"piece 0 (sector 100), {place}: the hash is not below r" in said


def test_every_path_of_a_winning_proof_is_checked() -> None:
    whole = pieces_of("winning-2k")
    for challenge in range(66):
        said = refusal(flipped(whole, 0, FIRST_PATH + challenge * PATH_BYTES + 100))
        assert f"piece 0 (sector 100), challenge {challenge}, R path" in said


def test_sectors_out_of_order_or_twice_are_refused() -> None:
    whole = pieces_of("window-2k")
    first, second = whole.pieces
    said = refusal(replace(whole, pieces=(second, first)))
    assert "piece 1 (sector 100): sector 100 comes after sector 107" in said
    assert "sector 107 comes after sector 107" in refusal(replace(whole, pieces=(second, second)))


@pytest.mark.parametrize(("name", "count", "most"), [("window-2k", 3, "1 to 2"), ("winning-2k", 2, "one")])
def test_too_many_or_no_pieces_are_refused(name: str, count: int, most: str) -> None:
    whole = pieces_of(name)
    assert f"{count} pieces where {most} can be proven" in refusal(
        replace(whole, pieces=whole.pieces[:1] * count)
    )
    assert f"0 pieces where {most} can be proven" in refusal(replace(whole, pieces=()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"randomness": bytes(31)}, "randomness: 31 bytes where 32 are expected"),
        ({"randomness": FR.p.to_bytes(32, "little")}, "randomness: randomness is not below r"),
        ({"randomness": bytes(32)}, "challenge 0, R path, level 0: index"),
        ({"api_version": ApiVersion.V1_1}, "api_version: no window proof has API version 1.1.0"),
        ({"api_version": ApiVersion.V1_2}, "challenge 0, R path, level"),
        ({"partition_index": 0}, "challenge 0, R path, level"),
        ({"partition_index": -1}, "partition_index: no window has a partition -1"),
        ({"partition_index": 1 << 40}, "partition_index: no window has a partition"),
        ({"sector_bytes": 4096}, "piece 0, challenge 0: the path says Single where Sub is expected"),
        ({"sector_bytes": 3000}, "there is no wpost proof of 3000 bytes"),
        ({"kind": WINNING}, "piece 0: 10 challenges where 66 are expected"),
    ],
)
def test_a_statement_that_does_not_fit_the_pieces_is_refused(changes: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(replace(pieces_of("window-2k-v1-p1"), **changes))


# ---- what nobody sealed ----


def made(kind: str, sector_bytes: int, sectors: int, seed: int = 1) -> Pieces:
    shape = post_shape(kind, sector_bytes)
    return synthesize_post(shape, seed=seed, device=DEVICE, progress=lambda *_: None, sectors=sectors)


@pytest.mark.parametrize("sector", all_shapes(), ids=lambda sector: sector.name)
def test_sectors_that_nobody_sealed_pass_at_every_size(sector) -> None:  # type: ignore[no-untyped-def]
    for kind, count in ((WINNING, 1), (WINDOW, 2)):
        pieces_made = made(kind, sector.sector_bytes, count)
        check(pieces_made)
        read = read_post(pieces_made)
        assert len({row.tobytes() for row in read.comm_r}) == len(read.sector_ids) == count


def test_made_up_sectors_follow_from_the_seed() -> None:
    assert made(WINDOW, 2 * KIB, 2) == made(WINDOW, 2 * KIB, 2)
    assert made(WINDOW, 2 * KIB, 2).pieces != made(WINDOW, 2 * KIB, 2, seed=2).pieces


@pytest.mark.parametrize(("kind", "count"), [(WINNING, 2), (WINDOW, 0), (WINDOW, 3)])
def test_a_proof_has_no_other_number_of_made_up_sectors(kind: str, count: int) -> None:
    with pytest.raises(UsageError, match="sectors"):
        made(kind, 2 * KIB, count)


@pytest.mark.slow
def test_a_whole_window_of_32_gib_passes() -> None:
    pieces_made = made(WINDOW, 32 * GIB, 2349)
    assert {len(piece) for piece in pieces_made.pieces} == {24960}
    check(pieces_made)


def test_facts_tell_what_is_proven() -> None:
    facts = read_post(pieces_of("window-2k")).facts()
    sector = facts["sector"]
    assert sector["kind"] == WINDOW and sector["sector_size"] == "2KiB"
    numbers = [sector[name] for name in ("sectors", "first_sector_number", "last_sector_number")]
    assert numbers == [2, 100, 107]
    assert json.loads(json.dumps(facts)) == facts


def test_arrays_of_an_input_cannot_be_written() -> None:
    read: PostInput = read_post(pieces_of("window-2k"))
    for array in (read.sector_ids, read.comm_r, read.comm_c, read.comm_r_last, read.paths.siblings):
        assert not array.flags.writeable
    assert piece_form(read.shape).dtype.itemsize == len(pieces_of("window-2k").pieces[0])
