"""The engine's small parts by themselves: budgets, queues, turns, events, settings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.engine import device_lock
from cuzk.engine.budget import Budget
from cuzk.engine.device_lock import DeviceLock
from cuzk.engine.events import Announcer, EngineEvent, What
from cuzk.engine.jobs import Priority, Unit
from cuzk.engine.settings import Settings
from cuzk.engine.turn import Abandoned, Overtaken, Turn
from cuzk.engine.unit_queue import UnitQueue
from cuzk.errors import ResourceError
from tests.engine.fakes import turn_alone

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
        self.batch = self.sequence = sequence
        self.priority = Priority.NORMAL


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

SOON_S = 20.0


def turn(mode: Any, lock: DeviceLock, *, over: list[bool] | None = None) -> tuple[Turn, list[str]]:
    said: list[str] = []
    ticks = iter(range(1000))
    return (
        turn_alone(
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
    lock = DeviceLock()
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
    lock, over = DeviceLock(), [False]
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
    mine = turn_alone(
        DeviceLock(),
        record=lambda name, at_ns: said.append((name, at_ns)),
        clock=lambda: 7.0,
    )
    mine.computed(None)
    assert said == []
    mine.computed(1.5)
    assert said == [("KERNEL_START", 6_998_500_000), ("KERNEL_END", 7_000_000_000)]


def in_vain(lock: DeviceLock, mine: Turn, change: Callable[[], None]) -> list[str]:
    """What becomes of a turn for whose device, which another has, `change` ends the waiting."""
    reached: list[str] = []

    def work() -> None:
        try:
            with mine.on_device():
                reached.append("device")
        except (Abandoned, Overtaken) as error:
            reached.append(type(error).__name__)

    thread = threading.Thread(target=work)
    with lock.held(lambda: 0, "another", lambda: None):
        thread.start()
        change()
        lock.wake()
        thread.join(SOON_S)
        assert lock.locked()
    assert not thread.is_alive() and not lock.locked()
    return reached


def test_a_turn_that_nobody_wants_does_not_wait_for_a_device_that_stands_still() -> None:
    lock, over = DeviceLock(), [False]
    mine, said = turn("narrow", lock, over=over)
    assert in_vain(lock, mine, lambda: over.__setitem__(0, True)) == ["Abandoned"]
    assert said == ["LOCK_WAIT"]


def test_a_turn_that_is_overtaken_gives_up() -> None:
    lock, overtaken = DeviceLock(), [False]
    mine = turn_alone(lock, is_overtaken=lambda: overtaken[0])
    assert in_vain(lock, mine, lambda: overtaken.__setitem__(0, True)) == ["Overtaken"]


def test_a_turn_that_gets_its_device_too_late_gives_it_back() -> None:
    lock, said = DeviceLock(), list[str]()
    mine = turn_alone(lock, begins=lambda: False, record=said.append)
    with pytest.raises(Overtaken), mine.on_device():
        raise AssertionError("it must not get here")
    assert not lock.locked() and said == ["LOCK_WAIT", "LOCK_START", "LOCK_END"]


# ---- who is next on a device ----


class Queue:
    """Turns on one lock, each on a thread of its own, whose kernels end when the test says so."""

    def __init__(self) -> None:
        self.lock, self.order = DeviceLock(), list[str]()
        self._reached: dict[str, threading.Semaphore] = {}
        self._go: dict[str, threading.Semaphore] = {}
        self._threads: dict[str, threading.Thread] = {}

    def begin(
        self, name: str, urgency: int, *, user: str = "", mode: str = "narrow", kernels: int = 2
    ) -> None:
        """Returns when the turn waits for its device, or is there."""
        mine = turn_alone(self.lock, mode, user=user or name, urgency=urgency)
        self._go[name], self._reached[name] = threading.Semaphore(0), threading.Semaphore(0)

        def work() -> None:
            with mine.whole(), mine.on_device():
                for k in range(kernels):
                    self.order.append(f"{name}{k}")
                    self._reached[name].release()
                    self._go[name].acquire(timeout=SOON_S)
                    mine.boundary()

        self._threads[name] = threading.Thread(target=work)
        self._threads[name].start()
        end = time.monotonic() + SOON_S
        while f"{name}0" not in self.order and not self._waits(user or name, urgency):
            assert time.monotonic() < end
            time.sleep(0.001)

    def _waits(self, user: str, urgency: int) -> bool:
        return any((one.user, one.urgency()) == (user, urgency) for one in list(self.lock._waiting))

    def kernel_ends(self, name: str) -> None:
        """The turn's kernel, once it runs."""
        assert self._reached[name].acquire(timeout=SOON_S), (name, self.order)
        self._go[name].release()

    def is_through(self, name: str, within_s: float = SOON_S) -> bool:
        """Whether the turn's worker has gone on with what comes after the device."""
        self._threads[name].join(within_s)
        return not self._threads[name].is_alive()

    def end(self) -> list[str]:
        for name in self._threads:
            assert self.is_through(name), self.order
        assert not self.lock.locked() and not self.lock._waiting and not self.lock._between
        return self.order


