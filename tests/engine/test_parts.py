"""The engine's small parts by themselves: budgets, queues, turns, events, settings."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.engine.budget import Budget
from cuzk.engine.events import Announcer, EngineEvent, What
from cuzk.engine.jobs import Priority, Unit
from cuzk.engine.settings import Settings
from cuzk.engine.turn import Abandoned, Turn
from cuzk.engine.unit_queue import UnitQueue
from cuzk.errors import ResourceError

# ---- budgets ----


def test_a_budget_gives_no_more_than_it_has() -> None:
    budget = Budget("host", 10)
    first, second = budget.take(6, "a"), budget.take(4, "b")
    assert first is not None and second is not None and budget.take(1, "c") is None
    assert (budget.used_bytes, budget.by_purpose) == (10, {"a": 6, "b": 4})
    first.release()
    assert (budget.free_bytes, budget.by_purpose, budget.peak_bytes) == (6, {"b": 4}, 10)
    with pytest.raises(AssertionError):
        first.release()


def test_nothing_can_be_reserved_for_nothing() -> None:
    budget = Budget("host", 0)
    empty = budget.take(0, "a")
    assert empty is not None and budget.by_purpose == {}
    empty.release()
    assert budget.take(1, "a") is None
    budget.require({"a": 0})
    with pytest.raises(ResourceError, match="takes 1 B of memory, the budget is 0 B"):
        budget.require({"a": 1})


# ---- the queue ----


class _Run:
    """As much of a run as a queue looks at."""

    def __init__(self, sequence: int) -> None:
        self.sequence, self.priority = sequence, Priority.NORMAL


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["push", "discard", "first", "raise"]),
            st.integers(0, 9),
            st.sampled_from(Priority),
        ),
        max_size=200,
    )
)
def test_a_queue_is_a_sorted_list_whatever_is_done_to_it(steps: list[tuple[str, int, Priority]]) -> None:
    runs: list[Any] = [_Run(k // 3) for k in range(10)]
    units = [Unit(run, k) for k, run in enumerate(runs)]
    queue, plain = UnitQueue(), set[Unit]()
    for step, k, priority in steps:
        unit = units[k]
        if step == "push" or (step == "raise" and unit in plain):
            unit.run.priority = priority
            queue.push(unit)
            plain.add(unit)
        elif step == "discard":
            queue.discard(unit)
            plain.discard(unit)
        in_order = sorted(plain, key=lambda unit: unit.order)
        assert list(queue) == in_order and len(queue) == len(plain)
        assert queue.first() is (in_order[0] if in_order else None)


def test_a_queue_does_not_grow_with_what_has_left_it() -> None:
    queue = UnitQueue()
    run: Any = _Run(0)
    stays = Unit(run, 0)
    queue.push(stays)
    for k in range(1, 10_000):
        unit = Unit(run, k)
        queue.push(unit)
        queue.discard(unit)
    assert len(queue._heap) < 200 and queue.first() is stays


# ---- turns ----


def turn(mode: Any, lock: threading.Lock, *, over: list[bool] | None = None) -> tuple[Turn, list[str]]:
    said: list[str] = []
    ticks = iter(range(1000))
    return (
        Turn(
            lock,
            mode,
            is_over=lambda: bool(over and over[0]),
            record=said.append,
            clock=lambda: float(next(ticks)),
        ),
        said,
    )


@pytest.mark.parametrize(
    ("mode", "around", "inside", "after"),
    [("narrow", False, True, False), ("coarse", True, True, True), ("none", False, False, False)],
)
def test_the_lock_is_held_as_the_mode_says(mode: str, around: bool, inside: bool, after: bool) -> None:
    lock = threading.Lock()
    mine, said = turn(mode, lock)
    with mine.whole():
        assert lock.locked() is around
        for _ in range(2):
            with mine.on_device():
                assert lock.locked() is inside
            assert lock.locked() is after
    assert not lock.locked()
    once = ["LOCK_WAIT", "LOCK_START", "LOCK_END"]
    assert said == {"narrow": 2 * once, "coarse": once, "none": []}[mode]
    assert mine.held_s > 0


@pytest.mark.parametrize("mode", ["narrow", "coarse", "none"])
def test_a_turn_of_an_ended_run_ends_at_the_next_boundary_and_gives_the_lock_back(mode: str) -> None:
    lock, over = threading.Lock(), [False]
    mine, _ = turn(mode, lock, over=over)
    with pytest.raises(Abandoned), mine.whole(), mine.on_device():
        mine.boundary()
        over[0] = True
        mine.boundary()
    assert not lock.locked()
    with pytest.raises(Abandoned), mine.on_device():
        raise AssertionError("it must not get here")


def test_what_a_device_computed_ends_now_and_is_as_long_as_it_says() -> None:
    said: list[tuple[str, int]] = []
    mine = Turn(
        threading.Lock(),
        "narrow",
        is_over=lambda: False,
        record=lambda name, at_ns: said.append((name, at_ns)),
        clock=lambda: 7.0,
    )
    mine.computed(None)
    assert said == []
    mine.computed(1.5)
    assert said == [("KERNEL_START", 6_998_500_000), ("KERNEL_END", 7_000_000_000)]


def test_a_turn_that_waited_in_vain_does_not_begin() -> None:
    lock, over = threading.Lock(), [False]
    mine, _ = turn("narrow", lock, over=over)
    lock.acquire()
    reached: list[str] = []

    def work() -> None:
        try:
            with mine.on_device():
                reached.append("device")
        except Abandoned:
            reached.append("abandoned")

    thread = threading.Thread(target=work)
    thread.start()
    over[0] = True
    lock.release()
    thread.join()
    assert reached == ["abandoned"] and not lock.locked()


# ---- events ----


def event(text: str) -> EngineEvent:
    return EngineEvent(what=What.ENDED, at_s=0.0, text=text)


def test_every_listener_hears_what_comes_after_it_began_until_the_end() -> None:
    announcer = Announcer()
    early = announcer.subscribe(10)
    announcer.say(event("1"))
    late, gone = announcer.subscribe(10), announcer.subscribe(10)
    gone.close()
    announcer.say(event("2"))
    announcer.close()
    announcer.say(event("3"))
    assert [[heard.text for heard in one] for one in (early, late, gone, announcer.subscribe(10))] == [
        ["1", "2"], ["2"], [], []
    ]  # fmt: skip


def test_a_slow_listener_keeps_the_newest_and_knows_how_many_it_lost() -> None:
    announcer = Announcer()
    slow = announcer.subscribe(3)
    for k in range(10):
        announcer.say(event(str(k)))
    slow.close()
    assert ([heard.text for heard in slow], slow.lost) == (["7", "8", "9"], 7)


# ---- settings ----


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpu_workers_per_device": 0},
        {"partition_workers": 0},
        {"synthesis_lookahead": 0},
        {"results_kept": -1},
        {"gpu_lock": "wide"},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)
