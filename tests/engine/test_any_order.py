"""Threads in any order, played by one: whatever comes in between, nobody waits for ever and nothing is lost.

Each rule is a step of a caller or of a thread: a thread takes an errand in one step and reports in a later
one, so that anything can happen meanwhile. Which steps, hypothesis chooses; the clock is moved by hand.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cuzk.engine.devices import SlotState, Worker
from cuzk.engine.dispatcher import Verdict
from cuzk.engine.jobs import Job, Priority, Run, Stage, Status, Unit
from cuzk.engine.placing import Close, Open, Prepare, Prove
from cuzk.engine.settings import GpuLock
from cuzk.errors import CuzkError, DeviceError, DeviceFault, ResourceError
from tests.engine.fakes import FakeSetup, FakeWork, fake_proof
from tests.engine.hall import Hall

CARDS = 3
INPUT_BYTES = 30
PREPARERS = 2
DRAIN_STEPS = 10_000  # far more than any drain takes


class Engine(RuleBasedStateMachine):
    """Three cards of two workers, two preparers, an assembler; setups of which one or two fit a card."""

    mode: GpuLock = "narrow"
    card_bytes, host_bytes = 10, 90

    def __init__(self) -> None:
        super().__init__()
        self.hall = Hall(
            {f"cuda:{k}": self.card_bytes for k in range(CARDS)},
            host_bytes=self.host_bytes,
            input_bytes=INPUT_BYTES,
            results_kept=3,
            stall_after_s=5.0,
            synthesis_lookahead=1,
            gpu_lock=self.mode,
        )
        self.setups = [
            FakeSetup("small", device_bytes=4, host_bytes=3),
            FakeSetup("middle", device_bytes=6, host_bytes=10),
            FakeSetup("large", device_bytes=10, host_bytes=20),
        ]
        self.jobs: list[tuple[Job, FakeWork]] = []
        self.preparing: list[Prepare | Close] = []
        self.working: dict[int, Prove | Open | Close] = {}
        self.asleep: set[int] = set()  # workers who found nothing, until somebody says that something changed
        self.hall.board.changed["prove"].notify_all = self.asleep.clear  # type: ignore[method-assign]
        self.assembling: tuple[Run, list[bytes]] | None = None
        self.is_closing = False

    # ---- callers ----

    @rule(
        name=st.sampled_from("abcdef"),
        partitions=st.integers(1, 3),
        setup=st.integers(0, 2),
        priority=st.sampled_from(Priority),
        deadline_s=st.none() | st.integers(1, 20),
        nbytes=st.integers(0, 8),
    )
    def submit(
        self, name: str, partitions: int, setup: int, priority: Priority, deadline_s: Any, nbytes: int
    ) -> None:
        digest = f"{name}{partitions}{setup}"
        work = FakeWork(
            digest,
            partitions=tuple(range(partitions)),
            setup=self.setups[setup],
            input_bytes=nbytes,
            partition_bytes=nbytes,
        )
        try:
            self.jobs.append((self.hall.submit(work, priority, deadline_s=deadline_s), work))
        except CuzkError:
            is_full = self.hall.board.inputs.free_bytes < nbytes
            devices = self.hall.devices
            assert self.is_closing or is_full or not any(device.serves(work.setup) for device in devices)

    @rule(k=st.integers(0, 100))
    def cancel(self, k: int) -> None:
        if self.jobs:
            job, _ = self.jobs[k % len(self.jobs)]
            had_ended = job.result is not None
            assert job.cancel() is not had_ended
            assert job.result is not None

    @rule(k=st.integers(0, 100))
    def find(self, k: int) -> None:
        if self.jobs:
            job, work = self.jobs[k % len(self.jobs)]
            found = self.hall.reception.find(job.id)
            if found is not None:
                self.jobs.append((found, work))

    @rule(seconds=st.integers(1, 5))
    def time_passes(self, seconds: int) -> None:
        self.hall.now += seconds
        self.hall.reception.expire()
        self.hall.reception.report_stalls()

    @precondition(lambda self: not self.is_closing)
    @rule(drain=st.booleans(), chance=st.integers(0, 9))
    def close(self, drain: bool, chance: int) -> None:
        if chance == 0:
            self.is_closing = True
            self.hall.reception.close(drain=drain)

    # ---- preparers ----

    @precondition(lambda self: len(self.preparing) < PREPARERS)
    @rule()
    def begin_to_prepare(self) -> None:
        waiting = [unit for unit in self.units() if unit.stage is Stage.PENDING]
        errand = self.hall.next_to_prepare()
        if isinstance(errand, Prepare):
            first = min(waiting, key=lambda unit: unit.order)
            assert errand.unit is first or self.hall.board.admission.waiting is first
        if errand is not None:
            self.preparing.append(errand)

    @precondition(lambda self: self.preparing)
    @rule(k=st.integers(0, 1), goes_well=st.integers(0, 9).map(bool))
    def prepared(self, k: int, goes_well: bool) -> None:
        errand = self.preparing.pop(k % len(self.preparing))
        if isinstance(errand, Close):
            self.hall.close(errand)
        elif goes_well:
            value = errand.work.prepare(errand.unit.partition)
            self.hall.dispatcher.prepared(errand.unit, value)
        else:
            self.hall.dispatcher.failed(errand.unit, ValueError("a bad path"))

    # ---- workers ----

    @rule(number=st.integers(0, 2 * CARDS - 1))
    def begin_to_work(self, number: int) -> None:
        if number in self.working or number in self.asleep:
            return
        device = self.hall.workers[number].device
        ready = [unit for unit in self.units() if unit.stage is Stage.READY]
        elsewhere = [other for other in self.hall.workers if other.waits and other.device is not device]
        errand = self.hall.next_for(number)
        if isinstance(errand, Prove):
            worker = self.hall.workers[number]
            assert self.could_prove(worker, errand.unit)
            for unit in ready:
                if unit.order < errand.unit.order and self.could_prove(worker, unit):
                    assert any(self.could_prove(other, unit) for other in elsewhere), "it was passed over"
        if errand is None:
            self.asleep.add(number)
        else:
            self.working[number] = errand

    @precondition(lambda self: self.working)
    @rule(k=st.integers(0, 2 * CARDS - 1))
    def computes(self, k: int) -> None:
        number = sorted(self.working)[k % len(self.working)]
        if isinstance(self.working[number], Prove):
            self.hall.dispatcher.begins(self.hall.workers[number])

    @precondition(lambda self: self.working)
    @rule(
        k=st.integers(0, 2 * CARDS - 1),
        fate=st.sampled_from(
            ["well"] * 8 + ["wrong", "wrong", "error", "fault", "memory", "mistake", "overtaken"]
        ),
    )
    def worked(self, k: int, fate: str) -> None:
        number = sorted(self.working)[k % len(self.working)]
        errand = self.working.pop(number)
        if isinstance(errand, Close):
            self.hall.close(errand)
        elif isinstance(errand, Open):
            self.open(errand, fate)
        else:
            self.prove(number, errand, fate)

    def open(self, errand: Open, fate: str) -> None:
        if fate in ("memory", "fault"):
            error = ResourceError("no memory") if fate == "memory" else DeviceFault("gone")
            self.hall.dispatcher.open_failed(errand.slot, error)
        else:
            self.hall.open(errand)

    def prove(self, number: int, errand: Prove, fate: str) -> None:
        hall, worker = self.hall, self.hall.workers[number]
        assert hall.devices[worker.device.ordinal].slots[errand.slot.key] is errand.slot
        turn = hall.turn(number, errand)
        if errand.unit.run.is_over and fate == "well":
            hall.dispatcher.abandoned(worker, errand, turn)
        elif fate == "well":
            hall.dispatcher.proved(worker, errand, turn, fake_proof(*errand.prepared))
        elif fate == "overtaken":
            hall.dispatcher.overtaken(worker, errand, turn)
        elif fate == "wrong":
            if hall.dispatcher.rejected(worker, errand, turn) is Verdict.AGAIN:
                self.working[number] = errand
        else:
            errors = {
                "error": DeviceError("a launch failed"),
                "fault": DeviceFault("gone"),
                "memory": ResourceError("no memory"),
                "mistake": ValueError("a mistake"),
            }
            hall.dispatcher.prove_failed(worker, errand, turn, errors[fate])

    # ---- assembler ----

    @rule()
    def assemble(self) -> None:
        if self.assembling is None:
            self.assembling = self.hall.dispatcher.next_to_assemble(wait=False)
        else:
            run, proofs = self.assembling
            self.assembling = None
            self.hall.dispatcher.assembled(run, run.work.assemble(proofs))

    # ---- what always holds ----

    def units(self) -> list[Unit]:
        """Of all runs under way, and those that a thread is at."""
        under_way = [unit for run in self.hall.board.runs.live for unit in run.units]
        errands = [*self.preparing, *self.working.values()]
        held = [errand.unit for errand in errands if isinstance(errand, Prepare | Prove)]
        return list(dict.fromkeys([*under_way, *held]))

    def could_prove(self, worker: Worker, unit: Unit) -> bool:
        slot = worker.device.slots.get(self.hall.board.placing.slot_key(worker, unit.run.work.setup))
        is_open = slot is not None and slot.state is SlotState.OPEN and not slot.spoilt
        return is_open and worker.device.can_take(unit)

    @invariant()
    def memory_is_what_is_held(self) -> None:
        board = self.hall.board
        inputs = sum(run.work.input_bytes for run in board.runs.live)
        held = {Stage.PREPARING, Stage.READY, Stage.PROVING}
        partitions = sum(unit.run.work.partition_bytes for unit in self.units() if unit.stage in held)
        assert board.inputs.used_bytes == inputs <= INPUT_BYTES
        assert board.host.used_bytes <= self.host_bytes
        purposes = {**board.host.by_purpose}
        assert purposes.pop("partitions", 0) == partitions
        assert all(purpose.startswith("parameters ") for purpose in purposes)
        for device in self.hall.devices:
            opened = sum(slot.setup.device_bytes for slot in device.slots.values())
            assert device.memory.used_bytes == opened <= self.card_bytes

    @invariant()
    def no_run_waits_for_a_device_that_will_never_come(self) -> None:
        for run in self.hall.board.runs.live:
            if run.status is not Status.ASSEMBLING:
                assert any(device.serves(run.work.setup) for device in self.hall.devices)
        for unit in self.units():
            assert unit.stage is not Stage.READY or self.hall.board.takers(unit)

    @invariant()
    def queues_hold_what_waits(self) -> None:
        board, units = self.hall.board, self.units()
        assert len(board.pending) == sum(unit.stage is Stage.PENDING for unit in units)
        assert len(board.ready) == sum(unit.stage is Stage.READY for unit in units)

    # ---- the end ----

    def teardown(self) -> None:
        """All goes well from now on: everything under way must end, and then everything must be free."""
        for _ in range(DRAIN_STEPS):
            if not self.one_step():
                break
        else:
            raise AssertionError("it does not come to rest")
        assert not self.hall.board.runs.live, "deadlock"
        for job, work in self.jobs:
            assert job.result is not None
            if job.result.status is Status.COMPLETED:
                assert job.result.proof == work.whole_proof
            else:
                assert job.result.proof is None and job.result.error is not None
        self.hall.close_all()
        assert [setup.opened for setup in self.setups] == [[], [], []]

    def one_step(self) -> bool:
        """Whether any thread had something to do."""
        busy = False
        if len(self.preparing) < PREPARERS:
            self.begin_to_prepare()
        if self.preparing:
            busy = True
            self.prepared(0, True)
        for number in range(len(self.hall.workers)):
            self.begin_to_work(number)
            while number in self.working:
                busy = True
                self.worked(sorted(self.working).index(number), "well")
        before = self.assembling
        self.assemble()
        return busy or self.assembling is not before


class EngineWithoutLock(Engine):
    """Each worker has provers of its own."""

    mode = "none"
    card_bytes, host_bytes = 20, 150


@pytest.mark.parametrize("engine", [Engine, EngineWithoutLock])
@pytest.mark.parametrize(
    "examples", [pytest.param(60, id="some"), pytest.param(2000, id="many", marks=pytest.mark.stress)]
)
def test_any_order_of_steps_ends_with_every_caller_answered_and_everything_free(
    examples: int, engine: type[Engine]
) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        engine,
        settings=settings(
            max_examples=examples, stateful_step_count=60, suppress_health_check=list(HealthCheck)
        ),
    )
