"""The unit of systemd: what the daemon needs is visible and writable under its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk import config
from cuzk.groth16.parameters.locate import FOLDER_VARIABLE, search_folders

UNIT = Path(__file__).resolve().parents[1] / "deploy" / "cuzk.service"
#: What a setting gives the service an empty one of.
HIDDEN = {"PrivateTmp": ("/tmp", "/var/tmp"), "ProtectHome": ("/home", "/root", "/run/user")}


def settings() -> dict[str, str]:
    lines = [line for line in UNIT.read_text(encoding="utf-8").splitlines() if "=" in line and line[0] != "#"]
    return dict(line.split("=", 1) for line in lines)


def is_visible(folder: Path, unit: dict[str, str]) -> bool:
    """Whether the service sees it where it is."""
    bound = unit.get("BindReadOnlyPaths", "").split()
    if any(folder.is_relative_to(path.removeprefix("-")) for path in bound):
        return True
    hidden = [path for name, paths in HIDDEN.items() if unit.get(name) == "yes" for path in paths]
    return not any(folder.is_relative_to(path) for path in hidden)


def test_every_folder_that_is_searched_by_default_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = settings()
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    for said in unit["Environment"].split():
        monkeypatch.setenv(*said.split("=", 1))
    folders = search_folders()
    assert len(folders) == 2
    assert [folder for folder in folders if not is_visible(folder, unit)] == []


def test_what_a_setting_hides_is_seen_to_be_hidden() -> None:
    unit = {"PrivateTmp": "yes", "ProtectHome": "yes"}
    for path in ("/var/tmp/filecoin-proof-parameters", "/tmp/x", "/home/curio/.local/share/cuzk"):
        assert not is_visible(Path(path), unit)
        assert is_visible(Path(path), {})


def test_the_example_of_a_configuration_has_no_mistake_and_nothing_to_warn_of() -> None:
    reading = config.read(UNIT.with_name("cuzk.toml"))
    assert (reading.problems, reading.warnings) == ([], [])
    assert reading.given


def test_the_page_for_curio_says_where_the_file_that_the_unit_reads_comes_from() -> None:
    command = settings()["ExecStart"].split()
    path = command[command.index("--config") + 1]
    page = (UNIT.parents[1] / "docs" / "curio.md").read_text(encoding="utf-8")
    assert f"/data/zk/cuzk.toml {path}" in page
