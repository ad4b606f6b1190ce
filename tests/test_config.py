"""The configuration file: what it may say, and what a mistake in it is answered with."""

from __future__ import annotations

from dataclasses import fields
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
        '[prover]\ndevice = "cpu"\nthreads = 8\n[parameters]\nfolder = "/data/params"\n'
        'gateway = "https://g.example/"\n[gpus]\ndevices = [0, "cpu"]\ngpu_workers_per_device = 3\n'
        'gpu_lock = "coarse"\n[synthesis]\npartition_workers = 7\n[pipeline]\nsynthesis_lookahead = 4\n'
        '[memory]\ntotal_budget = "256GiB"\n'
    )
    assert config.load(path) == config.Config(
        device="cpu",
        threads=8,
        params=Path("/data/params"),
        gateway="https://g.example/",
        devices=("cuda:0", "cpu"),
        gpu_workers_per_device=3,
        gpu_lock="coarse",
        partition_workers=7,
        synthesis_lookahead=4,
        memory=256 << 30,
    )
    assert {key.field for key in config.KEYS.values()} == {field.name for field in fields(config.Config)}


def test_an_automatic_budget_is_none(written) -> None:
    assert config.load(written('[memory]\ntotal_budget = "auto"\n')).memory is None


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
        ("[prover]\nthreads = 0\n", 2, "prover.threads is 0; at least 1 is needed"),
        ("[gpus]\n\ndevices = [1.5]\n", 3, "gpus.devices has an entry that is neither"),
        ("[gpus]\ndevices = 1\n", 2, "give a list"),
        ('[gpus]\ngpu_lock = "wide"\n', 2, "known are narrow, coarse, none"),
        ('[memory]\ntotal_budget = "1.5 elephants"\n', 2, "is not a size"),
        ("[memory]\ntotal_budget = 1\n", 2, "give a string"),
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
