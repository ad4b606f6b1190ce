"""Vanilla proofs in pieces: upstream's lists, our envelopes, and what does not fit together."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from cuzk.errors import InputError
from cuzk.sector.api_version import ApiVersion
from cuzk.sector.pieces import Pieces, SideInputs, encode_envelope, parse_envelope, parse_list
from tests.sector.other_vectors import OTHER

ENVELOPES = sorted(path for path in OTHER.glob("w*.json") if ".vanilla" not in path.name)
WINDOW: dict[str, Any] = {"kind": "window", "sector_size": 2048, "vanilla_proofs": ["AAEC"]}


@pytest.mark.parametrize("path", ENVELOPES, ids=lambda path: path.stem)
def test_an_envelope_says_what_its_fields_say(path: Path) -> None:
    said, pieces = json.loads(path.read_bytes()), parse_envelope(path.read_bytes(), origin="here")
    assert pieces.origin == "here" and pieces.kind.startswith(said["kind"])
    assert pieces.sector_bytes == said["sector_size"]
    assert pieces.pieces == tuple(base64.b64decode(piece) for piece in said["vanilla_proofs"])
    assert pieces.api_version.value == said["api_version"]
    assert pieces.randomness.hex() == said["randomness"]
    assert pieces.partition_index == said["partition_index"]
    assert (pieces.registered_proof, pieces.miner_id) == (said["registered_proof"], said["miner_id"])


@pytest.mark.parametrize("path", ENVELOPES, ids=lambda path: path.stem)
def test_an_envelope_that_was_written_says_the_same(path: Path) -> None:
    pieces = parse_envelope(path.read_bytes(), origin="here")
    assert parse_envelope(encode_envelope(pieces), origin="here") == pieces


@pytest.mark.parametrize("name", ["winning-2k", "window-2k"])
def test_upstreams_list_has_the_pieces_of_the_envelope(name: str) -> None:
    listed = parse_list((OTHER / f"{name}.vanilla.json").read_bytes(), origin=name)
    assert tuple(listed) == parse_envelope((OTHER / f"{name}.json").read_bytes(), origin=name).pieces


@pytest.mark.parametrize(
    ("kind", "number", "size", "version"),
    [
        ("winning-post", 0, 2 << 10, ApiVersion.V1_0),
        ("winning-post", 3, 32 << 30, ApiVersion.V1_0),
        ("window-post", 5, 2 << 10, ApiVersion.V1_0),
        ("window-post", 8, 32 << 30, ApiVersion.V1_0),
        ("window-post", 10, 2 << 10, ApiVersion.V1_2),
        ("window-post", 14, 64 << 30, ApiVersion.V1_2),
        ("snap-update", 1, 8 << 20, ApiVersion.V1_0),
        ("snap-update", 4, 64 << 30, ApiVersion.V1_0),
    ],
)
def test_a_registered_proof_decides_size_and_version(
    kind: str, number: int, size: int, version: ApiVersion
) -> None:
    for sector_size in (0, size):
        beside = SideInputs(kind=kind, registered_proof=number, sector_size=sector_size)
        pieces = Pieces.of([b"x"], beside, origin="here")
        assert (pieces.sector_bytes, pieces.api_version, pieces.pieces) == (size, version, (b"x",))


def test_without_a_number_the_size_is_enough_and_the_version_is_todays() -> None:
    for kind, version in (("window-post", ApiVersion.V1_2), ("winning-post", ApiVersion.V1_0)):
        pieces = Pieces.of([], SideInputs(kind=kind, sector_size=4096), origin="here")
        assert (pieces.sector_bytes, pieces.api_version) == (4096, version)


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        (SideInputs(kind="window-post"), "here: nothing says which sector size"),
        (SideInputs(kind="window-post", registered_proof=4), "none of wpost .they are 5 to 14"),
        (SideInputs(kind="window-post", registered_proof=15), "none of wpost"),
        (SideInputs(kind="winning-post", registered_proof=-1), "none of winning .they are 0 to 4"),
        (SideInputs(kind="snap-update", registered_proof=5), "none of snap .they are 0 to 4"),
        (SideInputs(kind="snap-update", registered_proof=3, sector_size=2048), "32GiB, not of 2KiB"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(beside: SideInputs, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pieces.of([], beside, origin="here")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "porep"}, "here, kind: there is no kind of proof 'porep'"),
        ({"kind": None}, "here, kind: Expected `str`, got `null`"),
        ({"vanilla_proofs": ["AAEC", "?"]}, r"here, vanilla_proofs\[1\]: Invalid base64"),
        ({"randomness": "0g"}, "here, randomness: this is not hexadecimal"),
        ({"sector_size": "2KiB"}, "here, sector_size: Expected `int`"),
        ({"api_version": "1.3.0"}, "no such proof has API version '1.3.0'"),
        ({"registered_proof": 5, "api_version": "1.2.0"}, "no such proof has API version '1.2.0'"),
    ],
)
def test_an_envelope_that_is_wrong_is_refused_with_the_field(changes: dict[str, Any], message: str) -> None:
    parse_envelope(json.dumps(WINDOW).encode(), origin="here")
    with pytest.raises(InputError, match=message):
        parse_envelope(json.dumps({**WINDOW, **changes}).encode(), origin="here")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'["AAEC", 3]', r"here, \[1\]: Expected `bytes`, got `int`"),
        (b'["AAEC"', "here: the file is not whole JSON"),
        (b"\xff", "here: "),
        (b"{}", "here: Expected `array`, got `object`"),
    ],
)
def test_what_is_no_list_of_base64_strings_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_list(data, origin="here")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(InputError, match="missing required field `sector_size`"):
        parse_envelope(b'{"kind": "window", "vanilla_proofs": []}', origin="here")
