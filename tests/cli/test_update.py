"""A bare list of an update's proofs at the command line, with commitments beside it as hex and as CIDs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cuzk.cli import main
from cuzk.sector.commitments import Committed, cid_of
from tests.sector.other_vectors import OTHER, pieces_of

LIST = OTHER / "snap-2k.vanilla.json"
PIECES = pieces_of("snap-2k")
AS_HEX = {name: getattr(PIECES, name).hex() for name in ("comm_r_old", "comm_r_new", "comm_d_new")}
AS_CIDS = {
    name: cid_of(bytes.fromhex(digits), Committed.DATA if name == "comm_d_new" else Committed.REPLICA)
    for name, digits in AS_HEX.items()
}


def inspect(own_home: Path, commitments: dict[str, str]) -> Result:
    options = [part for name, value in commitments.items() for part in (f"--{name.replace('_', '-')}", value)]
    return CliRunner().invoke(
        main,
        ["sector", "inspect", str(LIST), "--kind", "snap", "--registered-proof", "0", "--json", *options],
    )


@pytest.mark.parametrize("commitments", [AS_HEX, AS_CIDS], ids=["hex", "CIDs"])
def test_a_bare_list_is_read_and_checked_with_the_commitments_beside_it(
    own_home: Path, commitments: dict[str, str]
) -> None:
    result = inspect(own_home, commitments)
    assert result.exit_code == 0, result.output
    facts: dict[str, Any] = json.loads(result.stdout)
    assert facts["commitments"] == AS_HEX
    assert facts["sector"]["sector_size"] == "2KiB"


def test_a_commitment_to_data_is_none_to_a_replica(own_home: Path) -> None:
    result = inspect(own_home, AS_CIDS | {"comm_r_old": AS_CIDS["comm_d_new"]})
    assert result.exit_code == 2
    assert "--comm-r-old" in result.stderr
    assert "the CID of a replica commitment" in " ".join(result.stderr.split())


def test_a_commitment_that_is_missing_is_named(own_home: Path) -> None:
    result = inspect(own_home, {name: AS_HEX[name] for name in ("comm_r_old", "comm_d_new")})
    assert result.exit_code == 1
    assert "comm_r_new has 0 bytes where 32 are expected" in result.output
