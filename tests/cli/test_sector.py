"""`cuzk sector`: what is shown of an input, what is refused, and sectors that nobody sealed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import cuzk
from cuzk.sector.commitments import Committed, cid_of
from cuzk.sector.porep.c1_reader import read_c1
from tests.cli.running import run
from tests.sector.other_vectors import OTHER, pieces_of

LIST = OTHER / "snap-2k.vanilla.json"
PIECES = pieces_of("snap-2k")
AS_HEX = {name: getattr(PIECES, name).hex() for name in ("comm_r_old", "comm_r_new", "comm_d_new")}
AS_CIDS = {
    name: cid_of(bytes.fromhex(digits), Committed.DATA if name == "comm_d_new" else Committed.REPLICA)
    for name, digits in AS_HEX.items()
}


def test_inspect_shows_what_the_sector_is(vectors: Path, own_home: Path) -> None:
    case = json.loads((vectors / "porep" / "vectors.json").read_text())["cases"][0]
    result = run("sector", "inspect", str(vectors / "porep" / case["file"]), "--miner", "1000", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    for name in ("comm_d", "comm_r", "replica_id", "seed", "ticket"):
        assert facts["commitments"][name] == case[name]
    assert facts["sector"]["registered_proof"] == case["registered_proof"]
    assert facts["parameters"]["name"] == case["parameter_id"]


def test_a_synthetic_sector_is_called_that_and_passes_inspection(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_home)
    result = run("sector", "synthesize", "--sector-size", "8MiB", "--seed", "12")
    assert result.exit_code == 0, result.stderr
    name = "c1-synthetic-StackedDrg8MiBV1_1-12.json"
    assert result.stdout == f"written: {name}\n"
    assert "note: a synthetic sector: nobody sealed it" in result.stderr
    facts = json.loads(run("sector", "inspect", name, "--miner", "1000", "--json").stdout)
    assert facts["sector"]["synthesized"] is True
    assert (facts["sector"]["sector_size"], facts["sector"]["sector_number"]) == ("8MiB", 1)
    assert list(own_home.glob(".*")) == []


def test_a_file_that_stands_is_not_replaced_by_a_synthetic_sector(own_home: Path) -> None:
    path = own_home / "c1.json"
    path.write_bytes(b"precious")
    result = run("sector", "synthesize", "--sector-size", "2KiB", "--out", str(path))
    assert result.exit_code == 1
    assert "there is a file already" in result.stderr and str(path) in result.stderr
    assert path.read_bytes() == b"precious"


def test_a_synthetic_sector_that_could_not_be_written_is_not_begun(own_home: Path) -> None:
    result = run("sector", "synthesize", "--sector-size", "2KiB", "--out", str(own_home / "none" / "c1.json"))
    assert result.exit_code == 1
    assert "could not be written" in result.stderr and "synthesize:" not in result.stderr


def test_a_sector_that_only_sealing_makes_leaves_no_file(own_home: Path) -> None:
    path, name = own_home / "c1.json", "StackedDrg32GiBV1_1_Feat_SyntheticPoRep"
    result = run(
        "sector", "synthesize", "--sector-size", "32GiB", "--registered-proof", name, "--out", str(path)
    )
    assert result.exit_code == 2
    assert "only a sealed sector has the answers" in result.stderr and not path.exists()


def test_python_gets_the_sector_that_the_command_writes(own_home: Path) -> None:
    path = own_home / "c1.json"
    c1 = cuzk.synthesize(2048, seed=3, registered_proof="StackedDrg2KiBV1", out=path)
    assert read_c1(path).comm_r == c1.comm_r
    again = run("sector", "synthesize", "--sector-size", "2KiB", "--seed", "3", "--registered-proof",
                "StackedDrg2KiBV1", "--out", str(own_home / "again.json"), "--json")  # fmt: skip
    assert json.loads(again.stdout) == {"written": [str(own_home / "again.json")]}
    assert (own_home / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("content", [None, b"", b"{", b"[1, 2]", b"\x1f\x8b\x08"])
def test_a_file_that_is_no_sector_ends_with_1_and_its_name(content: bytes | None, own_home: Path) -> None:
    path = own_home / "c1.json"
    if content is not None:
        path.write_bytes(content)
    result = run("sector", "inspect", str(path))
    assert result.exit_code == 1
    assert "c1.json" in result.stderr and "next:" in result.stderr


@pytest.mark.parametrize(
    "file", ["porep/2k-zero.json", "other/window-2k.json", "other/winning-2k.json", "other/snap-2k.json"]
)
def test_facts_of_every_kind_have_the_same_names_without_spaces(
    file: str, vectors: Path, own_home: Path
) -> None:
    facts = json.loads(run("sector", "inspect", vectors / file, "--json").stdout)
    assert facts["sector"]["sector_size"] == "2KiB" and "kind" in facts["sector"]
    names = [*facts, *(name for section in facts.values() for name in section)]
    assert [name for name in names if not re.fullmatch(r"[a-z0-9_]+", name)] == []
    for nodes in facts.get("challenged_nodes", {}).values():
        assert all(type(node) is int for node in nodes)


def test_another_miner_is_told_to_look_at_the_miner_first(vectors: Path, own_home: Path) -> None:
    result = run("sector", "inspect", vectors / "porep" / "2k-zero.json", "--miner", "1234")
    assert result.exit_code == 1 and "is not that of miner 1234" in result.stderr
    assert "next:  check miner and sector number first; else use the registered proof" in result.stderr


def inspect(commitments: dict[str, str]) -> Result:
    """Of a bare list, with these beside it."""
    options = [part for name, value in commitments.items() for part in (f"--{name.replace('_', '-')}", value)]
    return run("sector", "inspect", LIST, "--kind", "snap", "--registered-proof", 0, "--json", *options)


@pytest.mark.parametrize("commitments", [AS_HEX, AS_CIDS], ids=["hex", "CIDs"])
def test_a_bare_list_is_read_and_checked_with_the_commitments_beside_it(
    own_home: Path, commitments: dict[str, str]
) -> None:
    result = inspect(commitments)
    assert result.exit_code == 0, result.output
    facts: dict[str, Any] = json.loads(result.stdout)
    assert facts["commitments"] == AS_HEX
    assert facts["sector"]["sector_size"] == "2KiB"


def test_a_commitment_to_data_is_none_to_a_replica(own_home: Path) -> None:
    result = inspect(AS_CIDS | {"comm_r_old": AS_CIDS["comm_d_new"]})
    assert result.exit_code == 2
    assert "--comm-r-old" in result.stderr
    assert "the CID of a replica commitment" in " ".join(result.stderr.split())


def test_a_commitment_that_is_missing_is_named(own_home: Path) -> None:
    result = inspect({name: AS_HEX[name] for name in ("comm_r_old", "comm_d_new")})
    assert result.exit_code == 2
    assert "a list does not say its comm_r_new" in result.output and "add --comm-r-new HEX" in result.output
