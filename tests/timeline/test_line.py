"""One line, both ways; and lines that others cut into."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.timeline.line import EVENTS, Event, format_line, parse_line, values_of

ID = "df703017-04c9-478d-82b3-359986048719"


def test_a_line_of_the_daemon_is_read_field_by_field() -> None:
    line = f"TIMELINE,61512,GPU_END,{ID},worker=1,partition=5,gpu_ms=3564\n"
    assert parse_line(line) == [Event(61512, "GPU_END", ID, 5, 1, None, "worker=1,partition=5,gpu_ms=3564")]


def test_the_older_name_of_queueing_is_read_as_the_newer() -> None:
    [event] = parse_line("TIMELINE,1,CHAN_SEND,j,partition=0\n")
    assert event is not None and event.name == "GPU_QUEUE"


@pytest.mark.parametrize(
    ("line", "job", "numbers"),
    [
        ("TIMELINE,7,GPU_QUEUE,winpost-1000-00ff,monolithic", "winpost-1000-00ff", (None, None)),
        ("TIMELINE,7,SYNTH_START,w,kind=Window PoSt", "w", (None, None)),
        ("TIMELINE,7,GPU_PICKUP,wdpost-1-0-[1 2 3],worker=3", "wdpost-1-0-[1 2 3]", (None, 3)),
        ("2026-02-18 host cuzk[7]: TIMELINE,7,SYNTH_START,j,partition=2", "j", (2, None)),
        ("TIMELINE,7,ASSEMBLED,j,", "j", (None, None)),
        ("TIMELINE,7,GPU_END,j,worker=1,partition=2,gpu_CUZK_TIMING: prep_msm_ms=8", "j", (2, 1)),
    ],
)
def test_other_forms_are_understood(line: str, job: str, numbers: tuple[int | None, int | None]) -> None:
    [event] = parse_line(line)
    assert event is not None
    assert (event.offset_ms, event.job, (event.partition, event.worker)) == (7, job, numbers)


@pytest.mark.parametrize(
    "line",
    [
        "TIMELINE,",
        "TIMELINE,12",
        "TIMELINE,12,GPU_END",
        "TIMELINE,12,GPU_END,df703017-04c9",
        "TIMELINE,-1,GPU_END,j,worker=0,partition=1",
        "TIMELINE,12CUZK_TIMING: a=1",
        "TIMELINE,1 2,GPU_END,j,worker=0,partition=1",
        "TIMELINE,\u0661\u0662,GPU_END,j,worker=0,partition=1",
        "TIMELINE,12,GPU END,j,worker=0,partition=1",
        "TIMELINE,12,GPU_END,j,worker=0,parti",
        "TIMELINE,12,GPU_END,j,worker=0,partition=",
        "TIMELINE,12,GPU_END,j,worker=0,partition=5CUZK_TIMING: a=1",
        "TIMELINE,12,GPU_END,j,worker=0,CUZK_NTT_H: d_b_alloc=3ms,partition=1",
        "TIMELINE,12,GPU_END,j,",
        "TIMELINE,12,GPU_END,j,worker=\u0663,partition=1",
        "TIMELINE," + "9" * 400 + ",GPU_END,j,worker=0,partition=1",
    ],
)
def test_a_garbled_line_is_no_event(line: str) -> None:
    assert parse_line(line + "\n") == [None]


def test_lines_that_ran_together_are_told_apart() -> None:
    cut, others = "TIMELINE,1,SYNTH_END,a,partition=", "partition=3TIMELINE,3,GPU_QUEUE,a,partition=4\n"
    first, second, third = parse_line(f"{cut}TIMELINE,2,SYNTH_START,b,{others}")
    assert first is None
    assert second == Event(2, "SYNTH_START", "b", 3, None, None, "partition=3")
    assert third == Event(3, "GPU_QUEUE", "a", 4, None, None, "partition=4")


#: Characters that end fields or lines somewhere, and the sign that escapes.
TRICKY = st.text(
    st.sampled_from("a ,=%\n\r\x1b\x7f\x9b[]TIMELINE25C0AD\u2028é") | st.characters(codec="utf-8")
)


@given(
    offset=st.integers(0, 10**15 - 1),
    name=st.sampled_from(sorted(EVENTS)),
    job=TRICKY,
    partition=st.integers(0, 10**6),
    worker=st.none() | st.integers(0, 99),
    device=st.none() | st.integers(0, 99),
    reason=TRICKY,
)
def test_whatever_is_written_is_read_back(
    offset: int, name: str, job: str, partition: int, worker: int | None, device: int | None, reason: str
) -> None:
    numbers = {"worker": worker, "partition": partition, "device": device}
    detail = {key: value for key, value in numbers.items() if value is not None}
    line = format_line(offset, name, job, {**detail, "reason": reason})
    assert line.endswith("\n") and not any(unicodedata.category(sign) == "Cc" for sign in line[:-1])
    [event] = parse_line(line)
    assert event is not None
    assert event[:6] == (offset, name, job, partition, worker, device)
    assert values_of(event.detail) == {**{key: str(value) for key, value in detail.items()}, "reason": reason}


def test_lines_are_written_as_the_daemon_writes_them() -> None:
    detail = {"worker": 0, "partition": 5, "gpu_ms": 3564}
    assert format_line(61512, "GPU_END", ID, detail) == (
        f"TIMELINE,61512,GPU_END,{ID},worker=0,partition=5,gpu_ms=3564\n"
    )
