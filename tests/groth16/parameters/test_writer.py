"""Writing parameters: all files or none, whatever interrupts."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk.errors import ParameterError, ResourceError
from cuzk.groth16.parameters import writer as writer_module
from cuzk.groth16.parameters.development import is_marked
from cuzk.groth16.parameters.params_file import PointCounts
from cuzk.groth16.parameters.verifying_key import VerifyingKey
from cuzk.groth16.parameters.writer import ParameterWriter, prepare_folder, write_key

TRAPDOORS = {"alpha": 2, "beta": 3, "gamma": 5, "delta": 7, "tau": 11}
Sections = dict[str, np.ndarray]
NewWriter = Callable[..., ParameterWriter]


@pytest.fixture
def new_writer(small_key: VerifyingKey, small_counts: PointCounts) -> NewWriter:
    def make(folder: Path, **changes: Any) -> ParameterWriter:
        prepare_folder(folder, small_counts)
        arguments = {"sector_bytes": 2048, "given_trapdoors": TRAPDOORS, **changes}
        return ParameterWriter(folder, "toy", small_key, small_counts, **arguments)

    return make


def write_all(writer: ParameterWriter, sections: Sections, rows: int) -> None:
    for name, points in sections.items():
        for start in range(0, len(points), rows):
            writer.write(name, points[start : start + rows])  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_chunks_make_the_hand_made_file(
    rows: int, tmp_path: Path, new_writer: NewWriter, small_params: Path, small_sections: Sections
) -> None:
    folder = tmp_path / "new" / "folder"
    with new_writer(folder) as writer:
        write_all(writer, small_sections, rows)
    assert writer.path == folder / "toy.params"
    assert writer.path.read_bytes() == small_params.read_bytes()


def test_all_four_files_stand_there_and_nothing_else(
    tmp_path: Path, new_writer: NewWriter, small_key: VerifyingKey, small_sections: Sections
) -> None:
    folder = tmp_path / "out"
    with new_writer(folder) as writer:
        write_all(writer, small_sections, 3)
    assert sorted(file.name for file in folder.iterdir()) == [
        "toy.insecure-dev.json", "toy.meta", "toy.params", "toy.vk",
    ]  # fmt: skip
    assert (folder / "toy.vk").read_bytes() == small_key.to_bytes()
    assert (folder / "toy.meta").read_bytes() == b'{"sector_size":2048}'
    assert is_marked(folder, "toy", small_key.digest) and not is_marked(folder, "toy", "0" * 32)
    mark = json.loads((folder / "toy.insecure-dev.json").read_bytes())
    assert mark["trapdoors"] == {"alpha": "2", "beta": "3", "gamma": "5", "delta": "7", "tau": "11"}


def written_alone(folder: Path, key: VerifyingKey) -> list[Path]:
    return write_key(folder, "toy", key, sector_bytes=2048, given_trapdoors=TRAPDOORS)


def test_a_key_alone_is_what_stands_beside_parameters(
    tmp_path: Path, new_writer: NewWriter, small_key: VerifyingKey, small_sections: Sections
) -> None:
    with new_writer(tmp_path / "whole") as writer:
        write_all(writer, small_sections, 3)
    alone = tmp_path / "new" / "alone"
    assert written_alone(alone, small_key) == [alone / "toy.vk", alone / "toy.meta"]
    for name in ("toy.insecure-dev.json", "toy.meta", "toy.vk"):
        assert (alone / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(list(alone.iterdir())) == 3
    written_alone(tmp_path / "whole", small_key)  # to the same parameters it belongs


def test_a_key_is_not_put_beside_parameters_of_another(
    tmp_path: Path, new_writer: NewWriter, small_key: VerifyingKey, small_sections: Sections
) -> None:
    with new_writer(tmp_path) as writer:
        write_all(writer, small_sections, 3)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    other = replace(small_key, alpha_g1=small_key.beta_g1)
    with pytest.raises(ParameterError, match="parameters of another key") as raised:
        written_alone(tmp_path, other)
    assert raised.value.where == str(tmp_path / "toy.params")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that says it is full when what was written must be on it."""

    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer_module.os, "fsync", fsync)


