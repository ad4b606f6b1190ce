"""Partitions one after another: the end of each beside the beginning of the next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from cuzk.errors import ProofError
from cuzk.proofs import proving
from cuzk.proofs.proving import overlapped

SOON_S = 20.0


def test_each_ends_while_the_next_is_computed_and_results_are_in_order() -> None:
    computing = [threading.Event() for _ in range(4)]

    def begin(k: int) -> Callable[[], str]:
        computing[k].set()

        def end() -> str:
            assert k == 3 or computing[k + 1].wait(SOON_S), "the next one waits for this one's end"
            return f"proof {k}"

        return end

    assert overlapped(range(4), begin) == [f"proof {k}" for k in range(4)]


def test_a_proof_that_does_not_hold_ends_the_work_as_soon_as_that_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ends = [], list[Future[str]]()

    class Noting(ThreadPoolExecutor):
        def submit(self, *given: Any) -> Any:
            ends.append(super().submit(*given))
            return ends[-1]

    def begin(k: int) -> Callable[[], str]:
        begun.append(k)
        if k == 2:
            assert isinstance(ends[1].exception(SOON_S), ProofError)  # now it is known

        def end() -> str:
            if k == 1:
                raise ProofError("it does not verify", where="partition 1")
            return "proof"

        return end

    monkeypatch.setattr(proving, "ThreadPoolExecutor", Noting)
    with pytest.raises(ProofError, match="partition 1"):
        overlapped(range(10), begin)
    assert begun in ([0, 1], [0, 1, 2])


def test_what_fails_on_the_target_leaves_no_thread_behind() -> None:
    def begin(k: int) -> Callable[[], str]:
        if k == 1:
            raise KeyboardInterrupt
        return lambda: "proof"

    with pytest.raises(KeyboardInterrupt):
        overlapped(range(3), begin)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("cuzk finish")]
