"""Decisions of the engine, one at a time and without threads: order, joining, memory, setups, faults."""

from __future__ import annotations

import pytest

from cuzk.engine.dispatcher import Verdict
from cuzk.engine.events import What
from cuzk.engine.jobs import Priority, Stage, Status
from cuzk.engine.placing import Close, Open, Prepare, Prove
from cuzk.errors import DeviceError, DeviceFault, EngineError, ProofError, ResourceError
from tests.engine.fakes import FakeSetup, FakeWork
from tests.engine.hall import GIB, Hall

LOW, NORMAL, HIGH, CRITICAL = Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL
TWO_CARDS = {"cuda:0": GIB, "cuda:1": GIB}


def status_of(job: object) -> Status | None:
    result = job.result  # type: ignore[attr-defined]
    return None if result is None else result.status


# ---- the way of a job ----


def test_a_job_ends_with_the_proofs_of_all_its_partitions_in_order() -> None:
    hall = Hall()
    work = FakeWork("a", partitions=(0, 2, 5))
    job = hall.submit(work)
    assert len(hall.prepare()) == 3
    first, second = hall.take(), hall.take(1)
    assert first is not None and second is not None
    hall.proved(second, 1)
    assert hall.prove_all() == ["a 5"]
    assert job.result is None
    hall.proved(first)
    hall.assemble_all()
    assert job.result is not None and job.result.status is Status.COMPLETED
    assert job.result.require_proof() == work.whole_proof == b"a:0;a:2;a:5;"
    hall.close_all()


def test_priority_goes_first_then_age_then_partition() -> None:
    hall = Hall()
    for name, priority in (
        ("old", NORMAL),
        ("low", LOW),
        ("new", NORMAL),
        ("urgent", CRITICAL),
        ("high", HIGH),
    ):
        hall.submit(FakeWork(name, partitions=(0, 1)), priority)
    in_order = [f"{name} {k}" for name in ("urgent", "high", "old", "new", "low") for k in (0, 1)]
    assert [f"{unit.run.id} {unit.partition}" for unit in hall.prepare()] == in_order
    assert hall.prove_all() == in_order
    hall.close_all()


def test_an_urgent_job_goes_before_what_is_already_prepared() -> None:
    hall = Hall()
    hall.submit(FakeWork("slow", partitions=(0, 1, 2)))
    hall.prepare()
    first = hall.take()
    assert first is not None
    hall.submit(FakeWork("urgent"), CRITICAL)
    hall.prepare()
    hall.proved(first)
    assert hall.prove_all() == ["urgent 0", "slow 1", "slow 2"]


def test_an_urgent_job_is_prepared_at_once_however_much_is_prepared_already() -> None:
    hall = Hall(synthesis_lookahead=1, partition_workers=2)
    hall.submit(FakeWork("slow", partitions=tuple(range(10))))
    assert len(hall.prepare()) == 3
    hall.submit(FakeWork("usual"))
    assert hall.prepare() == []
    hall.submit(FakeWork("high", partitions=(0, 1)), HIGH)
    hall.submit(FakeWork("urgent"), CRITICAL)
    assert [unit.run.id for unit in hall.prepare()] == [
        "urgent"
    ]  # nothing waits for a second one of its kind
    assert hall.take() is not None
    assert [unit.run.id for unit in hall.prepare()] == ["high"]
    hall.submit(FakeWork("as urgent"), HIGH)
    assert hall.prepare() == []


def test_an_urgent_job_that_waits_for_memory_lets_nobody_else_through() -> None:
    hall = Hall(synthesis_lookahead=1, partition_workers=1, host_bytes=10)
    hall.submit(FakeWork("slow", partitions=tuple(range(10)), partition_bytes=4))
    assert len(hall.prepare()) == 2
    hall.submit(FakeWork("urgent", partition_bytes=4), CRITICAL)
    assert hall.prepare() == []
    assert hall.said(What.WAITS_FOR_MEMORY) == ["urgent 0"]
    errand = hall.take()
    assert errand is not None
    hall.proved(errand)
    assert [unit.run.id for unit in hall.prepare()] == ["urgent"]


def test_whoever_joins_with_a_higher_priority_moves_the_whole_run() -> None:
    hall = Hall()
    hall.submit(FakeWork("a", partitions=(0, 1)))
    hall.submit(FakeWork("b", partitions=(0, 1)))
    hall.prepare(1)
    hall.prepare(1)  # both of a
    urgent = hall.submit(FakeWork("b", partitions=(0, 1)), HIGH)
    hall.prepare()
    assert hall.prove_all() == ["b 0", "b 1", "a 0", "a 1"]
    hall.assemble_all()
    assert urgent.result is not None
    hall.close_all()


# ---- the same work twice ----


def test_the_same_work_is_done_once_and_every_caller_is_answered() -> None:
    hall = Hall()
    jobs = [hall.submit(FakeWork("a")) for _ in range(3)]
    hall.run_all()
    assert [job.result.proof for job in jobs if job.result] == [b"a:0;"] * 3
    assert hall.said(What.PROVED) == ["a 0 cuda:0"]
    late = hall.submit(FakeWork("a"))
    assert late.result is not None and late.result.proof == b"a:0;"
    assert hall.said(What.SUBMITTED) == ["a"]


def test_the_same_work_under_another_name_is_other_work() -> None:
    hall = Hall()
    jobs = [hall.submit(FakeWork("a"), request_id=f"request {k}") for k in range(2)]
    hall.run_all()
    assert [job.id for job in jobs] == ["request 0", "request 1"]
    assert len(hall.said(What.PROVED)) == 2


def test_one_name_for_two_works_gives_each_its_own_proof_and_id() -> None:
    hall = Hall()
    jobs = [hall.submit(FakeWork(name), request_id="porep-1000-7") for name in ("abc", "xyz")]
    assert [job.id for job in jobs] == ["porep-1000-7", "porep-1000-7~xyz"]
    hall.run_all()
    assert [job.result.proof for job in jobs if job.result] == [b"abc:0;", b"xyz:0;"]
    assert hall.reception.find("porep-1000-7~xyz").result is jobs[1].result  # type: ignore[union-attr]


