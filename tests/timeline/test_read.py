"""Logs as they come: among other lines, out of order, gzipped, cut off, several runs in one file."""

from __future__ import annotations

import gzip
import io
import random
import sys
from pathlib import Path

import pytest

from cuzk.errors import InputError
from cuzk.timeline.line import Event
from cuzk.timeline.read import read_log, split_runs
from tests.timeline.logs import call, log_of, synthesis, text

LINES = text(*synthesis(0, 10, 1), *call(12, 20, 1))


def read(tmp_path: Path, content: bytes) -> object:
    path = tmp_path / "engine.log"
    path.write_bytes(content)
    return read_log(path)


def test_a_file_plain_or_gzipped_gives_the_same(tmp_path: Path) -> None:
    assert read(tmp_path, LINES.encode()) == read(tmp_path, gzip.compress(LINES.encode()))


def test_standard_input_is_read_and_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(LINES.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    log = read_log(Path("-"))
    assert (log.name, log.counts.timeline) == ("standard input", 5)
    assert not stdin.buffer.closed


def test_line_ends_of_other_systems_and_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_bytes(LINES.replace("\n", "\r\n").encode() + b"\xff\xfe\x00 noise\n\nTIMELINE,30,SYNTH_ST")
    log = read_log(path)
    assert log.runs == log_of(*synthesis(0, 10, 1), *call(12, 20, 1)).runs
    counts = log.counts
    assert (counts.timeline, counts.other, counts.garbled, counts.unknown) == (5, 2, 1, {})


def test_events_of_later_versions_are_counted_by_name() -> None:
    log = log_of(*call(1, 2, 0), (3, "GPU_NAP", "j", "worker=0"), (4, "GPU_NAP", "j", "worker=0"))
    assert log.counts.unknown == {"GPU_NAP": 2} and log.counts.timeline == 2


@pytest.mark.parametrize(
    "line",
    [
        "2026 INFO engine: initializing GPU workers num_gpus=2 gpu_workers_per_device=3 total_workers=6",
        "\x1b[32m INFO\x1b[0m engine: \x1b[3mgpu_workers_per_device\x1b[0m\x1b[2m=\x1b[0m3",
    ],
)
def test_the_daemons_own_line_says_how_many_workers_a_gpu_has(line: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_text(line + "\n" + LINES)
    assert read_log(path).workers_per_gpu == 3
    assert log_of(*call(1, 2, 0)).workers_per_gpu is None


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "cannot be read: No such file"),
        (b"", "no timeline"),
        (b"2026-02-18 INFO ready\n", "no timeline"),
        (b"TIMELINE,1,GPU\nTIMELINE,2\n", "no timeline: 2 TIMELINE lines are all garbled"),
        (gzip.compress(LINES.encode())[:-9], "gzip file is truncated"),
        (gzip.compress(LINES.encode())[:20] + b"\x00" * 30, "gzip file is truncated or damaged"),
    ],
)
def test_a_log_without_a_timeline_is_refused(content: bytes | None, what: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert what in caught.value.what
    assert caught.value.where == str(path) and caught.value.next


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_log(tmp_path)


def test_the_order_of_lines_does_not_matter(vectors: Path, tmp_path: Path) -> None:
    """Of the whole log shuffled, too: a line that comes late is no new run."""
    path = vectors / "timeline" / "phase7.log"
    lines = path.read_text().splitlines(keepends=True)
    expected = read_log(path).runs
    assert len(expected) == 1
    for seed in range(5):
        random.Random(seed).shuffle(lines)
        shuffled = tmp_path / "shuffled.log"
        shuffled.write_text("".join(lines))
        [run] = read_log(shuffled).runs
        assert sorted(run) == sorted(expected[0])
        assert [event.offset_ms for event in run] == [event.offset_ms for event in expected[0]]


def test_an_engine_that_was_started_again_begins_a_new_run() -> None:
    """The first was killed: partition 2 was in synthesis and 1 on the GPU; the second begins both again."""
    first = [*synthesis(100, 30_000, 1), (30_100, "SYNTH_START", "j", "partition=2"), call(30_200, 0, 1)[0]]
    second = [
        (50, "SYNTH_START", "j", "partition=2"),
        (60, "SYNTH_START", "j", "partition=1"),
        (29_000, "SYNTH_END", "j", "partition=1"),
        (31_000, "SYNTH_END", "j", "partition=2"),
    ]
    runs = log_of(*first, *second).runs
    assert [[event.offset_ms for event in run] for run in runs] == [
        [100, 30_000, 30_000, 30_100, 30_200],
        [50, 60, 29_000, 31_000],
    ]


def test_logs_one_after_another_are_as_many_runs(vectors: Path, tmp_path: Path) -> None:
    content = (vectors / "timeline" / "phase7.log").read_text()
    path = tmp_path / "thrice.log"
    path.write_text(content * 3)
    once = read_log(vectors / "timeline" / "phase7.log").runs[0]
    assert [len(run) for run in read_log(path).runs] == [len(once)] * 3


def test_a_line_that_comes_seconds_late_is_no_new_run() -> None:
    events = [
        Event(0, "SYNTH_START", "j", 1, None, None, ""),
        Event(9_000, "SYNTH_END", "j", 1, None, None, ""),
        Event(1_000, "SYNTH_START", "j", 2, None, None, ""),  # late, while 1 goes on
        Event(9_001, "GPU_QUEUE", "j", 1, None, None, ""),
        Event(9_002, "SYNTH_END", "j", 2, None, None, ""),
    ]
    assert split_runs(events) == [events]
