"""Files that are whole or absent, whatever interrupts, and what killed processes leave."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cuzk.whole_files import NewFile, replace_whole

ROOT = Path(__file__).resolve().parents[1]
#: A process that has begun the file argv[1], says so, and waits to be killed or told to end.
BEGIN = """
import sys
from pathlib import Path
from cuzk.whole_files import NewFile
new = NewFile(Path(sys.argv[1]))
new.write(b"half of ")
print("begun", flush=True)
sys.stdin.readline()
new.write(b"it")
new.take_place()
new.close()
"""


def begin(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_parts_follow_each_other_and_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in ([b"one"], [b"t", memoryview(b"wo"), b""], []):
        replace_whole(path, content)
        assert path.read_bytes() == b"".join(content)
    assert names(tmp_path) == ["file"]


def test_an_interruption_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), closing(NewFile(path)) as new:
        new.write(b"new")
        new.sync()
        raise KeyboardInterrupt
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["file"])


def test_the_file_stands_there_when_it_takes_its_place_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with closing(NewFile(path)) as new:
        new.write(b"new")
        assert not path.exists() and len(names(tmp_path)) == 1
        new.take_place()
        assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_what_a_killed_process_left_is_removed_by_the_next_writer_of_that_file_only(tmp_path: Path) -> None:
    with begin(tmp_path / "file") as killed, begin(tmp_path / "other") as other:
        killed.kill()
        other.kill()
    assert len(names(tmp_path)) == 2
    replace_whole(tmp_path / "file", [b"new"])
    [left, new] = names(tmp_path)
    assert left.startswith(".other.") and new == "file"


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with begin(path) as writing:
        replace_whole(path, [b"new"])
        assert len(names(tmp_path)) == 2
        writing.communicate("\n")
    assert writing.returncode == 0
    assert (path.read_bytes(), names(tmp_path)) == (b"half of it", ["file"])


@pytest.mark.parametrize("name", [".file.tmp", ".file.12-3456789.tmp", ".file.x.12-34567890.tmp", "file.tmp"])
def test_files_that_are_no_leftovers_stay(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    replace_whole(tmp_path / "file", [b"new"])
    assert (tmp_path / name).exists()


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        NewFile(tmp_path / "none" / "file")


def test_a_disk_that_is_full_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_whole(tmp_path / "file", [b"new"])
    assert names(tmp_path) == []