def test_something_urgent_comes_in_at_the_next_boundary_and_what_it_interrupted_goes_on() -> None:
    queue = Queue()
    queue.begin("a", 2)
    queue.begin("b", 2)  # waits in the usual order
    queue.begin("U", 4)
    for name in ("a", "U", "U", "a", "b", "b"):
        queue.kernel_ends(name)
    assert queue.end() == ["a0", "U0", "U1", "a1", "b0", "b1"]


def test_nothing_comes_in_between_two_kernels_that_proves_with_the_same() -> None:
    queue = Queue()
    queue.begin("a", 2, user="porep")
    queue.begin("U", 4, user="porep")
    for name in ("a", "a", "U", "U"):
        queue.kernel_ends(name)
    assert queue.end() == ["a0", "a1", "U0", "U1"]


def test_while_a_proof_is_interrupted_its_prover_waits_for_it() -> None:
    queue = Queue()
    queue.begin("a", 2, user="porep")
    queue.begin("U", 4, user="winning", kernels=1)
    queue.kernel_ends("a")
    queue.begin("h", 3, user="porep")  # more urgent than a, but it would touch what a is in the middle of
    for name in ("U", "a", "h", "h"):
        queue.kernel_ends(name)
    assert queue.end() == ["a0", "U0", "a1", "h0", "h1"]


def test_a_coarse_lock_lets_nobody_in_between() -> None:
    queue = Queue()
    queue.begin("a", 2, mode="coarse")
    queue.begin("U", 4, mode="coarse", kernels=1)
    for name in ("a", "a", "U"):
        queue.kernel_ends(name)
    assert queue.end() == ["a0", "a1", "U0"]


@pytest.fixture
def makes_way_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lock, "MAKES_WAY_S", 10 * SOON_S)


@pytest.mark.parametrize("mode", ["narrow", "coarse"])
@pytest.mark.usefixtures("makes_way_for_long")
def test_who_gives_a_device_back_goes_on_when_the_first_kernels_of_the_next_one_are_under_way(
    mode: str,
) -> None:
    queue = Queue()
    queue.begin("a", 2, mode=mode, kernels=1)
    queue.begin("b", 2, mode=mode, kernels=2)
    queue.kernel_ends("a")
    assert not queue.is_through("a", within_s=0.05) and queue.order == ["a0", "b0"]
    queue.kernel_ends("b")
    assert queue.is_through("a") and not queue.is_through("b", within_s=0)
    queue.kernel_ends("b")
    queue.end()


@pytest.mark.usefixtures("makes_way_for_long")
def test_who_gives_a_device_back_goes_on_when_the_next_one_does_so_too() -> None:
    queue = Queue()
    queue.begin("a", 2, kernels=1)
    queue.begin("b", 2, kernels=0)
    queue.kernel_ends("a")
    queue.end()


@pytest.mark.usefixtures("makes_way_for_long")
def test_nobody_makes_way_for_what_is_less_urgent() -> None:
    queue = Queue()
    queue.begin("U", 4, kernels=1)
    queue.begin("a", 2, kernels=1)
    queue.kernel_ends("U")
    assert queue.is_through("U") and not queue.is_through("a", within_s=0)
    queue.kernel_ends("a")
    queue.end()


def test_nobody_makes_way_for_long() -> None:
    queue = Queue()
    queue.begin("a", 2, kernels=1)
    queue.begin("b", 2, kernels=1)
    queue.kernel_ends("a")
    assert queue.is_through("a") and not queue.is_through("b", within_s=0)
    queue.kernel_ends("b")
    queue.end()


def test_an_interrupted_turn_counts_the_time_in_between_as_waiting() -> None:
    """And what it computed before lies before it: merged with what came in between, nothing is lost."""
    lock, now = DeviceLock(), [0.0]
    kernels: list[tuple[str, float]] = []

    def record(name: str, at_ns: int = 0) -> None:
        if at_ns:
            kernels.append((name, at_ns / 1e9))

    mine = turn_alone(lock, urgency=2, user="mine", record=record, clock=lambda: now[0])
    done: list[str] = []

    def urgent() -> None:
        with lock.held(lambda: 4, "another", lambda: None):
            now[0] += 5.0
            done.append("urgent")

    with mine.on_device():
        now[0] += 1.0
        thread = threading.Thread(target=urgent)
        thread.start()
        end = time.monotonic() + SOON_S
        while not lock._waiting and time.monotonic() < end:
            time.sleep(0.001)
        mine.boundary()
        assert done == ["urgent"]
        now[0] += 2.0
        mine.computed(2700.0)
    assert kernels == [
        ("KERNEL_START", 6.0), ("KERNEL_END", 8.0), ("KERNEL_START", 0.3), ("KERNEL_END", 1.0),
    ]  # fmt: skip
    thread.join(SOON_S)
    assert (mine.held_s, mine.waited_s) == (3.0, 5.0)


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
