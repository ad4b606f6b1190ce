"""The configuration file: what it may say, and what a mistake in it is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk import config
from cuzk.errors import InputError


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "cuzk.toml"
        path.write_text(text)
        return path

    return write


def test_every_key_reaches_its_field(written) -> None:
    path = written(
        '[prover]\ndevice = "cpu"\nthreads = 8\n[parameters]\nfolder = "/data/params"\ngateway = "https://g.example/"\n'
    )
    assert config.load(path) == config.Config(
        device="cpu", threads=8, params=Path("/data/params"), gateway="https://g.example/"
    )


def test_an_empty_file_means_the_defaults(written) -> None:
    assert config.load(written("")) == config.Config()


def test_without_a_path_the_users_file_is_read_and_may_be_missing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config.load() == config.Config()
    (tmp_path / "cuzk").mkdir()
    (tmp_path / "cuzk" / "cuzk.toml").write_text("[prover]\nthreads = 3\n")
    assert config.load().threads == 3


def test_a_home_folder_is_expanded(written) -> None:
    assert config.load(written('[parameters]\nfolder = "~/p"\n')).params == Path.home() / "p"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[prover]\n\nthread = 8\n", 3, "did you mean prover.threads?"),
        ("[prover]\nthreads = true\n", 2, "threads is a boolean"),
        ('[prover]\nthreads = "8"\n', 2, "give an integer"),
        ("# first\n[provers]\n", 2, "did you mean prover?"),
        ('device = "cpu"\n', 1, "there is no table [device]"),
        ("[parameters]\n[prover]\ndevice = 1\n", 3, "prover.device is an integer"),
    ],
)
def test_a_mistake_is_named_with_its_line(written, text: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as caught:
        config.load(written(text))
    assert str(caught.value.where).endswith(f"cuzk.toml:{line}")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[prover\n", "threads = \n", "[prover]\nthreads = 0\n", "[prover]\nthreads = -1\n"]
)
def test_bad_toml_and_bad_values_are_input_errors(written, text: str) -> None:
    with pytest.raises(InputError):
        config.load(written(text))


def test_a_configuration_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        config.load(tmp_path / "none.toml")
