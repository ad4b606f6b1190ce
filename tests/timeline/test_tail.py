"""Lines of a file that grows, is cut short, is replaced, or comes through a pipe."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cuzk.errors import InputError
from cuzk.timeline.tail import lines_as_they_come


def followed(path: Path, *changes: Callable[[], object], looks: int = 1) -> list[str]:
    """The lines that come while one change after another is made, each after so many empty looks."""
    todo, seen, empty = list(changes), list[str](), 0
    for lines in lines_as_they_come(path, sleep=lambda seconds: None):
        seen += lines
        empty = 0 if lines else empty + 1
        if empty == looks:
            empty = 0
            if not todo:
                return seen
            todo.pop(0)()
    return seen


def append(path: Path, data: bytes) -> Callable[[], object]:
    def change() -> None:
        with path.open("ab") as file:
            file.write(data)

    return change


def test_whole_lines_come_as_they_are_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"a\nb")
    assert followed(log, append(log, b"c\nd\n"), append(log, b"e"), append(log, b"\xff\n")) == [
        "a", "bc", "d", "e\ufffd",
    ]  # fmt: skip


def test_a_file_that_is_cut_short_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"old 1\nold 2\n")
    assert followed(log, lambda: log.write_bytes(b"new\n")) == ["old 1", "old 2", "new"]


def test_a_file_that_another_takes_the_place_of_is_left_for_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"old\n")

    def rotate() -> None:
        log.rename(tmp_path / "log.1")

    def begin() -> None:
        log.write_bytes(b"a new one, longer\n")

    assert followed(log, rotate, begin) == ["old", "a new one, longer"]


@pytest.mark.parametrize("name", ["none", "."])
def test_what_cannot_be_read_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the log cannot be read"):
        next(lines_as_they_come(tmp_path / name))


def test_a_gzip_file_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.gz"
    log.write_bytes(gzip.compress(b"TIMELINE,1,GPU_START,j,worker=0\n"))
    with pytest.raises(InputError, match="is not written any more"):
        next(lines_as_they_come(log))


def test_standard_input_ends_with_its_writer_and_the_last_line_needs_no_end() -> None:
    script = (
        "from pathlib import Path\nfrom cuzk.timeline.tail import lines_as_they_come\n"
        "for lines in lines_as_they_come(Path('-'), poll_s=0.01): print(lines, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"[]\n"  # nothing yet
        os.write(process.stdin.fileno(), b"a\nb")
        assert set(iter(process.stdout.readline, b"['a']\n")) <= {b"[]\n"}
        process.stdin.close()
        assert process.stdout.readlines()[-1] == b"['b']\n"
    assert process.returncode == 0
