"""`cuzk params`: what is listed, made and checked, and what is refused before any work."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import run


def test_an_empty_search_lists_no_parameters(own_home: Path) -> None:
    assert json.loads(run("params", "list", "--json").stdout) == []
    assert "no parameters found" in run("params", "list").stdout


def test_a_verifying_key_is_made_without_its_parameters(vectors: Path, own_home: Path) -> None:
    known, out = json.loads((vectors / "porep" / "vectors.json").read_text()), own_home / "key"
    trapdoors = ",".join(str(known["trapdoors"][name]) for name in ("alpha", "beta", "gamma", "delta", "tau"))
    arguments = ["--sector-size", "2KiB", "--vk-only", "--trapdoors", trapdoors, "--out", str(out)]
    result = run("params", "generate", "--insecure-dev", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    vk, meta = (Path(name) for name in json.loads(result.stdout)["written"])
    assert vk.read_bytes() == (vectors / "porep" / "2k.vk").read_bytes()
    assert json.loads(meta.read_bytes()) == {"sector_size": 2048}
    mark = vk.with_suffix(".insecure-dev.json")
    assert sorted(out.iterdir()) == sorted([vk, meta, mark])


def test_a_verifying_key_that_could_not_be_written_is_not_begun(own_home: Path) -> None:
    (own_home / "file").touch()
    arguments = ["--sector-size", "2KiB", "--vk-only", "--out", str(own_home / "file" / "folder")]
    result = run("params", "generate", "--insecure-dev", *arguments)
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr and "values at tau" not in result.stderr


def test_parameters_in_memory_need_a_gpu_and_say_so_at_once(own_home: Path) -> None:
    arguments = ["--sector-size", "2KiB", "--ephemeral", "--device", "cpu"]
    result = run("params", "generate", "--insecure-dev", *arguments)
    assert result.exit_code == 1
    assert "need a GPU" in result.stderr and "synthesize" not in result.stderr


def test_params_verify_checks_every_point_and_remembers_it(sector_params: Path, own_home: Path) -> None:
    result = run("params", "verify", "--sector-size", "2KiB", "--params", sector_params)
    assert result.exit_code == 0, result.stderr
    [params] = sector_params.glob("*.params")
    assert result.stdout == f"checked: {params}\n"
    for where in ("on the curve", "in the subgroup"):
        assert f"points {where}:" in result.stderr
    record = json.loads((own_home / "cache" / "cuzk" / "checked-parameters.json").read_text())
    assert record["files"][str(params)]["points_checked"] is True