def test_work_that_failed_is_tried_again_when_it_is_submitted_again() -> None:
    hall = Hall()
    job = hall.submit(FakeWork("a"))
    errand = hall.next_to_prepare()
    assert isinstance(errand, Prepare)
    hall.dispatcher.failed(errand.unit, ValueError("bad path"))
    assert status_of(job) is Status.FAILED
    again = hall.submit(FakeWork("a"))
    hall.run_all()
    assert status_of(again) is Status.COMPLETED and again.id == job.id


def test_only_so_many_results_are_kept() -> None:
    hall = Hall(results_kept=2)
    for name in "abc":
        hall.submit(FakeWork(name))
    hall.run_all()
    found = {name: hall.reception.find(name) for name in "abc"}
    assert found["a"] is None
    assert [found[name].result.proof for name in "bc"] == [b"b:0;", b"c:0;"]  # type: ignore[union-attr]


# ---- cancelling, deadlines, the end ----


def test_cancelling_answers_at_once_and_frees_what_no_thread_is_at() -> None:
    hall = Hall()
    job = hall.submit(FakeWork("a", partitions=tuple(range(4)), input_bytes=100, partition_bytes=10))
    hall.prepare(2)
    taken, errand = hall.take(), hall.next_to_prepare()
    assert taken is not None and isinstance(errand, Prepare)
    assert (hall.board.host.used_bytes, hall.board.inputs.used_bytes) == (30, 100)
    assert job.cancel() and not job.cancel()
    assert status_of(job) is Status.CANCELLED
    assert hall.board.inputs.used_bytes == 0
    assert hall.board.host.used_bytes == 20  # of the unit on the device and the one in preparation
    hall.dispatcher.prepared(errand.unit, "too late")
    hall.dispatcher.abandoned(hall.workers[0], taken, hall.turn(0, taken))
    assert hall.board.host.used_bytes == 0
    assert hall.take() is None and hall.next_to_prepare() is None
    hall.close_all()


def test_one_caller_who_gives_up_leaves_the_work_to_the_others() -> None:
    hall = Hall()
    urgent, patient = hall.submit(FakeWork("a"), CRITICAL), hall.submit(FakeWork("a"), LOW)
    other = hall.submit(FakeWork("b"))
    assert urgent.cancel()
    assert status_of(urgent) is Status.CANCELLED and patient.result is None
    hall.prepare()
    assert hall.prove_all() == ["b 0", "a 0"]  # only the patient one's priority is left
    hall.assemble_all()
    assert (status_of(patient), status_of(other)) == (Status.COMPLETED, Status.COMPLETED)


def test_a_deadline_is_each_callers_own() -> None:
    hall = Hall()
    hurried, patient = hall.submit(FakeWork("a"), deadline_s=5.0), hall.submit(FakeWork("a"))
    alone = hall.submit(FakeWork("b"), deadline_s=5.0)
    hall.now = 4.9
    hall.reception.expire()
    assert (hurried.result, alone.result) == (None, None)
    hall.now = 5.0
    hall.reception.expire()
    assert (status_of(hurried), status_of(patient), status_of(alone)) == (
        Status.TIMEOUT,
        None,
        Status.TIMEOUT,
    )
    assert isinstance(hurried.result.error, EngineError)  # type: ignore[union-attr]
    hall.prepare()
    assert hall.prove_all() == ["a 0"]
    hall.assemble_all()
    assert status_of(patient) is Status.COMPLETED


def test_a_handle_that_was_found_waits_like_the_others() -> None:
    hall = Hall()
    job = hall.submit(FakeWork("a"))
    found = hall.reception.find("a")
    assert found is not None and hall.reception.find("b") is None
    assert job.cancel()
    hall.run_all()
    assert found.result is not None and found.result.proof == b"a:0;"


def test_cancelling_by_id_ends_the_work_for_everyone() -> None:
    hall = Hall()
    jobs = [hall.submit(FakeWork("a")) for _ in range(2)]
    assert hall.reception.cancel_all("a") and not hall.reception.cancel_all("a")
    assert [status_of(job) for job in jobs] == [Status.CANCELLED] * 2
    hall.close_all()


def test_a_closing_engine_takes_nothing_and_finishes_what_it_has() -> None:
    hall = Hall()
    job = hall.submit(FakeWork("a", partitions=(0, 1)))
    hall.reception.close(drain=True)
    with pytest.raises(EngineError, match="takes no more work"):
        hall.submit(FakeWork("b"))
    hall.close_all()
    assert status_of(job) is Status.COMPLETED


def test_closing_without_draining_answers_everyone() -> None:
    hall = Hall()
    jobs = [hall.submit(FakeWork(name)) for name in "ab"]
    hall.prepare(1)
    hall.close_all(drain=False)
    assert [status_of(job) for job in jobs] == [Status.CANCELLED] * 2


# ---- memory of the host ----


def test_what_can_never_fit_is_refused_at_once_with_the_plan() -> None:
    hall = Hall(host_bytes=10 * GIB)
    setup = FakeSetup(host_bytes=8 * GIB)
    with pytest.raises(ResourceError, match="takes 11 GiB of memory, the budget is 10 GiB") as raised:
        hall.submit(FakeWork("a", setup=setup, partition_bytes=3 * GIB))
    assert raised.value.where == ("host memory, the plan: parameters fake-2KiB 8 GiB, one partition 3 GiB")
    with pytest.raises(ResourceError, match="takes 2 GiB of memory, the budget is 1 GiB"):
        hall.submit(FakeWork("b", input_bytes=2 * GIB))
    hall.close_all()


def test_a_job_whose_inputs_do_not_fit_beside_those_that_wait_is_refused_for_now() -> None:
    hall = Hall(input_bytes=10)
    hall.submit(FakeWork("a", input_bytes=6))
    with pytest.raises(ResourceError, match="leave 4 B of 10 B"):
        hall.submit(FakeWork("b", input_bytes=6))
    hall.run_all()
    job = hall.submit(FakeWork("b", input_bytes=6))
    hall.run_all()
    assert status_of(job) is Status.COMPLETED


def test_partitions_wait_for_memory_and_that_can_be_seen() -> None:
    hall = Hall(host_bytes=10)
    job = hall.submit(FakeWork("a", partitions=(0, 1, 2), partition_bytes=5))
    assert len(hall.prepare()) == 2
    assert hall.board.admission.waiting is not None and hall.board.admission.waiting.partition == 2
    assert hall.said(What.WAITS_FOR_MEMORY) == ["a 2"]
    assert hall.prove_all() == ["a 0", "a 1"]
    assert len(hall.prepare()) == 1 and hall.board.admission.waiting is None
    hall.run_all()
    assert status_of(job) is Status.COMPLETED
    assert hall.board.host.peak_bytes == 10
    hall.close_all()