def test_a_key_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, small_key: VerifyingKey, full_disk: None
) -> None:
    with pytest.raises(ResourceError, match="the disk is full"):
        written_alone(tmp_path, small_key)
    assert list(tmp_path.iterdir()) == []


def test_random_trapdoors_are_not_stored(
    tmp_path: Path, new_writer: NewWriter, small_sections: Sections
) -> None:
    with new_writer(tmp_path, given_trapdoors=None) as writer:
        write_all(writer, small_sections, 3)
    assert json.loads((tmp_path / "toy.insecure-dev.json").read_bytes())["trapdoors"] == "random"


def test_files_are_readable_as_the_umask_says(
    tmp_path: Path, new_writer: NewWriter, small_sections: Sections
) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    with new_writer(tmp_path / "out") as writer:
        write_all(writer, small_sections, 3)
    assert {file.stat().st_mode for file in (tmp_path / "out").iterdir()} == {ordinary.stat().st_mode}


def test_a_section_without_points_has_its_count(tmp_path: Path, small_key: VerifyingKey) -> None:
    counts = PointCounts(ic=2, h=0, l=1, a=0, b=0)
    with ParameterWriter(tmp_path, "bare", small_key, counts, sector_bytes=0, given_trapdoors=None) as writer:
        writer.write("l", np.ones((1, 96), dtype=np.uint8))
    expected = small_key.to_bytes() + bytes(4) + b"\0\0\0\1" + b"\1" * 96 + bytes(12)
    assert (tmp_path / "bare.params").read_bytes() == expected


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_an_interruption_leaves_nothing_behind(
    error: type[BaseException], tmp_path: Path, new_writer: NewWriter, small_sections: Sections
) -> None:
    with pytest.raises(error), new_writer(tmp_path) as writer:
        writer.write("h", small_sections["h"])
        assert any(tmp_path.iterdir())
        raise error
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_older_files_as_they_were(
    tmp_path: Path, new_writer: NewWriter, small_sections: Sections
) -> None:
    with new_writer(tmp_path) as writer:
        write_all(writer, small_sections, 3)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(KeyboardInterrupt), new_writer(tmp_path, given_trapdoors=None) as writer:
        writer.write("h", small_sections["h"])
        raise KeyboardInterrupt
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_too_little_room_is_refused_before_anything_is_written(
    tmp_path: Path, new_writer: NewWriter, small_counts: PointCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10**9, 10**9, 1234))
    with pytest.raises(ResourceError, match=r"bytes are needed and 1,234 are free") as raised:
        new_writer(tmp_path)
    assert raised.value.where == str(tmp_path) and list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_leaves_nothing_behind(
    tmp_path: Path, new_writer: NewWriter, small_sections: Sections, full_disk: None
) -> None:
    with pytest.raises(ResourceError, match="the disk is full"), new_writer(tmp_path) as writer:
        write_all(writer, small_sections, 3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_write_to_a_full_disk_is_a_resource_error(
    tmp_path: Path, new_writer: NewWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    open_it = Path.open
    monkeypatch.setattr(Path, "open", lambda path, mode, **kw: open_it(full, "r+b", **kw))
    with pytest.raises(ResourceError, match="the disk is full"), new_writer(tmp_path / "out"):
        pass
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, new_writer: NewWriter) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match="cannot be written"):
        new_writer(tmp_path / "file" / "folder")


def test_sections_come_complete_and_in_order(
    tmp_path: Path, new_writer: NewWriter, small_sections: Sections
) -> None:
    with pytest.raises(AssertionError), new_writer(tmp_path) as writer:
        writer.write("l", small_sections["l"])
    with pytest.raises(AssertionError, match="not complete"), new_writer(tmp_path) as writer:
        writer.write("h", small_sections["h"])
    assert list(tmp_path.iterdir()) == []
