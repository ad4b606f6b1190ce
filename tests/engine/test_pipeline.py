"""The engine with its threads: many tiny jobs, faults on demand, and the end."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from cuzk.engine.events import What
from cuzk.engine.jobs import Job, JobResult, Priority, Status
from cuzk.engine.pipeline import DevicePlace, Pipeline
from cuzk.engine.settings import Settings
from cuzk.engine.turn import Turn
from cuzk.errors import CuzkError, DeviceError, DeviceFault, EngineError, ProofError, ResourceError
from tests.engine.fakes import FakeSetup, FakeWork, Fate, raises, stalls, wrong
from tests.engine.hall import Records

MIB = 1 << 20
SOON_S = 30.0  # by far more than anything here takes


def pipeline(
    *devices: str,
    recorder: Any = None,
    host_bytes: int = 64 * MIB,
    clock: Callable[[], float] = time.monotonic,
    **settings: Any,
) -> Pipeline:
    places = [DevicePlace(name=name, memory_bytes=MIB) for name in devices or ("cuda:0",)]
    return Pipeline(
        places, host_bytes=host_bytes, settings=Settings(**settings), recorder=recorder, clock=clock
    )


def result_of(job: Job) -> JobResult:
    result = job.wait(SOON_S)
    assert result is not None, job.id
    return result


def engine_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("cuzk ")]


def until(holds: Callable[[], bool], engine: Pipeline) -> None:
    end = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < end, engine.status()
        time.sleep(0.001)


def at_work(engine: Pipeline, *devices: int) -> list[str]:
    """Jobs of busy workers, of all devices or those."""
    found = [engine.status().devices[k] for k in devices] or engine.status().devices
    return [worker.job_id for device in found for worker in device.workers if worker.job_id]


def idle(engine: Pipeline) -> None:
    """Waits until every thread has let go of what it had."""
    until(lambda: not engine.status().jobs and not at_work(engine), engine)


def until_a_worker_is_busy(engine: Pipeline) -> None:
    until(lambda: bool(at_work(engine, 0)), engine)


def begins_and_stalls(begun: threading.Event, until: threading.Event) -> Fate:
    """The device holds still, and that is told when it has begun."""

    def fate(turn: Turn) -> None:
        with turn.on_device():
            begun.set()
            until.wait(SOON_S)
            turn.boundary()

    return fate


def test_jobs_of_many_partitions_come_out_whole() -> None:
    setup = FakeSetup()
    with pipeline("cuda:0", "cuda:1", "cuda:2") as engine:
        works = [FakeWork(f"w{k}", tuple(range(1 + k % 10)), setup) for k in range(100)]
        jobs = [engine.submit(work) for work in works]
        for work, job in zip(works, jobs, strict=True):
            assert result_of(job).require_proof() == work.whole_proof
        assert len(setup.opened) == 3
    assert setup.opened == []
    assert engine_threads() == []


def test_timeline_events_of_a_partition_come_in_the_daemons_order() -> None:
    records = Records()
    with pipeline(recorder=records) as engine:
        result_of(engine.submit(FakeWork("a")))
    names = [name for name, job, _ in records.heard if job == "a"]
    assert names == [
        "SYNTH_START", "SYNTH_END", "GPU_QUEUE", "GPU_PICKUP", "GPU_START",
        "LOCK_WAIT", "LOCK_START", "LOCK_END", "GPU_END", "ASSEMBLED",
    ]  # fmt: skip
    details = {name: detail for name, _, detail in records.heard}
    assert details["SYNTH_END"].keys() == {"partition", "synth_ms"}
    assert list(details["GPU_END"]) == ["worker", "partition", "device", "gpu_ms"]


def test_two_workers_of_a_device_take_turns_on_it_and_work_at_once_beside_it() -> None:
    """The first stays outside the lock until the second, on the same device, has been inside."""
    second_done = threading.Event()

    def waits_outside(turn: Any) -> None:
        assert second_done.wait(SOON_S)

    def goes_inside(turn: Any) -> None:
        with turn.on_device():
            second_done.set()

    setup = FakeSetup(fates={"cuda:0": deque([waits_outside, goes_inside])})
    with pipeline() as engine:
        jobs = [engine.submit(FakeWork(name, setup=setup)) for name in "ab"]
        assert {result_of(job).status for job in jobs} == {Status.COMPLETED}


def test_whoever_asks_to_be_called_is_called_once_without_any_lock() -> None:
    told: list[tuple[str, JobResult]] = []
    all_told = threading.Event()
    with pipeline() as engine:

        def note(name: str) -> Any:
            def call(result: JobResult) -> None:
                engine.status()  # would wait for ever under the board's lock
                told.append((name, result))
                if len(told) == 3:
                    all_told.set()

            return call

        job = engine.submit(FakeWork("a", (0, 1)))
        job.then(note("early"))
        job.then(note("also"))
        result = result_of(job)
        job.then(note("late"))
        assert all_told.wait(SOON_S)
        gone = engine.submit(FakeWork("b"), request_id="b")
        gone.cancel()
        gone.then(note("cancelled"))
    assert sorted(name for name, _ in told) == ["also", "cancelled", "early", "late"]
    assert [one for name, one in told if name != "cancelled"] == [result] * 3


def test_only_one_worker_is_on_a_device_at_a_time() -> None:
    setup = FakeSetup()
    inside, most, lock = [0], [0], threading.Lock()

    def counts(turn: Any) -> None:
        with turn.on_device():
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.0002)
            with lock:
                inside[0] -= 1

    setup.fates["cuda:0"] = deque([counts] * 100)
    with pipeline(gpu_workers_per_device=4) as engine:
        for job in [engine.submit(FakeWork(f"w{k}", (0, 1), setup)) for k in range(50)]:
            assert result_of(job).status is Status.COMPLETED
    assert most == [1]


def test_no_more_partitions_are_prepared_ahead_than_the_settings_say() -> None:
    release, prepared = threading.Event(), []
    setup = FakeSetup(fates={"cuda:0": deque([stalls(release)] * 2)})
    work = FakeWork("a", tuple(range(20)), setup, preparing=prepared.append)
    with pipeline(partition_workers=2, synthesis_lookahead=3) as engine:
        job = engine.submit(work)
        # two on the device, three that may wait, and one in the hands of each preparer
        until(lambda: len(at_work(engine)) == 2 and engine.status().ready == 3 + 2, engine)
        time.sleep(0.02)  # in which nothing more may happen
        assert len(prepared) == 2 + 3 + 2
        release.set()
        assert result_of(job).require_proof() == work.whole_proof


# ---- faults ----


def test_a_wrong_proof_never_leaves_the_engine_and_costs_only_time() -> None:
    """One device stands still until the other has had its share: a quick one would take all the work."""
    had = threading.Event()

    def last(turn: Any) -> None:
        had.set()
        wrong(turn)

    fates = {"cuda:0": deque([wrong] * 3 + [last]), "cuda:1": deque([wrong, stalls(had), stalls(had)])}
    setup = FakeSetup(fates=fates)
    with pipeline("cuda:0", "cuda:1") as engine:
        works = [FakeWork(f"w{k}", setup=setup) for k in range(20)]
        jobs = [engine.submit(work) for work in works]
        for work, job in zip(works, jobs, strict=True):
            assert result_of(job).proof in (work.whole_proof, None)
        assert sum(device.wrong_proofs for device in engine.status().devices) == 5


def test_a_device_that_corrupts_everything_is_set_aside_and_every_job_completes() -> None:
    setup = FakeSetup(fates={"cuda:1": deque([wrong] * 1000)})
    with pipeline("cuda:0", "cuda:1") as engine:
        events = engine.events()
        works = [FakeWork(f"w{k}", (0, 1), setup) for k in range(50)]
        jobs = [engine.submit(work) for work in works]
        for work, job in zip(works, jobs, strict=True):
            assert result_of(job).require_proof() == work.whole_proof
        statuses = {device.name: device for device in engine.status().devices}
    assert "wrong proof" in (statuses["cuda:1"].set_aside or "") and statuses["cuda:0"].set_aside is None
    assert [event.device for event in events if event.what is What.SET_ASIDE] == ["cuda:1"]


def test_an_exception_in_any_stage_fails_that_job_with_the_cause_and_no_other() -> None:
    def refuses(*_: Any) -> None:
        raise ValueError("in this stage")

    broken = FakeSetup("broken", fates={"cuda:0": deque([raises(ValueError("in this stage"))])})
    stages: list[Any] = [
        {"preparing": refuses},
        {"setup": broken},
        {"setup": FakeSetup("closed", opening={"cuda:0": ValueError("in this stage")})},
        {"assembling": refuses},
    ]
    with pipeline() as engine:
        for k, stage in enumerate(stages):
            good = [FakeWork(f"good {k} {i}", (0, 1)) for i in range(3)]
            jobs = [engine.submit(good[0]), engine.submit(FakeWork(f"bad {k}", (0, 1), **stage))]
            jobs += [engine.submit(work) for work in good[1:]]
            results = [result_of(job) for job in jobs]
            bad = results.pop(1)
            assert (bad.status, str(bad.error)) == (Status.FAILED, "in this stage")
            assert [result.proof for result in results] == [work.whole_proof for work in good]


def test_a_device_that_is_lost_leaves_its_work_to_the_others() -> None:
    setup = FakeSetup(fates={"cuda:0": deque([raises(DeviceFault("fell off the bus"))])})
    with pipeline("cuda:0", "cuda:1") as engine:
        works = [FakeWork(f"w{k}", (0, 1, 2), setup) for k in range(20)]
        jobs = [engine.submit(work) for work in works]
        for work, job in zip(works, jobs, strict=True):
            assert result_of(job).require_proof() == work.whole_proof
        idle(engine)
        assert set(setup.opened) <= {"cuda:0", "cuda:1"}
    assert setup.opened == []


def test_a_stalled_kernel_is_reported_and_its_job_ends_at_its_deadline() -> None:
    begun, release, now = threading.Event(), threading.Event(), [0.0]
    setup = FakeSetup(fates={"cuda:0": deque([begins_and_stalls(begun, release)])})
    with pipeline(stall_after_s=0.01, clock=lambda: now[0]) as engine:
        events = engine.events()
        job = engine.submit(FakeWork("stuck", setup=setup), deadline_s=0.05)
        assert begun.wait(SOON_S)
        now[0] = 0.04
        until(lambda: any(worker.stalled for worker in engine.status().devices[0].workers), engine)
        assert job.result is None
        now[0] = 0.05
        assert result_of(job).status is Status.TIMEOUT
        workers = engine.status().devices[0].workers
        assert [worker.stalled for worker in workers if worker.job_id == "stuck"] == [True]
        assert not engine.close(drain=True, timeout_s=0.01)  # it cannot be interrupted
        release.set()
    assert [event.device for event in events if event.what is What.STALLED] == ["cuda:0"]


def test_nobody_waits_for_the_lock_of_a_device_that_stands_still() -> None:
    """What its twin waits with goes back, the job ends at its deadline, or when the kernel has ended."""
    begun, release, now = threading.Event(), threading.Event(), [0.0]
    setup = FakeSetup(fates={"cuda:0": deque([begins_and_stalls(begun, release)])})
    with pipeline(stall_after_s=0.02, clock=lambda: now[0]) as engine:
        stuck = engine.submit(FakeWork("stuck", setup=setup))
        assert begun.wait(SOON_S)
        late = engine.submit(FakeWork("late", setup=setup), deadline_s=0.1)
        patient = engine.submit(FakeWork("patient", setup=setup))
        until(lambda: len(at_work(engine)) == 2, engine)
        now[0] = 0.05
        until(lambda: at_work(engine) == ["stuck"], engine)  # nobody is kept behind it
        assert late.result is None
        now[0] = 0.1
        assert result_of(late).status is Status.TIMEOUT
        release.set()
        assert {result_of(job).status for job in (stuck, patient)} == {Status.COMPLETED}


def test_what_a_stalled_device_is_at_is_proven_on_another_and_its_own_end_is_forgotten() -> None:
    """No other worker is at anything when the clock moves, or it would have stalled too."""
    begun, release, now = threading.Event(), threading.Event(), [0.0]

    def not_before_the_other(turn: Any) -> None:
        assert begun.wait(SOON_S)

    setup = FakeSetup(
        fates={
            "cuda:0": deque([begins_and_stalls(begun, release)]),
            "cuda:1": deque([not_before_the_other] * 2),
        }
    )
    with pipeline("cuda:0", "cuda:1", stall_after_s=0.02, clock=lambda: now[0]) as engine:
        events = engine.events()
        works = [FakeWork(f"w{k}", (0, 1, 2), setup) for k in range(4)]
        jobs = [engine.submit(work) for work in works]
        until(lambda: not engine.status().pending and not engine.status().ready, engine)
        assert begun.wait(SOON_S)
        until(lambda: not at_work(engine, 1), engine)
        now[0] = 1.0
        for work, job in zip(works, jobs, strict=True):
            assert result_of(job).require_proof() == work.whole_proof
        assert [device.set_aside for device in engine.status().devices] == [None, None]
        release.set()
        idle(engine)
        again = FakeWork("again", tuple(range(20)), setup)
        assert result_of(engine.submit(again)).require_proof() == again.whole_proof
    assert [event.device for event in events if event.what is What.STALLED] == ["cuda:0"]
    assert setup.opened == []


def test_critical_work_begins_at_the_next_boundary_though_every_worker_is_busy() -> None:
    """One worker computes, its twin waits for the device: that one takes the urgent job, and comes in."""
    small, kernels, begun = FakeSetup("winning"), list[str](), threading.Event()
    urgent_jobs: list[Any] = []

    def two_kernels(turn: Any) -> None:
        with turn.on_device():
            kernels.append("first")
            begun.set()
            until(lambda: engine.find("urgent") is not None and is_waiting(engine, "urgent"), engine)
            turn.boundary()
            kernels.append("second")

    def urgent(turn: Any) -> None:
        with turn.on_device():
            kernels.append("urgent")

    large = FakeSetup("porep", fates={"cuda:0": deque([two_kernels])})
    small.fates["cuda:0"] = deque([urgent])
    with pipeline(synthesis_lookahead=8) as engine:
        jobs = [engine.submit(FakeWork(f"w{k}", (0, 1, 2), large)) for k in range(3)]
        assert begun.wait(SOON_S)
        urgent_jobs.append(engine.submit(FakeWork("urgent", setup=small), priority=Priority.CRITICAL))
        assert {result_of(job).status for job in (*jobs, *urgent_jobs)} == {Status.COMPLETED}
    assert kernels == ["first", "urgent", "second"]


def test_a_job_that_becomes_critical_while_it_waits_for_the_device_comes_in_too() -> None:
    small, kernels, begun = FakeSetup("winning"), list[str](), threading.Event()

    def two_kernels(turn: Any) -> None:
        with turn.on_device():
            kernels.append("first")
            begun.set()
            until(lambda: is_waiting(engine, "later"), engine)
            turn.boundary()
            kernels.append("second")

    def later(turn: Any) -> None:
        with turn.on_device():
            kernels.append("later")

    large = FakeSetup("porep", fates={"cuda:0": deque([two_kernels])})
    small.fates["cuda:0"] = deque([later])
    with pipeline() as engine:
        job = engine.submit(FakeWork("w", setup=large))
        assert begun.wait(SOON_S)
        urged = engine.submit(FakeWork("later", setup=small))
        until(lambda: "later" in at_work(engine) and bool(engine._board.devices[0].lock._waiting), engine)
        engine.urge(urged, Priority.CRITICAL)
        assert {result_of(one).status for one in (job, urged)} == {Status.COMPLETED}
    assert kernels == ["first", "later", "second"]


def test_a_prover_that_cannot_be_closed_is_named_and_the_engine_goes_on() -> None:
    class Stuck(FakeSetup):
        def closed(self, device: str) -> None:
            super().closed(device)
            raise DeviceError("it cannot be given back")

    with pipeline() as engine:
        events = engine.events()
        assert result_of(engine.submit(FakeWork("a", setup=Stuck("stuck")))).status is Status.COMPLETED
        idle(engine)
        assert engine.evict("stuck", timeout_s=SOON_S)
        assert result_of(engine.submit(FakeWork("b"))).status is Status.COMPLETED
        closed = next(event for event in events if event.what is What.CLOSED)
    assert "stuck: " in closed.text and "it cannot be given back" in closed.text


def is_waiting(engine: Pipeline, job_id: str) -> bool:
    """Whether a worker has the job, and waits for its device."""
    lock = engine._board.devices[0].lock
    return job_id in at_work(engine) and any(
        one.urgency() == Priority.CRITICAL for one in list(lock._waiting)
    )


def test_a_job_cancelled_on_the_device_ends_at_the_next_boundary() -> None:
    release, begun, reached = threading.Event(), threading.Event(), []

    def two_kernels(turn: Any) -> None:
        with turn.on_device():
            begun.set()
            release.wait(SOON_S)
            turn.boundary()
            reached.append("the second kernel")

    setup = FakeSetup(fates={"cuda:0": deque([two_kernels])})
    with pipeline() as engine:
        job = engine.submit(FakeWork("a", setup=setup))
        assert begun.wait(SOON_S)
        other = engine.submit(FakeWork("b", setup=setup))
        assert job.cancel()
        assert result_of(job).status is Status.CANCELLED
        release.set()
        assert result_of(other).status is Status.COMPLETED
        idle(engine)
        assert engine.status().memory[0].by_purpose == {}
    assert reached == []


def test_a_mistake_of_the_engines_own_answers_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = pipeline()
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    release = threading.Event()
    jobs = [engine.submit(FakeWork(name, preparing=lambda _: release.wait(SOON_S))) for name in "abc"]

    def breaks(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("cuzk.engine.dispatcher.Dispatcher.prepared", breaks)
    release.set()
    assert [type(result_of(job).error) for job in jobs] == [ZeroDivisionError] * 3
    with pytest.raises(CuzkError):
        engine.submit(FakeWork("d"))
    assert engine.close(timeout_s=SOON_S)


# ---- setups before there is work ----


@pytest.mark.parametrize("gpu_lock", ["narrow", "none"])
def test_a_setup_is_opened_before_there_is_work_and_closed_again(gpu_lock: str) -> None:
    setup = FakeSetup(device_bytes=1, host_bytes=1)
    with pipeline("cuda:0", "cuda:1", gpu_lock=gpu_lock) as engine:
        assert engine.preload(setup, timeout_s=SOON_S) and not engine.preload(setup)
        opened = ["cuda:0", "cuda:1"] if gpu_lock == "narrow" else ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]
        assert sorted(setup.opened) == opened
        assert result_of(engine.submit(FakeWork("a", setup=setup))).status is Status.COMPLETED
        idle(engine)
        assert engine.evict(setup.name, timeout_s=SOON_S) and not engine.evict(setup.name)
        assert setup.opened == []
        assert [memory.used for memory in engine.status().memory] == [0, 0]


def test_what_a_job_uses_is_not_evicted() -> None:
    release = threading.Event()
    setup = FakeSetup(fates={"cuda:0": deque([stalls(release)])})
    with pipeline() as engine:
        assert engine.preload(setup, timeout_s=SOON_S)
        job = engine.submit(FakeWork("a", setup=setup))
        until_a_worker_is_busy(engine)
        assert not engine.evict(setup.name)
        release.set()
        assert result_of(job).status is Status.COMPLETED


def test_preloading_makes_room_and_waits_for_it() -> None:
    old, new = (FakeSetup(name, device_bytes=MIB, host_bytes=40 * MIB) for name in ("old", "new"))
    release = threading.Event()
    old.fates["cuda:0"] = deque([stalls(release)])
    with pipeline() as engine:
        job = engine.submit(FakeWork("a", setup=old))
        until_a_worker_is_busy(engine)
        with pytest.raises(ResourceError, match="could not be opened within"):
            engine.preload(new, timeout_s=0.01)
        release.set()
        result_of(job)
        assert engine.preload(new, timeout_s=SOON_S)
        assert (old.opened, new.opened) == ([], ["cuda:0"])


def test_a_setup_that_no_device_can_open_is_told_with_the_reason() -> None:
    broken = FakeSetup("broken", opening={"cuda:0": DeviceError("no driver")})
    with pipeline() as engine:
        with pytest.raises(DeviceError, match="no driver"):
            engine.preload(broken, timeout_s=SOON_S)
        with pytest.raises(ResourceError, match="the budget is 1 MiB"):
            engine.preload(FakeSetup("large", device_bytes=2 * MIB))
        assert [memory.used for memory in engine.status().memory] == [0, 0]


def test_preloading_ends_with_the_engine() -> None:
    release = threading.Event()
    old, new = (FakeSetup(name, host_bytes=40 * MIB) for name in ("old", "new"))
    old.fates["cuda:0"] = deque([stalls(release)])
    engine = pipeline()
    engine.submit(FakeWork("a", setup=old))
    until_a_worker_is_busy(engine)
    threading.Timer(0.02, lambda: engine.close(drain=False, timeout_s=0)).start()
    with pytest.raises(EngineError, match="closing"):
        engine.preload(new)
    release.set()
    assert engine.close(timeout_s=SOON_S)


# ---- the end ----


def test_an_exception_in_the_callers_block_cancels_what_is_under_way() -> None:
    release = threading.Event()
    with pytest.raises(KeyError), pipeline() as engine:
        job = engine.submit(FakeWork("a", preparing=lambda _: release.wait(SOON_S)))
        job.then(lambda _: release.set())
        raise KeyError
    assert result_of(job).status is Status.CANCELLED
    assert engine_threads() == []


@pytest.mark.parametrize("ends", ["proven", "not prepared", "not proven", "cancelled"])
@pytest.mark.usefixtures("no_garbage_collection")
def test_what_a_job_held_is_gone_when_it_has_ended(ends: str) -> None:
    go_on = threading.Event()

    def prepare(partition: int) -> None:
        go_on.wait(SOON_S)
        if ends == "not prepared":
            raise ValueError(partition)

    with pipeline() as engine:
        setup = FakeSetup(fates={"cuda:0": deque([raises(ValueError("a fault"))])})
        if ends != "not proven":
            setup.fates.clear()
        work = FakeWork("a", (0, 1), setup, preparing=prepare)
        held = weakref.ref(work)
        job = engine.submit(work)
        assert ends != "cancelled" or job.cancel()
        go_on.set()
        assert (result_of(job).status is Status.COMPLETED) == (ends == "proven")
        del work
        until(lambda: held() is None, engine)  # a thread may be on its way back to its queue


@pytest.mark.usefixtures("no_garbage_collection")
def test_setups_are_gone_when_the_engine_has_closed() -> None:
    """Also while it, its jobs and their results are kept."""
    setup = FakeSetup()
    held = weakref.ref(setup)
    with pipeline("cuda:0", "cuda:1") as engine:
        jobs = [engine.submit(FakeWork(name, (0, 1, 2), setup)) for name in "ab"]
        results = [result_of(job) for job in jobs]
        engine.preload(setup)
        del setup
        assert held() is not None
    assert held() is None and all(result.proof for result in results)


# ---- anything at once ----


def lingers(turn: Any) -> None:
    """Some kernels, after each of which something may come in between; together, for some, a stall."""
    with turn.on_device():
        for _ in range(4):
            time.sleep(0.0005)
            turn.boundary()


class Storm:
    """Submissions, cancellations, failures and the end, from several threads, as a seed says."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        choose = self.random.choice
        self.setups = [
            FakeSetup(f"setup {k}", device_bytes=choose([1, MIB // 2, MIB]), host_bytes=choose([0, MIB]))
            for k in range(3)
        ]
        unhappy = [
            wrong,
            wrong,
            raises(DeviceError("x")),
            raises(ResourceError("x")),
            raises(ValueError("x")),
        ]
        fates = [*unhappy, lingers, *[None] * 6]
        for setup in self.setups:
            for device in ("cuda:0", "cuda:1"):
                drawn = (choose(fates) for _ in range(self.random.randrange(12)))
                setup.fates[device] = deque(fate or (lambda turn: turn.boundary()) for fate in drawn)
        self.engine = pipeline(
            "cuda:0",
            "cuda:1",
            host_bytes=8 * MIB,
            partition_workers=choose([1, 3]),
            gpu_workers_per_device=choose([1, 2]),
            gpu_lock=choose(["narrow", "coarse"]),
            results_kept=5,
            stall_after_s=choose([0.001, SOON_S]),
        )
        self.answered: list[tuple[Job, FakeWork]] = []

    def caller(self, seed: int) -> None:
        random = Random(seed)
        for _ in range(random.randrange(1, 8)):
            setup = random.choice(self.setups)
            work = FakeWork(
                f"{setup.name} {random.randrange(20)}",
                tuple(range(random.randrange(1, 5))),
                setup,
                input_bytes=random.randrange(1000),
                partition_bytes=random.choice([0, MIB]),
                preparing=self.unlucky if random.random() < 0.1 else lambda partition: None,
            )
            work.digest += f" {len(work.partitions)}"
            try:
                job = self.engine.submit(
                    work,
                    priority=random.choice(list(Priority)),
                    deadline_s=random.choice([None, None, 0.002]),
                )
            except CuzkError:
                continue
            self.answered.append((job, work))
            if random.random() < 0.2:
                job.cancel()

    @staticmethod
    def unlucky(partition: int) -> None:
        raise ValueError("a bad path")

    def blow(self) -> None:
        callers = [
            threading.Thread(target=self.caller, args=(self.random.randrange(1 << 30),)) for _ in range(3)
        ]
        for caller in callers:
            caller.start()
        if self.random.random() < 0.5:
            for caller in callers:
                caller.join()
        assert self.engine.close(drain=self.random.random() < 0.7, timeout_s=SOON_S), "it hangs"
        for caller in callers:
            caller.join()

    def check(self) -> None:
        for job, work in self.answered:
            result = job.result
            assert result is not None, job.id
            if result.status is Status.COMPLETED:
                assert result.proof == work.whole_proof
            else:
                assert result.error is not None and result.proof is None
        status = self.engine.status()
        assert not status.jobs and not status.pending and not status.ready
        assert [memory.used for memory in status.memory] == [0, 0]
        assert [device.memory.used for device in status.devices] == [0, 0]
        assert [setup.opened for setup in self.setups] == [[], [], []]
        assert engine_threads() == []


@pytest.mark.parametrize(
    "seeds",
    [pytest.param(range(40), id="some"), pytest.param(range(40, 1040), id="1000", marks=pytest.mark.stress)],
)
def test_whatever_happens_at_once_every_caller_is_answered_and_everything_given_back(seeds: range) -> None:
    for seed in seeds:
        storm = Storm(seed)
        try:
            storm.blow()
            storm.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize(
    "count", [pytest.param(500, id="500"), pytest.param(10_000, id="10000", marks=pytest.mark.stress)]
)
def test_many_jobs_leave_no_trace(count: int) -> None:
    setup = FakeSetup(device_bytes=1, host_bytes=1)
    with pipeline("cuda:0", results_kept=10) as engine:
        sizes = []
        for k in range(count):
            job = engine.submit(FakeWork(f"w{k}", (0, 1), setup, input_bytes=1, partition_bytes=1))
            assert result_of(job).status is Status.COMPLETED
            if k % (count // 4) == count // 4 - 1:
                idle(engine)
                gc.collect()
                sizes.append(len(gc.get_objects()))
        board = engine._board
        assert (len(board.runs), len(board.runs._kept), len(board.runs._keys)) == (0, 10, 10)
        assert len(board.pending._heap) == len(board.ready._heap) == len(board.finished) == 0
        assert sizes[-1] < sizes[0] + 200, sizes


def test_a_proof_that_holds_in_parts_but_not_as_a_whole_is_not_handed_out() -> None:
    class Mixed(FakeWork):
        def assemble(self, proofs: Any) -> bytes:
            return super().assemble(list(reversed(proofs)))

    with pipeline() as engine:
        result = result_of(engine.submit(Mixed("a", (0, 1))))
    assert result.proof is None and isinstance(result.error, ProofError)
