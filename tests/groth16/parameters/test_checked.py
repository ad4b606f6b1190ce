"""The record of checked files: what it remembers, when it forgets, and that it is never needed."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from cuzk.errors import ParameterError
from cuzk.groth16.parameters import checked as checked_module
from cuzk.groth16.parameters.checked import CheckedFiles, RecordWarning
from cuzk.groth16.parameters.manifest import ManifestEntry


@pytest.fixture
def params(tmp_path: Path) -> Path:
    path = tmp_path / "toy.params"
    path.write_bytes(b"points")
    return path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "record.json"


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read whole."""
    seen: list[Path] = []
    digest = checked_module.file_digest

    def counting(path: Path, progress=None) -> str:
        seen.append(path)
        return digest(path, progress)

    monkeypatch.setattr(checked_module, "file_digest", counting)
    return seen


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data).hexdigest()[:32]


def test_digest_is_taken_once_and_known_to_the_next_process(
    params: Path, record: Path, readings: list[Path]
) -> None:
    assert CheckedFiles(record).digest(params) == digest_of(b"points")
    assert CheckedFiles(record).digest(params) == digest_of(b"points")
    assert readings == [params]


def test_a_relative_path_is_the_same_file(
    params: Path, record: Path, readings: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    CheckedFiles(record).digest(params)
    monkeypatch.chdir(params.parent)
    CheckedFiles(record).digest(Path(params.name))
    assert len(readings) == 1


def test_a_changed_file_is_read_again(params: Path, record: Path, readings: list[Path]) -> None:
    files = CheckedFiles(record)
    files.digest(params)
    params.write_bytes(b"longer points")
    assert files.digest(params) == digest_of(b"longer points")
    assert len(readings) == 2


def test_a_replaced_file_of_the_same_size_and_time_is_read_again(params: Path, record: Path) -> None:
    files = CheckedFiles(record)
    files.digest(params)
    before = params.stat()
    replacement = params.with_name("other")
    replacement.write_bytes(b"POINTS")
    os.utime(replacement, ns=(before.st_atime_ns, before.st_mtime_ns))
    replacement.replace(params)
    assert files.digest(params) == digest_of(b"POINTS")


def test_points_and_digest_are_remembered_beside_each_other(params: Path, record: Path) -> None:
    files = CheckedFiles(record)
    assert not files.of(params).points_checked
    files.digest(params)
    files.points_are_good(params, as_of=files.of(params))
    known = CheckedFiles(record).of(params)
    assert known.points_checked and known.digest == digest_of(b"points")


def test_a_file_that_changes_while_it_is_checked_is_not_taken_as_checked(params: Path, record: Path) -> None:
    files = CheckedFiles(record)
    before = files.of(params)
    params.write_bytes(b"other points")
    files.points_are_good(params, as_of=before)
    assert not files.of(params).points_checked


def test_published_digest_is_required(params: Path, record: Path) -> None:
    good = ManifestEntry(name=params.name, cid="", digest=digest_of(b"points"), sector_bytes=0)
    CheckedFiles(record).require_digest(params, good)
    params.write_bytes(b"Points")
    with pytest.raises(ParameterError, match="the manifest contradicts the file") as raised:
        CheckedFiles(record).require_digest(params, good)
    assert raised.value.where == str(params)


BROKEN = {
    "empty": b"",
    "no_json": b"{",
    "not_utf8": b"\xff\xfe",
    "a_list": b"[]",
    "null": b"null",
    "no_version": b"{}",
    "files_is_a_list": b'{"version": 1, "files": []}',
    "an_entry_is_a_number": b'{"version": 1, "files": {"/x": 3}}',
    "an_entry_lacks_fields": b'{"version": 1, "files": {"/x": {"size": 3}}}',
    "a_size_is_text": b'{"version": 1, "files": {"/x": {"size": "3", "mtime_ns": 1, "inode": 1, '
    b'"digest": null, "points_checked": false}}}',
    "a_digest_is_a_number": b'{"version": 1, "files": {"/x": {"size": 3, "mtime_ns": 1, "inode": 1, '
    b'"digest": 4, "points_checked": false}}}',
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_record_is_a_warning_and_begun_anew(name: str, params: Path, record: Path) -> None:
    record.parent.mkdir()
    record.write_bytes(BROKEN[name])
    with pytest.warns(RecordWarning, match="begun anew"):
        assert CheckedFiles(record).digest(params) == digest_of(b"points")
    assert CheckedFiles(record).of(params).digest == digest_of(b"points")  # whole again, and no warning


def test_a_record_of_another_version_is_begun_anew(params: Path, record: Path, readings: list[Path]) -> None:
    CheckedFiles(record).digest(params)
    content = json.loads(record.read_bytes())
    record.write_text(json.dumps({**content, "version": content["version"] + 1}))
    CheckedFiles(record).digest(params)
    assert len(readings) == 2


def test_a_record_that_cannot_be_written_is_a_warning(params: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(RecordWarning):
        assert CheckedFiles(tmp_path / "file" / "record.json").digest(params) == digest_of(b"points")


def test_a_missing_file_is_refused(tmp_path: Path, record: Path) -> None:
    with pytest.raises(ParameterError, match="missing"):
        CheckedFiles(record).digest(tmp_path / "none.params")
    assert not record.exists()


def test_record_lies_in_the_cache_folder(
    params: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    CheckedFiles().digest(params)
    assert [file.name for file in (tmp_path / "xdg" / "cuzk").iterdir()] == ["checked-parameters.json"]
