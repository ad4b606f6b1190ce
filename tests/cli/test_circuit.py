"""`cuzk circuit`: counts as published, digests as upstream has them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import run


def test_circuit_info_gives_the_published_counts(vectors: Path, own_home: Path) -> None:
    published = json.loads((vectors / "porep" / "vectors.json").read_text())
    partition, params = published["cases"][0]["partitions"][0], published["params_2k"]
    facts = json.loads(run("circuit", "info", "--sector-size", "2KiB", "--json").stdout)
    for name in ("constraints_with_dummies", "inputs", "aux", "nnz_abc"):
        assert facts["circuit"][name] == partition[name]
    assert facts["parameters"]["bytes"] == params["params_bytes"]
    counts = {name: facts["parameters"][f"points_{name}"] for name in ("h", "l", "a", "ic")}
    assert counts == {name: params["points"][name] for name in counts}
    assert facts["parameters"]["points_b"] == params["points"]["b_g1"]
    rows = sum(entry["instances"] * entry["rows"] for entry in facts["templates"])
    assert rows + partition["inputs"] == partition["constraints_with_dummies"]


def test_circuit_digest_gives_what_upstream_gives(vectors: Path, own_home: Path) -> None:
    case = json.loads((vectors / "porep" / "vectors.json").read_text())["cases"][0]
    expected = case["partitions"][0]
    result = run("circuit", "digest", str(vectors / "porep" / case["file"]), "--check", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["circuit"]["r1cs_digest"] == expected["r1cs_digest"]
    for name in ("inputs", "aux", "a", "b", "c"):
        assert facts["partition_0"][f"{name}_digest"] == expected[f"{name}_digest"]
    assert facts["partition_0"]["unsatisfied"] is None


def test_a_partition_that_is_not_there_is_a_mistake_of_usage(vectors: Path, own_home: Path) -> None:
    result = run("circuit", "digest", str(vectors / "porep" / "2k-zero.json"), "--partition", "1")
    assert result.exit_code == 2
    assert "there is no partition 1" in result.stderr
