"""Pieces of vanilla proofs: upstream's own against a sequential reader, and places of what is damaged."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from cuzk.errors import InputError
from cuzk.sector.bincode import (
    HASH,
    U64,
    Form,
    blank,
    encoded,
    items,
    merkle_proof,
    paths_of,
    place_paths,
    struct,
)
from cuzk.sector.bincode import read as read_records
from cuzk.sector.shape import GIB, KIB, shape_of
from cuzk.sector.tree_form import c_and_r_form
from tests.sector.other_vectors import document

SIZES = {"winning-2k": 2, "winning-32k": 32, "window-2k": 2, "window-4k": 4, "window-16k": 16}
AT = 8 + 32 + 8 + 8  # of the first inclusion proof: behind sector, comm_r and two counts


def pieces_of(name: str) -> list[bytes]:
    return [base64.b64decode(piece) for piece in document(name)["vanilla_proofs"]]


def post_form(kib: int, challenges: int) -> Form:
    proof = merkle_proof(c_and_r_form(shape_of(kib * KIB)))
    inner = struct(
        ("inclusion_proofs", items(challenges, proof, noun="challenges", place="challenge"), ""),
        ("comm_c", HASH, ""),
        ("comm_r_last", HASH, ""),
    )
    sectors = items(1, inner, noun="sectors")
    return struct(("sector_id", U64, ""), ("comm_r", HASH, ""), ("sectors", sectors, ""))


class Cursor:
    """Reads one number after another, as bincode is written."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int = 8) -> int:
        return int.from_bytes(self.take(size), "little")

    def merkle_proof(self) -> dict:
        tag = self.number(4)
        ends = [self.take(32), self.take(32)] if tag == 0 else []
        levels = []
        for _ in range(tag + 1):
            for _ in range(self.number()):
                hashes = [self.take(32) for _ in range(self.number())]
                levels.append((hashes, self.number()))
        root, leaf = ends or (self.take(32), self.take(32))
        return {"root": root, "leaf": leaf, "levels": levels}


@pytest.mark.parametrize(("name", "kib"), SIZES.items())
def test_records_hold_what_a_sequential_reader_finds(name: str, kib: int) -> None:
    challenges = 66 if name.startswith("winning") else 10
    pieces, tree = pieces_of(name), c_and_r_form(shape_of(kib * KIB))
    records = read_records(post_form(kib, challenges), pieces, "piece {}".format)
    for piece, record in zip(pieces, records, strict=True):
        cursor = Cursor(piece)
        assert record["sector_id"] == cursor.number()
        assert record["comm_r"].tobytes() == cursor.take(32)
        assert cursor.number() == 1
        inner = record["sectors"]["items"][0]
        paths = paths_of(inner["inclusion_proofs"]["items"], tree)
        assert cursor.number() == challenges == len(paths.roots)
        for i in range(challenges):
            expected = cursor.merkle_proof()
            assert paths.roots[i].tobytes() == expected["root"]
            assert paths.leaves[i].tobytes() == expected["leaf"]
            hashes = [hash_ for level, _ in expected["levels"] for hash_ in level]
            assert paths.siblings[i].tobytes() == b"".join(hashes)
            assert paths.indices[i].tolist() == [index for _, index in expected["levels"]]
        assert inner["comm_c"].tobytes() == cursor.take(32)
        assert inner["comm_r_last"].tobytes() == cursor.take(32)
        assert cursor.at == len(piece)


@pytest.mark.parametrize(("name", "kib"), SIZES.items())
def test_what_is_read_is_written_as_the_same_bytes(name: str, kib: int) -> None:
    form = post_form(kib, 66 if name.startswith("winning") else 10)
    tree, pieces = c_and_r_form(shape_of(kib * KIB)), pieces_of(name)
    records, again = read_records(form, pieces, "piece {}".format), blank(form, len(pieces))
    for field in ("sector_id", "comm_r"):
        again[field] = records[field]
    inner, written = records["sectors"]["items"], again["sectors"]["items"]
    written["comm_c"], written["comm_r_last"] = inner["comm_c"], inner["comm_r_last"]
    place_paths(
        paths_of(inner["inclusion_proofs"]["items"], tree), tree, written["inclusion_proofs"]["items"]
    )
    assert encoded(again) == pieces


def test_pieces_have_the_known_sizes() -> None:
    known = {(2, 10): 5680, (2, 66): 36816, (32, 10): 8720, (32, 66): 56880, (32 * GIB // KIB, 10): 24960}
    assert {key: post_form(*key).dtype.itemsize for key in known} == known


@pytest.mark.parametrize(
    ("at", "value", "what", "where"),
    [
        (40, 2, "2 sectors where 1 are expected", "piece 1"),
        (48, 11, "11 challenges where 10 are expected", "piece 1"),
        (AT, 1, "the path says Sub where Single is expected", "piece 1, challenge 0"),
        (AT, 7, "the path says variant 7 where Single is expected", "piece 1, challenge 0"),
        (AT + 556, 2, "the path says Top where Single is expected", "piece 1, challenge 1"),
        (AT + 556 + 68, 3, "3 levels where 2 are expected", "piece 1, challenge 1"),
        (AT + 556 + 76, 8, "8 siblings where 7 are expected", "piece 1, challenge 1, level 0"),
        (AT + 556 + 76 + 240, 6, "6 siblings where 7 are expected", "piece 1, challenge 1, level 1"),
    ],
)
def test_a_wrong_count_is_told_with_its_place(at: int, value: int, what: str, where: str) -> None:
    good = pieces_of("window-2k")
    damaged = bytearray(good[1])
    damaged[at] = value
    for piece in (bytes(damaged), bytes(damaged[:-1])):
        with pytest.raises(InputError) as error:
            read_records(post_form(2, 10), [good[0], piece], "piece {}".format)
        assert (error.value.what, error.value.where) == (what, where)


@pytest.mark.parametrize("size", [0, 39, 41, 5679, 5681])
def test_a_piece_that_ends_early_or_late_is_told(size: int) -> None:
    piece = (pieces_of("window-2k")[0] + b"\0")[:size]
    with pytest.raises(InputError, match=f"{size} bytes where 5680 are expected"):
        read_records(post_form(2, 10), [piece], "piece {}".format)


def test_an_index_that_fits_no_signed_number_stays_too_large() -> None:
    tree = c_and_r_form(shape_of(2 * KIB))
    records = blank(merkle_proof(tree), 1)
    records["path"]["items"]["index"] = 2**64 - 1
    assert (paths_of(records, tree).indices == 2**63 - 1).all()
    assert np.array_equal(paths_of(blank(merkle_proof(tree), 1), tree).indices, [[0, 0]])