def test_a_small_unit_does_not_overtake_a_large_one_that_waits_for_memory() -> None:
    hall = Hall(host_bytes=10)
    hall.submit(FakeWork("a", partition_bytes=6))
    hall.prepare()
    hall.submit(FakeWork("large", partition_bytes=8))
    hall.submit(FakeWork("small", partition_bytes=1))
    assert hall.prepare() == []
    assert hall.prove_all() == ["a 0"]
    assert [unit.run.id for unit in hall.prepare()] == ["large", "small"]


def test_what_has_begun_goes_on_while_the_first_unit_waits_for_the_memory_of_its_parameters() -> None:
    hall = Hall(host_bytes=10)
    low = hall.submit(FakeWork("low", setup=FakeSetup("x", host_bytes=6), partitions=(0, 1)), LOW)
    hall.prepare(1)
    other = hall.submit(FakeWork("other", setup=FakeSetup("x", host_bytes=6)), LOW)
    high = hall.submit(FakeWork("high", setup=FakeSetup("y", host_bytes=6)), HIGH)
    assert [(unit.run.id, unit.partition) for unit in hall.prepare()] == [("low", 1)]
    assert hall.prove_all() == ["low 0", "low 1"]
    assert hall.next_to_prepare() is None  # until the run has ended
    hall.assemble_all()
    assert [unit.run.id for unit in hall.prepare()] == ["high"]
    hall.run_all()
    assert [status_of(job) for job in (low, other, high)] == [Status.COMPLETED] * 3
    hall.close_all()


def test_a_run_begins_only_where_all_that_have_begun_can_go_on() -> None:
    hall = Hall(host_bytes=11)
    hall.submit(FakeWork("a", setup=FakeSetup("x", host_bytes=3), partitions=(0, 1), partition_bytes=4))
    assert len(hall.prepare(1)) == 1
    hall.submit(FakeWork("b", setup=FakeSetup("y", host_bytes=5)), HIGH)
    [unit] = hall.prepare(1)
    assert unit.run.id == "a"  # beside the parameters of both, 8, no partition of it would fit
    hall.run_all()
    hall.close_all()


def test_parameters_that_nobody_needs_make_room() -> None:
    hall = Hall(host_bytes=10)
    old, new = FakeSetup("old", host_bytes=6), FakeSetup("new", host_bytes=6)
    hall.submit(FakeWork("a", setup=old))
    hall.run_all()
    assert old.opened == ["cuda:0"]
    job = hall.submit(FakeWork("b", setup=new))
    errand = hall.next_to_prepare()
    assert isinstance(errand, Close) and errand.slot.setup is old
    hall.close(errand)
    hall.run_all()
    assert status_of(job) is Status.COMPLETED and (old.opened, new.opened) == ([], ["cuda:0"])
    hall.close_all()


def test_prepared_partitions_cannot_take_the_memory_that_opening_their_setup_needs() -> None:
    hall = Hall(host_bytes=10)
    job = hall.submit(
        FakeWork("a", partitions=tuple(range(9)), setup=FakeSetup(host_bytes=7), partition_bytes=1)
    )
    assert len(hall.prepare()) == 3
    hall.run_all()
    assert status_of(job) is Status.COMPLETED
    hall.close_all()


# ---- setups on devices ----


def test_a_setup_is_opened_once_a_device_and_stays() -> None:
    hall = Hall(TWO_CARDS)
    setup = FakeSetup(device_bytes=GIB)
    for name in "ab":
        hall.submit(FakeWork(name, setup=setup, partitions=(0, 1, 2)))
        hall.run_all()
    assert sorted(setup.opened) == ["cuda:0", "cuda:1"]
    hall.close_all()
    assert setup.opened == []


