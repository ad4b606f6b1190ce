"""The interval at which threads take turns: short while an engine is open, then what it was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from cuzk.engine.pipeline import DevicePlace, Pipeline
from cuzk.engine.switching import INTERVAL_S
from tests.engine.fakes import FakeWork

FOUND_S = 0.0073


@pytest.fixture(autouse=True)
def interval_before() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(FOUND_S)
    yield
    sys.setswitchinterval(before)


def interval() -> float:
    return round(sys.getswitchinterval(), 6)


def engine() -> Pipeline:
    return Pipeline([DevicePlace(name="cuda:0", memory_bytes=1 << 20)], host_bytes=1 << 20)


def test_threads_take_turns_quickly_while_an_engine_is_open() -> None:
    with engine() as one:
        assert interval() == INTERVAL_S < FOUND_S
        job = one.submit(FakeWork("a"))
        assert job.wait(30) is not None and interval() == INTERVAL_S
    assert interval() == FOUND_S


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_of_several_engines_puts_back_what_the_first_found(first: int) -> None:
    engines = [engine(), engine()]
    assert engines[first].close() and interval() == INTERVAL_S
    assert engines[first].close() and interval() == INTERVAL_S, "closing twice counts once"
    assert engines[1 - first].close() and interval() == FOUND_S
    with engine():
        assert interval() == INTERVAL_S
    assert interval() == FOUND_S


def test_an_engine_that_could_not_start_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    start, begun = threading.Thread.start, list[threading.Thread]()

    def second_fails(thread: threading.Thread) -> None:
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", second_fails)
    with pytest.raises(RuntimeError, match="new thread"):
        engine()
    assert interval() == FOUND_S
    begun[0].join(30)
    assert not begun[0].is_alive(), "a thread of an engine that nobody has goes on"


def test_what_somebody_else_sets_meanwhile_stays() -> None:
    with engine():
        sys.setswitchinterval(0.002)
    assert interval() == 0.002


def test_a_shorter_interval_is_left_alone() -> None:
    sys.setswitchinterval(0.00005)
    shorter = sys.getswitchinterval()
    for _ in range(3):
        with engine():
            assert sys.getswitchinterval() == shorter
    assert sys.getswitchinterval() == shorter


def test_an_engine_that_is_not_done_closing_keeps_it_short() -> None:
    until = threading.Event()

    def wait(partition: int) -> None:
        until.wait(30)

    one = engine()
    try:
        job = one.submit(FakeWork("a", preparing=wait))
        assert not one.close(timeout_s=0.01) and interval() == INTERVAL_S
    finally:
        until.set()
    assert one.close() and interval() == FOUND_S
    assert job.wait(0) is not None
