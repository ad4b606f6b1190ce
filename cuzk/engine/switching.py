"""How soon Python's threads take turns while an engine is at work.

After each call of its device's driver a worker needs Python's lock again, dozens of times a proof, and the
device waits with it. Whoever computes in Python keeps the lock for `sys.getswitchinterval()`, 5 ms unless
somebody says otherwise; where several compute, each in its turn.

Eight made-up cards (`bench.many_cards`: 805 ms of kernels, 41 ms of Python a partition; two cores) run
kernels 93.8 % of the time with 5 ms, and pause for up to 244 ms in a proof; with 1 ms it is 96.6 % and 178
ms, with 0.5 ms 96.9 % and 109 ms, with 0.2 ms 97.7 % and 56 ms. Three threads that do nothing but compute in
Python lose 2 % with 1 ms, 5 % with 0.5 ms and 10 % with 0.2 ms, but seldom do so many.
"""

from __future__ import annotations

import sys
import threading

INTERVAL_S = 0.0005
_HALF_A_US = 0.5e-6


class ShortTurns:
    """From its making to `close` the interval is a short one; it is the process's, so all engines share it.

    The last to close puts back what the first found, in whatever order they close; but nothing that somebody
    else has set meanwhile is changed, nor is a shorter interval made longer.
    """

    _lock = threading.Lock()
    _open = 0  # of this process; guarded by _lock, as is all below
    _found_s = _ours_s = 0.0

    def __init__(self) -> None:
        shared = ShortTurns
        with shared._lock:
            self._is_open = True
            shared._open += 1
            if shared._open == 1:
                shared._found_s = sys.getswitchinterval()
                _set(min(shared._found_s, INTERVAL_S))
                shared._ours_s = sys.getswitchinterval()

    def close(self) -> None:
        """Any number of times."""
        shared = ShortTurns
        with shared._lock:
            if not self._is_open:
                return
            self._is_open = False
            shared._open -= 1
            if not shared._open and sys.getswitchinterval() == shared._ours_s:
                _set(shared._found_s)


def _set(seconds: float) -> None:
    """Python cuts it to whole microseconds: 50 us, as it gives them back, would become 49."""
    sys.setswitchinterval(seconds + _HALF_A_US)