def test_without_a_lock_each_worker_opens_its_own() -> None:
    hall = Hall(gpu_lock="none")
    setup = FakeSetup(device_bytes=GIB // 2)
    hall.submit(FakeWork("a", setup=setup, partitions=tuple(range(4))))
    hall.prepare()
    first, second = hall.take(0), hall.take(1)
    assert first is not None and second is not None and first.prover is not second.prover
    assert setup.opened == ["cuda:0", "cuda:0"] and hall.devices[0].memory.used_bytes == GIB
    with pytest.raises(ResourceError):
        hall.submit(FakeWork("b", setup=FakeSetup("large", device_bytes=GIB)))


def test_an_idle_worker_opens_what_is_still_being_prepared() -> None:
    hall = Hall()
    hall.submit(FakeWork("a"))
    assert hall.next_for() is None
    assert isinstance(hall.next_to_prepare(), Prepare)
    assert isinstance(hall.next_for(), Open)
    assert hall.next_for(1) is None  # its twin is at it


def test_another_setup_takes_the_place_of_an_idle_one_on_a_small_card() -> None:
    hall = Hall()
    old, new = FakeSetup("old", device_bytes=GIB), FakeSetup("new", device_bytes=GIB)
    hall.submit(FakeWork("a", setup=old, partitions=(0, 1)))
    hall.submit(FakeWork("b", setup=new))
    hall.prepare()
    first, second = hall.take(0), hall.take(1)
    assert first is not None and second is not None
    hall.proved(second, 1)
    assert hall.take(1) is None  # the first is still at work
    hall.proved(first)
    assert hall.prove_all(1) == ["b 0"]
    assert (old.opened, new.opened) == ([], ["cuda:0"])
    hall.close_all()


def contending(*, setup_batch_s: float = 10) -> tuple[Hall, FakeSetup, FakeSetup]:
    hall = Hall(setup_batch_s=setup_batch_s)
    return hall, FakeSetup("porep", device_bytes=GIB), FakeSetup("snap", device_bytes=GIB)


def test_jobs_of_setups_that_do_not_fit_together_are_proven_setup_by_setup() -> None:
    hall, porep, snap = contending()
    for k in range(4):
        hall.submit(FakeWork(f"p{k}", (0, 1), porep))
        hall.submit(FakeWork(f"s{k}", (0, 1), snap))
        hall.now += 2
    hall.prepare()
    assert hall.prove_all() == [f"{name}{k} {i}" for name in "ps" for k in range(4) for i in (0, 1)]
    assert hall.said(What.CLOSED) == ["cuda:0"]
    hall.assemble_all()
    hall.close_all()


def test_a_batch_takes_nothing_in_after_its_time_so_that_others_get_their_turn() -> None:
    hall, porep, snap = contending(setup_batch_s=10)
    hall.submit(FakeWork("p0", setup=porep))
    hall.submit(FakeWork("s0", setup=snap))
    for k in range(1, 30):
        hall.now += 1
        hall.submit(FakeWork(f"p{k}", setup=porep))
    hall.prepare()
    order = hall.prove_all()
    assert order.index("s0 0") == 10  # behind p0 to p9, which came within the time
    assert sorted(order) == sorted([*(f"p{k} 0" for k in range(30)), "s0 0"])


def test_setups_that_fit_together_are_served_as_they_come() -> None:
    hall, _, snap = contending()
    small = FakeSetup("winning", device_bytes=0)
    for k in range(3):
        hall.submit(FakeWork(f"s{k}", setup=snap))
        hall.submit(FakeWork(f"w{k}", setup=small))
    hall.prepare()
    assert hall.prove_all() == ["s0 0", "w0 0", "s1 0", "w1 0", "s2 0", "w2 0"]


def test_priority_goes_before_batches() -> None:
    hall, porep, snap = contending()
    hall.submit(FakeWork("p0", setup=porep))
    hall.submit(FakeWork("s0", setup=snap), Priority.HIGH)
    hall.submit(FakeWork("p1", setup=porep))
    hall.prepare()
    assert hall.prove_all() == ["s0 0", "p0 0", "p1 0"]


def test_one_card_changes_its_setup_for_one_partition_and_the_other_goes_on() -> None:
    hall = Hall(TWO_CARDS)
    porep, snap = FakeSetup("porep", device_bytes=GIB), FakeSetup("snap", device_bytes=GIB)
    hall.submit(FakeWork("p", tuple(range(6)), porep))
    hall.prepare()
    first, second = hall.take(0), hall.take(2)
    assert first is not None and second is not None
    hall.submit(FakeWork("s", (0,), snap), Priority.HIGH)
    hall.prepare()
    hall.proved(first, 0)
    closing = hall.next_for(0)
    assert isinstance(closing, Close)
    hall.close(closing)
    opening = hall.next_for(0)
    assert isinstance(opening, Open) and opening.slot.setup is snap
    hall.proved(second, 2)
    assert hall.prove_all(2) == [f"p {k}" for k in (2, 3, 4, 5)]
    hall.open(opening)
    assert hall.prove_all(0) == ["s 0"]
    assert (porep.opened, snap.opened) == (["cuda:1"], ["cuda:0"])
    hall.assemble_all()
    hall.close_all()


def test_both_cards_change_their_setup_where_there_is_work_for_both() -> None:
    hall = Hall(TWO_CARDS)
    porep, snap = FakeSetup("porep", device_bytes=GIB), FakeSetup("snap", device_bytes=GIB)
    hall.submit(FakeWork("p", (0, 1), porep))
    hall.prepare()
    for number in (0, 2):
        errand = hall.take(number)
        assert errand is not None
        hall.proved(errand, number)
    hall.submit(FakeWork("s", tuple(range(4)), snap), Priority.HIGH)
    hall.prepare()
    assert hall.take(0) is not None and hall.take(2) is not None
    assert sorted(snap.opened) == ["cuda:0", "cuda:1"]


def test_a_setup_stays_for_a_partition_that_is_still_being_prepared() -> None:
    """Else the next setup would push it out, and be pushed out again at once."""
    hall, porep, snap = contending()
    hall.submit(FakeWork("p", (0, 1), porep))
    hall.submit(FakeWork("s", (0,), snap))
    hall.prepare(1)
    last = hall.next_to_prepare()
    assert isinstance(last, Prepare) and last.unit.partition == 1
    hall.prepare(1)
    assert hall.prove_all() == ["p 0"]
    assert porep.opened == ["cuda:0"] and hall.board.ready.first() is not None
    hall.dispatcher.prepared(last.unit, last.work.prepare(1))
    assert hall.prove_all() == ["p 1", "s 0"]


def test_what_was_opened_last_goes_last_though_nothing_was_proven_with_it_yet() -> None:
    hall = Hall({"cuda:0": 10}, host_bytes=100)
    old, fresh, third = (FakeSetup(name, device_bytes=5, host_bytes=1) for name in ("old", "fresh", "third"))
    hall.submit(FakeWork("a", setup=old))
    hall.run_all()
    hall.submit(FakeWork("f", setup=fresh))
    assert isinstance(hall.next_to_prepare(), Prepare)
    opened = hall.next_for()
    assert isinstance(opened, Open)
    hall.open(opened)
    hall.submit(FakeWork("t", setup=third), HIGH)
    hall.prepare()
    closed = hall.next_for()
    assert isinstance(closed, Close) and closed.slot.setup is old


def test_one_setup_is_closed_where_one_gives_room_enough_however_many_threads_look_for_it() -> None:
    hall = Hall({"cuda:0": 10}, host_bytes=100)
    old, other, new = (
        FakeSetup(name, device_bytes=nbytes, host_bytes=1)
        for name, nbytes in (("old", 6), ("other", 4), ("new", 6))
    )
    for setup in (old, other):
        hall.submit(FakeWork(setup.name, setup=setup))
        hall.run_all()
    hall.submit(FakeWork("n", setup=new))
    hall.prepare()
    closing = hall.next_for(0)
    assert isinstance(closing, Close) and closing.slot.setup is old and hall.next_for(1) is None
    hall.close(closing)
    assert isinstance(hall.next_for(1), Open)
    hall = Hall(host_bytes=10)
    old, other, new = (
        FakeSetup(name, host_bytes=nbytes) for name, nbytes in (("old", 6), ("other", 4), ("new", 6))
    )
    for setup in (old, other):
        hall.submit(FakeWork(setup.name, setup=setup))
        hall.run_all()
    hall.submit(FakeWork("n", setup=new))
    closing = hall.next_to_prepare()
    assert isinstance(closing, Close) and closing.slot.setup is old and hall.next_to_prepare() is None
    hall.close(closing)
    assert isinstance(hall.next_to_prepare(), Prepare)


def test_a_setup_too_large_for_every_card_is_refused_and_for_one_goes_to_the_other() -> None:
    hall = Hall({"cuda:0": GIB, "cuda:1": 4 * GIB})
    with pytest.raises(ResourceError, match="takes 8 GiB of memory") as raised:
        hall.submit(FakeWork("a", setup=FakeSetup("huge", device_bytes=8 * GIB)))
    assert raised.value.where is not None and "parameters huge" in raised.value.where
    job = hall.submit(FakeWork("b", setup=FakeSetup("large", device_bytes=2 * GIB)))
    hall.prepare()
    assert hall.next_for(0) is None
    assert hall.prove_all(2) == ["b 0"]
    hall.assemble_all()
    assert status_of(job) is Status.COMPLETED
    hall.close_all()


def test_a_setup_that_cannot_be_opened_here_is_opened_there() -> None:
    hall = Hall(TWO_CARDS)
    setup = FakeSetup(opening={"cuda:0": ResourceError("the GPU has too little free memory")})
    job = hall.submit(FakeWork("a", setup=setup, partitions=(0, 1)))
    hall.prepare()
    errand = hall.next_for(0)
    assert isinstance(errand, Open)
    hall.dispatcher.open_failed(errand.slot, setup.opening["cuda:0"])
    assert hall.next_for(0) is None and job.result is None
    assert hall.prove_all(2) == ["a 0", "a 1"]
    hall.close_all()


def test_a_setup_that_cannot_be_opened_anywhere_fails_its_jobs_with_the_cause_and_no_others() -> None:
    hall = Hall()
    error = ResourceError("the GPU has too little free memory")
    bad = hall.submit(FakeWork("a", setup=FakeSetup("bad"), partition_bytes=5))
    good = hall.submit(FakeWork("b", setup=FakeSetup("good")))
    hall.prepare()
    errand = hall.next_for(0)
    assert isinstance(errand, Open)
    hall.dispatcher.open_failed(errand.slot, error)
    assert bad.result is not None and bad.result.error is error
    assert hall.board.host.used_bytes == 0
    hall.run_all()
    assert status_of(good) is Status.COMPLETED
    again = hall.submit(FakeWork("a", setup=FakeSetup("bad")))  # by now there may be memory
    hall.run_all()
    assert status_of(again) is Status.COMPLETED
    hall.close_all()


# ---- several devices ----


def open_on_all(hall: Hall, *setups: FakeSetup) -> None:
    """By the first worker of each device, for a job that is then done."""
    for setup in setups:
        job = hall.submit(FakeWork(f"before {setup.name}", setup=setup))
        hall.prepare()
        for device in hall.devices:
            errand = hall.next_for(device.workers[0].number)
            assert isinstance(errand, Open)
            hall.open(errand)
        hall.run_all()
        assert status_of(job) is Status.COMPLETED


def waiting_hall(cards: int = 3) -> Hall:
    """All workers have the same setup open and found nothing to do."""
    hall = Hall({f"cuda:{k}": GIB for k in range(cards)})
    open_on_all(hall, FakeSetup())
    assert all(hall.next_for(k) is None for k in range(2 * cards))
    return hall


def test_partitions_go_to_devices_that_have_none_before_a_second_goes_anywhere() -> None:
    hall = waiting_hall()
    hall.submit(FakeWork("a", partitions=(0, 1, 2)))
    hall.prepare()
    first = hall.take(0)
    assert first is not None and first.unit.partition == 0
    assert hall.take(1) is None, "its twin computes, and other devices have nothing to do"
    assert [hall.take(k).unit.partition for k in (2, 4)] == [1, 2]  # type: ignore[union-attr]


def test_a_second_partition_goes_where_the_first_began_first() -> None:
    hall = waiting_hall()
    hall.submit(FakeWork("a", partitions=(0, 1, 2)))
    hall.prepare()
    for now, worker in enumerate((4, 0, 2)):
        hall.now = 10.0 + now
        assert hall.take(worker) is not None
    hall.submit(FakeWork("b", partitions=(0, 1)))
    hall.prepare()
    assert hall.take(3) is None, "two others are free sooner"
    assert [hall.take(k).unit.partition for k in (5, 1)] == [0, 1]  # type: ignore[union-attr]


def test_nothing_is_left_to_a_device_whose_workers_are_all_at_something() -> None:
    """They open other setups: they have no partition, and take none meanwhile."""
    hall = waiting_hall(cards=2)
    hall.submit(FakeWork("a"))
    hall.prepare()
    assert hall.take(0) is not None
    for worker, name in ((2, "x"), (3, "y")):
        hall.submit(FakeWork(name, setup=FakeSetup(name, device_bytes=1)))
        hall.prepare()
        assert isinstance(hall.next_for(worker), Open)
    hall.submit(FakeWork("b"), HIGH)
    hall.prepare()
    taken = hall.take(1)
    assert taken is not None and taken.unit.run.id == "b"


def test_what_was_left_to_a_device_that_then_stands_still_is_for_others() -> None:
    hall = Hall({"cuda:0": GIB, "cuda:1": GIB}, stall_after_s=10)
    hall.submit(FakeWork("a", partitions=(0, 1)))
    hall.prepare()
    assert hall.take(2) is not None
    hall.now = 5.0
    assert hall.take(0) is not None and hall.take(3) is None
    hall.submit(FakeWork("b"))
    hall.prepare()
    assert hall.take(1) is None, "cuda:1 is free sooner"
    woken: list[bool] = []
    hall.board.changed["prove"].notify_all = lambda: woken.append(True)  # type: ignore[method-assign]
    hall.now = 10.0
    hall.reception.report_stalls()
    assert woken and hall.take(1) is not None


def test_urgent_work_goes_where_it_comes_in_between_and_not_where_its_own_prover_is_busy() -> None:
    hall = Hall(TWO_CARDS)
    large, window = FakeSetup("large"), FakeSetup("window")
    open_on_all(hall, large, window)
    hall.submit(FakeWork("first", setup=window), HIGH)
    hall.prepare()
    assert hall.take(0) is not None
    hall.now = 1.0
    hall.submit(FakeWork("usual", setup=large))
    hall.prepare()
    assert hall.take(2) is not None and [hall.next_for(k) for k in (1, 3)] == [None, None]
    hall.submit(FakeWork("second", setup=window), HIGH)
    hall.prepare()
    assert hall.take(1) is None, "it would wait until the first is through"
    second = hall.take(3)
    assert second is not None and second.unit.run.id == "second"


def test_without_a_lock_a_unit_is_taken_only_by_a_worker_whose_own_setup_is_open() -> None:
    hall = Hall({"cuda:0": 10}, gpu_lock="none", host_bytes=10)
    setup = FakeSetup("s", device_bytes=1, host_bytes=2)
    hall.submit(FakeWork("a", setup=setup))
    hall.prepare()
    for k in (1, 0):
        errand = hall.next_for(k)
        assert isinstance(errand, Open)
        hall.open(errand)
    assert hall.prove_all(1) == ["a 0"] and hall.assemble_all() == 1
    assert [hall.next_for(k) for k in (0, 1)] == [None, None]
    hall.submit(FakeWork("b", setup=FakeSetup("t", device_bytes=1, host_bytes=4)))
    closing = hall.next_to_prepare()  # makes room on the host
    assert isinstance(closing, Close) and closing.slot.key == ("s", 1)
    hall.submit(FakeWork("urgent", setup=setup), CRITICAL)
    assert [unit.run.id for unit in hall.prepare(1)] == ["urgent"]
    assert hall.next_for(1) is None
    taken = hall.next_for(0)
    assert isinstance(taken, Prove) and taken.slot.key == ("s", 0)
    hall.close(closing)


def test_without_a_lock_a_worker_takes_what_its_waiting_twin_would_have_to_open_first() -> None:
    hall = Hall({"cuda:0": 4}, gpu_lock="none")
    a, b = FakeSetup("a", device_bytes=2), FakeSetup("b", device_bytes=2)
    hall.submit(FakeWork("a1", (0, 1), a))
    hall.prepare()
    first, second = hall.take(0), hall.take(1)
    assert first is not None and second is not None
    hall.proved(second, 1)
    hall.submit(FakeWork("b1", setup=b))
    hall.proved(first)
    hall.prepare()
    assert hall.prove_all(0) == ["b1 0"]  # in the place of its own a
    hall.assemble_all()
    assert [hall.next_for(k) for k in (0, 1)] == [None, None]
    hall.submit(FakeWork("a2", setup=a))
    hall.prepare()
    assert hall.prove_all(1) == ["a2 0"]


# ---- proofs that do not hold, devices that fail ----


def test_a_wrong_proof_is_proven_again_then_on_another_device_which_shows_who_was_at_fault() -> None:
    hall = Hall(TWO_CARDS)
    job = hall.submit(FakeWork("a"))
    hall.prepare()
    errand = hall.take(0)
    assert errand is not None
    assert hall.rejected(errand) is Verdict.AGAIN
    assert hall.rejected(errand) is Verdict.ELSEWHERE
    assert hall.take(0) is None
    assert hall.prove_all(2) == ["a 0"]
    hall.assemble_all()
    assert status_of(job) is Status.COMPLETED
    assert [(device.strikes, device.wrong) for device in hall.devices] == [(2, 2), (0, 0)]


def test_a_device_whose_proofs_keep_failing_is_set_aside_and_the_other_goes_on() -> None:
    hall = Hall(TWO_CARDS)
    jobs = [hall.submit(FakeWork(name)) for name in "abc"]
    hall.prepare()
    for _ in range(2):
        errand = hall.take(0)
        assert errand is not None
        assert [hall.rejected(errand), hall.rejected(errand)] == [Verdict.AGAIN, Verdict.ELSEWHERE]
        assert len(hall.prove_all(2)) >= 1
        hall.submit(FakeWork("more"))
        hall.prepare()
    assert hall.devices[0].set_aside is not None and "wrong proof" in hall.devices[0].set_aside
    assert hall.said(What.SET_ASIDE) == ["cuda:0"]
    hall.run_all()
    assert {status_of(job) for job in jobs} == {Status.COMPLETED}
    assert hall.devices[0].slots == {}
    hall.close_all()


def test_a_proof_that_holds_nowhere_fails_its_job_and_accuses_no_device() -> None:
    hall = Hall(TWO_CARDS)
    job = hall.submit(FakeWork("a", partition_bytes=5))
    hall.prepare()
    first = hall.take(0)
    assert first is not None
    hall.rejected(first)
    hall.rejected(first)
    second = hall.take(2)
    assert second is not None
    assert hall.rejected(second, 2) is Verdict.OVER
    assert job.result is not None and isinstance(job.result.error, ProofError)
    assert job.result.error.where == "a, partition 0, on cuda:0, cuda:1"
    assert [device.strikes for device in hall.devices] == [0, 0]
    hall.close_all()


def test_a_lone_device_is_set_aside_when_nothing_comes_out_right() -> None:
    hall = Hall()
    for name in "abc":
        job = hall.submit(FakeWork(name))
        hall.prepare()
        errand = hall.take()
        assert errand is not None
        assert [hall.rejected(errand), hall.rejected(errand)] == [Verdict.AGAIN, Verdict.OVER]
        assert isinstance(job.result.error, ProofError)  # type: ignore[union-attr]
    with pytest.raises(DeviceError, match="no device is left"):
        hall.submit(FakeWork("d"))
    hall.close_all()


def test_a_partition_that_succeeds_at_once_clears_a_device() -> None:
    hall = Hall()
    for k in range(6):
        hall.submit(FakeWork(f"flaky {k}"))
        hall.prepare()
        errand = hall.take()
        assert errand is not None
        assert hall.rejected(errand) is Verdict.AGAIN
        hall.proved(errand)
        assert hall.devices[0].strikes == 1
        hall.submit(FakeWork(f"good {k}"))
        hall.prepare()
        hall.prove_all()
        assert hall.devices[0].strikes == 0


def test_a_lost_device_is_set_aside_at_once_and_its_partition_goes_elsewhere() -> None:
    hall = Hall(TWO_CARDS)
    job = hall.submit(FakeWork("a", partitions=(0, 1)))
    hall.prepare()
    errand = hall.take(0)
    assert errand is not None
    assert hall.failed(errand, DeviceFault("the GPU fell off the bus")) is Verdict.ELSEWHERE
    assert hall.devices[0].set_aside == "the GPU fell off the bus"
    assert hall.prove_all(2) == ["a 0", "a 1"]
    hall.assemble_all()
    assert status_of(job) is Status.COMPLETED
    hall.close_all()


def test_when_the_last_device_is_lost_every_job_is_answered() -> None:
    hall = Hall()
    jobs = [hall.submit(FakeWork(name, partition_bytes=7)) for name in "abc"]
    hall.prepare(2)
    errand = hall.take()
    assert errand is not None
    assert hall.failed(errand, DeviceFault("the GPU fell off the bus")) is Verdict.OVER
    for job in jobs:
        assert job.result is not None and isinstance(job.result.error, DeviceError)
        assert "fell off the bus" in str(job.result.error)
    assert hall.board.host.used_bytes == 0
    hall.close_all()


def test_a_unit_that_only_a_lost_device_could_have_taken_fails_its_job() -> None:
    hall = Hall(TWO_CARDS)
    unlucky, other = hall.submit(FakeWork("a")), hall.submit(FakeWork("b"))
    hall.prepare()
    first = hall.take(0)
    assert first is not None
    assert hall.failed(first, DeviceError("launch failed")) is Verdict.ELSEWHERE
    second = hall.take(2)
    assert second is not None and second.unit.run.id == "a"
    third = hall.take(3)
    assert third is not None and third.unit.run.id == "b"
    hall.failed(third, DeviceFault("gone"), 3)
    assert unlucky.result is None  # a worker is still at it
    hall.failed(second, DeviceError("launch failed"), 2)
    assert status_of(unlucky) is Status.FAILED
    hall.run_all()
    assert status_of(other) is Status.COMPLETED
    hall.close_all()


def test_a_prover_that_failed_is_opened_anew() -> None:
    hall = Hall()
    setup = FakeSetup()
    failing, job = hall.submit(FakeWork("a", setup=setup)), hall.submit(FakeWork("b", setup=setup))
    hall.prepare()
    errand = hall.take()
    assert errand is not None
    hall.failed(errand, ValueError("a mistake"))
    assert isinstance(failing.result.error, ValueError)  # type: ignore[union-attr]
    assert isinstance(hall.next_for(), Close)
    hall.workers[0].device.slots[setup.key].prover.close()  # type: ignore[union-attr]
    hall.dispatcher.closed(hall.workers[0].device.slots[setup.key])
    assert hall.prove_all() == ["b 0"]
    hall.assemble_all()
    assert status_of(job) is Status.COMPLETED
    hall.close_all()


def test_a_device_whose_memory_ran_out_gets_the_partition_once_more_and_then_another_does() -> None:
    hall = Hall({"cuda:0": GIB, "cuda:1": GIB})
    job = hall.submit(FakeWork("a"))
    hall.prepare()
    for tries in (1, 2):
        errand = hall.take(0)
        assert errand is not None
        assert hall.failed(errand, ResourceError("the GPU has no memory left"), 0) is Verdict.ELSEWHERE
        assert len(hall.said(What.SHORT_OF_MEMORY)) == 1
        assert hall.said(What.GOES_ELSEWHERE) == ["a 0 cuda:0"] * (tries - 1)
        assert hall.devices[0].slots == {} or errand.slot.spoilt  # its parameters are opened anew
    assert hall.take(0) is None
    assert hall.prove_all(2) == ["a 0"]
    hall.assemble_all()
    assert job.result is not None and job.result.status is Status.COMPLETED
    assert [device.strikes for device in hall.devices] == [0, 0]
    hall.close_all()


def test_a_lone_device_whose_memory_keeps_running_out_fails_the_job_with_the_cause() -> None:
    hall = Hall()
    job = hall.submit(FakeWork("a"))
    hall.prepare()
    verdicts = []
    while (errand := hall.take(0)) is not None:
        verdicts.append(hall.failed(errand, ResourceError("the GPU has no memory left"), 0))
    assert verdicts == [Verdict.ELSEWHERE, Verdict.OVER]
    assert job.result is not None and "no memory left" in str(job.result.error)
    hall.close_all()


def test_errors_are_kept_without_the_frames_that_they_came_through() -> None:
    hall = Hall()
    job = hall.submit(FakeWork("a"))
    errand = hall.next_to_prepare()
    assert isinstance(errand, Prepare)
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as error:
        hall.dispatcher.failed(errand.unit, error)
    assert job.result is not None and job.result.error is not None
    assert job.result.error.__traceback__ is None
    assert job.result.error.__cause__ is not None and job.result.error.__cause__.__traceback__ is None
    [ended] = [event for event in hall.events._events if event.what is What.ENDED]
    assert "test_dispatch.py" in ended.text and "KeyError: 'inner'" in ended.text


# ---- what can be seen ----


def test_a_worker_that_stalls_is_named_once_a_partition() -> None:
    hall = Hall(stall_after_s=10)
    hall.submit(FakeWork("a"))
    hall.prepare()
    errand = hall.take(1)
    assert errand is not None
    hall.now = 9.9
    hall.reception.report_stalls()
    assert not hall.workers[1].is_stalled
    hall.now = 10.0
    hall.reception.report_stalls()
    hall.reception.report_stalls()
    assert hall.said(What.STALLED) == ["a 0 cuda:0"] and hall.workers[1].is_stalled
    hall.proved(errand, 1)
    assert not hall.workers[1].is_stalled


def test_whoever_waits_for_a_twin_is_not_stalled_however_long_that_computes() -> None:
    hall = Hall(stall_after_s=10)
    hall.submit(FakeWork("a", (0, 1)))
    hall.prepare()
    first, second = hall.take(0), hall.take(1)
    assert first is not None and second is not None
    hall.now = 9.0
    assert hall.dispatcher.begins(hall.workers[0])
    hall.now = 18.0
    hall.reception.report_stalls()
    assert hall.said(What.STALLED) == []
    assert hall.dispatcher.begins(hall.workers[1])
    hall.proved(first, 0)
    hall.now = 27.0
    hall.reception.report_stalls()
    assert hall.said(What.STALLED) == []
    hall.now = 28.0
    hall.reception.report_stalls()
    assert hall.said(What.STALLED) == ["a 1 cuda:0"]
    hall.proved(second, 1)
    hall.close_all()


def test_who_has_let_somebody_in_between_is_not_stalled_however_long_that_computes() -> None:
    hall = Hall(stall_after_s=300)
    hall.submit(FakeWork("slow", setup=FakeSetup("large")))
    hall.prepare()
    assert hall.take(0) is not None
    hall.dispatcher.begins(hall.workers[0])
    hall.now = 40.0
    hall.submit(FakeWork("urgent", setup=FakeSetup("small")), HIGH)
    hall.prepare()
    assert hall.take(1) is not None
    hall.dispatcher.pauses(hall.workers[0])
    hall.dispatcher.begins(hall.workers[1])
    hall.now = 339.0
    hall.reception.report_stalls()
    assert hall.said(What.STALLED) == []
    hall.now = 340.0
    hall.reception.report_stalls()
    assert hall.said(What.STALLED) == ["urgent 0 cuda:0"]


def test_a_device_that_stands_still_gets_nothing_new_and_its_unit_goes_to_another() -> None:
    hall = Hall({"cuda:0": GIB, "cuda:1": GIB}, stall_after_s=10)
    work = FakeWork("a", (0, 1))
    job = hall.submit(work)
    hall.prepare()
    lost = hall.take(0)
    assert lost is not None and hall.dispatcher.begins(hall.workers[0])
    hall.now = 10.0
    hall.reception.report_stalls()
    assert hall.said(What.GOES_ELSEWHERE) == ["a 0 cuda:0"]
    assert hall.next_for(0) is None and hall.next_for(1) is None
    assert hall.prove_all(2) == ["a 0", "a 1"]
    hall.assemble_all()
    assert job.result is not None and job.result.proof == work.whole_proof
    assert not hall.dispatcher.begins(hall.workers[0])
    hall.failed(lost, ValueError("at last"), 0)
    assert not hall.devices[0].is_stalled and hall.devices[0].set_aside is None
    hall.close_all()


def test_a_lone_device_that_stands_still_keeps_its_unit() -> None:
    hall = Hall(stall_after_s=10)
    job = hall.submit(FakeWork("a"))
    hall.prepare()
    errand = hall.take(0)
    assert errand is not None and hall.dispatcher.begins(hall.workers[0])
    hall.now = 10.0
    hall.reception.report_stalls()
    hall.proved(errand, 0)
    hall.assemble_all()
    assert job.result is not None and job.result.status is Status.COMPLETED
    hall.close_all()


def test_the_least_urgent_worker_that_does_not_compute_is_called_back() -> None:
    hall = Hall(gpu_workers_per_device=3)
    for name, priority in (("n", Priority.NORMAL), ("l", Priority.LOW), ("h", Priority.HIGH)):
        hall.submit(FakeWork(name), priority)
        hall.prepare()
        assert hall.take(len(name) - 1 + "nlh".index(name)) is not None
    assert hall.dispatcher.begins(hall.workers[0])
    hall.submit(FakeWork("same"), Priority.LOW)
    hall.prepare()
    assert not any(worker.is_called_back for worker in hall.workers)
    hall.submit(FakeWork("urgent"), Priority.CRITICAL)
    hall.prepare()
    assert [worker.is_called_back for worker in hall.workers] == [False, True, False]
    assert not hall.dispatcher.begins(hall.workers[1])


def busy_hall() -> Hall:
    """On each of two cards a worker computes; worker 1 waits for its device; worker 3 has nothing to do."""
    hall = Hall(TWO_CARDS)
    usual, urgent = FakeSetup("usual"), FakeSetup("urgent")
    open_on_all(hall, usual, urgent)
    hall.submit(FakeWork("slow", partitions=(0, 1, 2), setup=usual))
    hall.prepare()
    assert all(hall.take(k) is not None for k in (0, 2, 1))
    for k in (0, 2):
        hall.dispatcher.begins(hall.workers[k])
    return hall


def called_back(hall: Hall) -> list[int]:
    return [worker.number for worker in hall.workers if worker.is_called_back]


def test_a_second_urgent_unit_calls_back_where_the_first_took_the_only_free_worker() -> None:
    hall = busy_hall()
    urgent = FakeSetup("urgent")
    assert hall.next_for(3) is None
    for name in "uv":
        hall.submit(FakeWork(name, setup=urgent), CRITICAL)
    hall.prepare()
    assert called_back(hall) == []
    taken = hall.take(3)
    assert taken is not None and taken.unit.run.id == "u" and called_back(hall) == [1]


def test_a_worker_that_opens_parameters_is_not_free_for_urgent_work() -> None:
    hall = busy_hall()
    hall.submit(FakeWork("other", setup=FakeSetup("other")))
    hall.prepare()
    assert isinstance(hall.next_for(3), Open)
    hall.submit(FakeWork("u", setup=FakeSetup("urgent")), CRITICAL)
    hall.prepare()
    assert called_back(hall) == [1]


def test_timings_add_up_what_was_spent_on_partitions() -> None:
    hall = Hall()
    job = hall.submit(FakeWork("a", partitions=(0, 1)))
    hall.now = 1.0
    errands = [hall.next_to_prepare(), hall.next_to_prepare()]
    hall.now = 3.0
    for errand in errands:
        assert isinstance(errand, Prepare)
        hall.dispatcher.prepared(errand.unit, errand.work.prepare(errand.unit.partition))
    taken = hall.take()
    assert taken is not None
    turn = hall.turn(0, taken)
    with turn.on_device():
        hall.now = 3.5
    hall.dispatcher.proved(hall.workers[0], taken, turn, b"a:0;")
    hall.prove_all()
    hall.now = 4.0
    hall.assemble_all()
    assert job.result is not None
    took = job.result.timings
    assert (took.queue_ms, took.synth_ms, took.gpu_ms, took.total_ms) == (1000, 4000, 500, 4000)


def test_ends_of_jobs_are_recorded_once_each() -> None:
    hall = Hall()
    for name in "abcd":
        hall.submit(FakeWork(name), deadline_s=1.0 if name == "c" else None)
    hall.reception.cancel_all("b")
    hall.now = 2.0
    hall.reception.expire()
    errand = hall.next_to_prepare()
    assert isinstance(errand, Prepare)
    hall.dispatcher.failed(errand.unit, ValueError())
    hall.run_all()
    assert [(name, job) for name, job, _ in hall.records.heard] == [
        ("CANCELLED", "b"), ("FAILED", "c"), ("FAILED", "a"), ("ASSEMBLED", "d")
    ]  # fmt: skip


def test_units_go_through_their_stages_only() -> None:
    hall = Hall()
    hall.submit(FakeWork("a"))
    [unit] = hall.prepare()
    assert unit.stage is Stage.READY
    with pytest.raises(AssertionError):
        unit.to(Stage.PROVED, 0.0)
