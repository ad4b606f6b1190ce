"""Ctrl-C, a polite kill and a terminal that goes away end work in one way: temporary files are removed.

The exception must not be raised where Python would print and forget it: in `__del__`, and in what LLVM calls
back while it loads a kernel, after which it goes on with half an answer, or aborts the process.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: After so long a signal that came at a bad moment comes again: such moments are short.
AGAIN_S = 0.01
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LLVMLITE = f"{os.sep}llvmlite{os.sep}"


@contextmanager
def as_exceptions() -> Iterator[None]:
    """Inside of it they are KeyboardInterrupt, with the signal's number but for Ctrl-C. For the main thread.

    Signals that somebody else handles, or ignores, are left alone.
    """
    is_over = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _is_swallowed_in(frame):
            later = threading.Timer(AGAIN_S, again, [number])
            later.daemon = True
            later.start()
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise KeyboardInterrupt(number)

    def again(number: int) -> None:
        if not is_over:
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    before = {number: signal.getsignal(number) for number in _ENDING}
    ours = [number for number, did in before.items() if did in (signal.SIG_DFL, signal.default_int_handler)]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        is_over = True
        for number in ours:
            signal.signal(number, before[number])


def _is_swallowed_in(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or _LLVMLITE in code.co_filename:
            return True
        frame = frame.f_back
    return False
