"""Log lines: the form that scripts know, one line a record whatever it says, levels by target."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from cuzk.events import Notice, StageDone, StageStarted
from cuzk.server.directives import parse_directives
from cuzk.server.log import Log, hear, set_up


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    monkeypatch.delenv("RUST_LOG", raising=False)
    before = logging.getLogger().handlers[:], logging.getLogger().level
    yield io.StringIO()
    logging.getLogger().handlers[:], level = before
    logging.getLogger().setLevel(level)
    for name in ("cuzk_core", "cuzk_server"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_line_is_that_of_curios_daemon(stream: io.StringIO) -> None:
    set_up("info", stream=stream)
    Log("cuzk_core.scheduler").info("job enqueued", job_id="porep-1000-7", queue_position=0)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z  INFO cuzk_core::scheduler: job enqueued"
        r" job_id=porep-1000-7 queue_position=0\n",
        stream.getvalue(),
    )


def test_whatever_is_said_stays_one_line(stream: io.StringIO) -> None:
    set_up("info", stream=stream)
    Log("a").warn("two\nlines", job_id='wdpost-1-[1 2]\n"x"', empty="")
    assert stream.getvalue().endswith(r'  WARN a: two\nlines job_id="wdpost-1-[1 2]\n\"x\"" empty=""' + "\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_what_a_client_calls_its_job_steers_no_terminal(as_json: bool, stream: io.StringIO) -> None:
    set_up("info", as_json=as_json, stream=stream)
    name = "\x1b]0;owned\x07\x1b[2J\x7f\x9b2J\u202e\u2028\ud800\x00"
    Log("a").info(f"done {name}", job_id=name, plain="wdpost-é")
    said = stream.getvalue()
    assert said.endswith("\n") and said[:-1].isprintable()
    assert said.count(r"\u001b]0;owned\u0007\u001b[2J\u007f\u009b2J\u202e\u2028\ud800\u0000") == 2
    assert as_json or said.endswith(" plain=wdpost-é\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_text_of_any_length_is_a_short_line(as_json: bool, stream: io.StringIO) -> None:
    set_up("info", as_json=as_json, stream=stream)
    Log("a").info("AwaitProof", job_id="x" * 100_000)
    assert "xx..." in stream.getvalue() and len(stream.getvalue()) < 5000


def test_json_lines_hold_the_same(stream: io.StringIO) -> None:
    set_up("info", as_json=True, stream=stream)
    Log("cuzk_server.service").error("Prove refused", error=ValueError("x"), number=3)
    facts = json.loads(stream.getvalue())
    assert facts.pop("timestamp").endswith("Z")
    said = {"target": "cuzk_server::service", "message": "Prove refused", "error": "x", "number": 3}
    assert facts == {"level": "ERROR", **said}


def test_levels_go_by_target_and_rust_log_wins_where_it_makes_sense(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUST_LOG", "warn,cuzk_core=debug")
    set_up("error", stream=stream)
    Log("cuzk_core.engine").debug("heard")
    Log("cuzk_server.service").info("unheard")
    Log("cuzk_server.service").warn("heard too")
    assert [line.split(": ")[1] for line in stream.getvalue().splitlines()] == ["heard", "heard too"]
    monkeypatch.setenv("RUST_LOG", "nonsense=")
    set_up("error", stream=stream)
    assert logging.getLogger().level == logging.ERROR


@pytest.mark.parametrize("text", ["loud", "info,x=loud", "=info", ""])
def test_what_is_no_level_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no level"):
        parse_directives(text)


def test_colours_are_for_terminals_alone(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    set_up("info", stream=stream)
    Log("a").info("b")
    assert "\x1b[32m" in stream.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    set_up("info", stream=stream)
    Log("a").info("plain")
    assert stream.getvalue().splitlines()[-1].endswith(" INFO a: plain")


def test_long_work_is_said_when_it_begins_and_ends(stream: io.StringIO) -> None:
    set_up("info", stream=stream)
    for event in (
        StageStarted(name="circuit"),
        StageDone(name="circuit", seconds=1.25),
        Notice(level="warning", text="development parameters"),
    ):
        hear(event)
    said = [line.partition("cuzk_core::engine: ")[2] for line in stream.getvalue().splitlines()]
    assert said == ["circuit begins", "circuit done seconds=1.2", "development parameters"]


def test_off_is_silence(stream: io.StringIO) -> None:
    set_up("off", stream=stream)
    Log("cuzk_server.service").error("Prove refused")
    logging.getLogger().critical("even this")
    assert stream.getvalue() == ""
