"""Where parameters are found, and what they are taken for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cuzk.errors import ParameterError
from cuzk.groth16.parameters import locate, manifest
from cuzk.groth16.parameters.development import MARK_SUFFIX, mark_content
from cuzk.groth16.parameters.locate import Found, find_parameters, find_verifying_key
from cuzk.groth16.parameters.manifest import ManifestEntry
from cuzk.groth16.parameters.verifying_key import VerifyingKey

STEM = "v28-toy"
TOY: Any = SimpleNamespace(kind="porep-c2", name="2KiB", parameter_stem=STEM)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of nobody, so that the tests see no parameters of this machine."""
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(locate, "USUAL_FOLDER", tmp_path / "usual")
    return tmp_path


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch):
    """publish(digest) puts the toy into the manifest, with this digest of its key."""

    def entries(digest: str) -> None:
        found = {
            f"{STEM}.{suffix}": ManifestEntry(name="", cid="", digest=digest, sector_bytes=0)
            for suffix in ("params", "vk")
        }
        monkeypatch.setattr(manifest, "_entries", lambda: found)

    return entries


def place(folder: Path, key: VerifyingKey, *, marked_for: VerifyingKey | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{STEM}.params"
    path.write_bytes(key.to_bytes() + bytes(20))
    (folder / f"{STEM}.vk").write_bytes(key.to_bytes())
    if marked_for is not None:
        (folder / (STEM + MARK_SUFFIX)).write_bytes(mark_content(marked_for, None))
    return path


def find(explicit: Path | None = None) -> Found:
    found = find_parameters(TOY, explicit=explicit)
    key = find_verifying_key(TOY, explicit=explicit)
    assert key.path == found.path.with_suffix(".vk")
    assert (key.key, key.is_development) == (found.key, found.is_development)
    return found


def test_folders_are_searched_in_order(
    home: Path, small_key: VerifyingKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    explicit, variable = home / "explicit", home / "variable"
    explicit.mkdir()
    monkeypatch.setenv("FIL_PROOFS_PARAMETER_CACHE", str(variable))
    order = [explicit, variable, home / "usual", home / "data" / "cuzk" / "parameters"]
    assert list(locate.search_folders(explicit)) == order
    for folder in reversed(order):  # each comes before those that are there already
        assert find_after_placing(folder, small_key, explicit).parent == folder


def find_after_placing(folder: Path, key: VerifyingKey, explicit: Path) -> Path:
    place(folder, key)
    return find(explicit).path


def test_published_key_makes_it_published(home: Path, small_key: VerifyingKey, publish) -> None:
    publish(small_key.digest)
    place(home / "usual", small_key)
    assert not find().is_development


def test_another_key_in_our_own_folder_is_for_development(
    home: Path, small_key: VerifyingKey, publish
) -> None:
    publish("0" * 32)
    place(home / "data" / "cuzk" / "parameters", small_key)
    assert find().is_development


def test_another_key_with_the_mark_is_for_development(home: Path, small_key: VerifyingKey, publish) -> None:
    publish("0" * 32)
    place(home / "usual", small_key, marked_for=small_key)
    assert find().is_development


def test_a_name_that_is_not_published_is_for_development(home: Path, small_key: VerifyingKey) -> None:
    place(home / "usual", small_key)
    assert find().is_development


def test_a_mark_left_behind_does_not_make_published_parameters_development(
    home: Path, small_key: VerifyingKey, upstream_key_path: Path, publish
) -> None:
    older = VerifyingKey.from_bytes(upstream_key_path.read_bytes(), where="")
    publish(small_key.digest)
    place(home / "usual", small_key, marked_for=older)
    assert not find().is_development


@pytest.mark.parametrize("mark", [None, b"", b"[]", b"{}", b"\xff", b'{"verifying_key_digest": 3}'])
def test_another_key_without_a_mark_of_its_own_contradicts_the_manifest(
    mark: bytes | None, home: Path, small_key: VerifyingKey, publish
) -> None:
    publish("0" * 32)
    path = place(home / "usual", small_key)
    if mark is not None:
        (home / "usual" / (STEM + MARK_SUFFIX)).write_bytes(mark)
    for search in (find_parameters, find_verifying_key):
        with pytest.raises(ParameterError, match="the manifest contradicts the file") as raised:
            search(TOY)
        assert raised.value.where is not None and raised.value.where.startswith(str(path.with_suffix("")))


def test_missing_parameters_name_folders_and_commands(
    home: Path, publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("0" * 32)
    monkeypatch.setenv("FIL_PROOFS_PARAMETER_CACHE", str(home / "variable"))
    with pytest.raises(ParameterError, match=rf"{STEM}\.params is missing") as raised:
        find_parameters(TOY)
    for folder in ("variable", "usual", "data/cuzk/parameters"):
        assert str(home / folder) in str(raised.value.where)
    assert "cuzk params fetch --kind porep --sector-size 2KiB" in str(raised.value.next)
    assert "cuzk params generate --kind porep --sector-size 2KiB --insecure-dev" in str(raised.value.next)


def test_missing_unpublished_parameters_can_only_be_generated() -> None:
    with pytest.raises(ParameterError, match="is missing") as raised:
        find_verifying_key(TOY)
    assert "params generate" in str(raised.value.next) and "fetch" not in str(raised.value.next)


def test_a_folder_that_does_not_exist_is_not_passed_over(home: Path, small_key: VerifyingKey) -> None:
    place(home / "usual", small_key)
    with pytest.raises(ParameterError, match="no such folder"):
        find_parameters(TOY, explicit=home / "mistyped")


@pytest.mark.parametrize(("content", "reason"), [(b"", "empty"), (b"\0" * 900, "count of ic")])
def test_a_damaged_file_is_not_passed_over(
    content: bytes, reason: str, home: Path, small_key: VerifyingKey
) -> None:
    place(home / "usual", small_key).write_bytes(content)
    place(home / "data" / "cuzk" / "parameters", small_key)
    with pytest.raises(ParameterError, match=reason):
        find_parameters(TOY)
