"""`cuzk params`: what is listed, made and checked, and what is refused before any work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_a_file_where_a_folder_is_asked_for_is_called_one(vectors: Path, own_home: Path) -> None:
    file = own_home / "c1.json"
    file.touch()
    made = run("params", "generate", "--insecure-dev", "--sector-size", "2KiB", "--vk-only", "--out", file)
    c1 = vectors / "porep" / "2k-zero.json"
    searched = run("prove", c1, "--params", file)
    for result in (made, searched):
        assert result.exit_code == 1
        assert "this is a file, not a folder" in result.stderr and f"where: {file}" in result.stderr


@pytest.mark.parametrize(("size", "published"), [("2KiB", True), ("4KiB", False)])
def test_published_parameters_are_promised_where_there_are_some(
    size: str, published: bool, own_home: Path
) -> None:
    result = run("params", "generate", "--sector-size", size)
    assert result.exit_code == 2 and "add --insecure-dev if they are for development" in result.stderr
    assert (f"`cuzk params fetch --kind porep --sector-size {size}`" in result.stderr) is published


@pytest.mark.parametrize("gateway", ["notaurl", "ftp://host/ipfs", "http://", "https:/proofs", "http://[::1"])
def test_a_gateway_that_is_no_url_is_a_mistake_of_usage(gateway: str, own_home: Path) -> None:
    result = run("params", "fetch", "--sector-size", "2KiB", "--out", own_home / "new", "--gateway", gateway)
    assert result.exit_code == 2
    assert f"error: '{gateway}' is no URL of a gateway" in result.stderr
    assert "https://proofs.filecoin.io/ipfs" in result.stderr and "network" not in result.stderr
    assert not (own_home / "new").exists()


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
