"""Signals that end work, at moments when an exception would be lost."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from cuzk.cli.signals import as_exceptions

PATIENCE_S = 30


def told_to_end(number: int) -> None:
    os.kill(os.getpid(), number)


def dropped(number: int) -> None:
    """In `__del__`."""

    class Held:
        def __del__(self) -> None:
            told_to_end(number)
            for _ in range(100):  # whose steps are where Python looks for signals
                pass

    held = Held()
    del held


def called_back(number: int) -> None:
    """In a function of llvmlite that C calls."""
    space: dict[str, Any] = {"told_to_end": told_to_end}
    source = f"def notify():\n    told_to_end({number})\n    for _ in range(100):\n        pass\n"
    exec(compile(source, os.path.join(os.sep, "x", "llvmlite", "binding", "engine.py"), "exec"), space)
    ctypes.CFUNCTYPE(None)(space["notify"])()


@pytest.mark.parametrize("work", [told_to_end, dropped, called_back])
@pytest.mark.parametrize(
    ("number", "arguments"), [(signal.SIGINT, ()), (signal.SIGTERM, (15,)), (signal.SIGHUP, (1,))]
)
def test_a_signal_ends_work_wherever_it_comes(
    work: Callable[[int], None],
    number: int,
    arguments: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt) as raised, as_exceptions():
        work(number)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            time.sleep(0.01)
    assert raised.value.args == arguments
    assert lost == []
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with as_exceptions():
            told_to_end(signal.SIGHUP)
            time.sleep(0.05)
    finally:
        signal.signal(signal.SIGHUP, before)
