"""What the page is told: the state at a moment and spans, complete, bounded, and in one clock."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from cuzk.engine.events import EngineEvent, What
from cuzk.engine.jobs import Priority, Stage, Status
from cuzk.errors import DeviceError
from cuzk.server.history import Ended
from cuzk.server.live_status import JOBS_SHOWN, live_spans, live_status
from cuzk.server.observation import WaitingJob
from cuzk.server.recent import Recent
from cuzk.timeline.spans import Kind, Span
from tests.server.sights import BUSY, NOW_MS, device, job, sight, told, took, worker


def document(*given: Any, **facts: Any) -> dict[str, Any]:
    made = live_status(sight(*given, **facts), lambda name: {0: (1300, 2100)} if name == "one" else {})
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read


def test_jobs_show_partitions_with_stage_since_when_and_what_they_took() -> None:
    one, two, three = document()["jobs"]
    assert (one["job_id"], one["status"], one["priority"], one["callers"]) == ("one", "RUNNING", "NORMAL", 1)
    assert one["since_ms"] == NOW_MS - 12_500
    assert [part["stage"] for part in one["partitions"]] == [
        "proved",
        "proving",
        "ready",
        "preparing",
        "pending",
    ]
    first = one["partitions"][0]
    assert (first["since_ms"], first["synth_ms"], first["gpu_ms"]) == (NOW_MS - 1000, 1300, 2100)
    assert (two["job_id"], two["status"]) == ("two", "WAITING")
    assert (three["job_id"], three["priority"], three["partitions"]) == ("three", "HIGH", [])


def test_of_very_many_jobs_the_most_urgent_are_shown_and_all_are_counted() -> None:
    waiting = tuple(
        WaitingJob(job_id=f"w{k}", kind="porep-c2", priority=Priority.LOW, for_s=1.0) for k in range(1000)
    )
    late = job("critical", Status.WAITING, Stage.PENDING, priority=Priority.CRITICAL)
    made = document(replace(BUSY, jobs=(*BUSY.jobs, late)), waiting=waiting)
    assert [one["job_id"] for one in made["jobs"][:4]] == ["one", "critical", "two", "w0"]
    assert len(made["jobs"]) == JOBS_SHOWN
    assert (made["queue"]["jobs_waiting"], made["queue"]["jobs_running"]) == (1002, 1)


def test_devices_show_time_by_part_workers_memory_and_what_the_driver_says() -> None:
    first, second = document()["devices"]
    assert first["time"]["300"]["parts_ms"] == {
        "kernels": 150_000, "call": 0, "ready": 0, "synthesis": 0, "nothing": 150_000,
    }  # fmt: skip
    assert (first["time"]["300"]["efficiency_percent"], first["time"]["60"]["efficiency_percent"]) == (50, 0)
    assert second["time"]["300"]["efficiency_percent"] is None  # it never told of a kernel
    assert first["workers"][0] == {
        "number": 0, "job_id": "one", "kind": "porep-c2", "partition": 1,
        "since_ms": NOW_MS - 2250, "stalled": False,
    }  # fmt: skip
    assert first["workers"][1]["job_id"] is None and first["workers"][1]["since_ms"] is None
    assert first["memory"] == {
        "name": "cuda:0", "total_bytes": 4000, "used_bytes": 1000, "peak_bytes": 1050,
        "by_purpose": {"parameters porep-32GiB": 1000},
    }  # fmt: skip
    assert first["card"]["temperature_c"] == 61 and second["card"] is None


def test_trouble_shows_with_its_reasons() -> None:
    stalled = worker(0, ("one", 1), stalled=True)
    sick = device(set_aside="lost", strikes=3, wrong_proofs=2, unfit={"key": "too small"}, workers=(stalled,))
    [shown] = document(replace(BUSY, devices=(sick,)))["devices"]
    assert (shown["set_aside"], shown["strikes"], shown["wrong_proofs"]) == ("lost", 3, 2)
    assert shown["unfit"] == {"key": "too small"} and shown["workers"][0]["stalled"]
    made = document(replace(BUSY, waits_for_memory=("one", 3), closing=True), not_ready="why not")
    assert made["queue"]["waits_for_memory"] == ["one", 3]
    assert made["not_ready"] == "why not" and made["closing"]


def test_failures_say_what_where_and_what_to_do_the_newest_first() -> None:
    mishap = DeviceError("the card is lost", where="cuda:3", next="reset it")
    facts = {"kind": "porep-c2", "status": Status.FAILED, "timings": took(5)}
    jobs = told(
        (100, Ended(job_id="a", error=mishap, **facts)),
        (200, Ended(job_id="b", error=ZeroDivisionError("x"), **facts)),
    )
    made = document(told=jobs)
    b, a = made["failures"]
    assert (a["cause"], a["what"], a["where"], a["next"], a["at_ms"]) == (
        "device", "the card is lost", "cuda:3", "reset it", 100,
    )  # fmt: skip
    assert (b["cause"], b["what"], b["where"], b["next"]) == ("internal", "ZeroDivisionError: x", None, None)
    assert [result["job_id"] for result in made["results"]] == ["b", "a"]
    assert made["failures_by_cause"] == {"device": 1, "internal": 1} and made["totals"]["FAILED"] == 2


def test_results_have_all_their_times() -> None:
    times = took(9000, queue_ms=1, srs_ms=2, synth_ms=3, gpu_ms=4, lock_ms=5)
    done = Ended(job_id="a", kind="k", status=Status.COMPLETED, timings=times, partitions=(0, 1))
    [result] = document(told=told((7, done)))["results"]
    assert result == {
        "job_id": "a", "kind": "k", "status": "COMPLETED", "at_ms": 7, "partitions": 2,
        "total_ms": 9000, "queue_ms": 1, "srs_ms": 2, "synth_ms": 3, "gpu_ms": 4, "lock_ms": 5,
    }  # fmt: skip


def test_incidents_are_told_the_newest_first() -> None:
    events = tuple(
        (k, EngineEvent(what=What.SET_ASIDE, at_s=0.0, device=f"cuda:{k}", text="lost")) for k in (1, 2)
    )
    made = document(told=replace(told(), incidents=events))
    assert [(one["at_ms"], one["what"], one["device"]) for one in made["incidents"]] == [
        (2, "set aside", "cuda:2"), (1, "set aside", "cuda:1"),
    ]  # fmt: skip


def test_spans_are_short_rows_and_kinds_that_nobody_draws_are_left_out() -> None:
    spans = [
        Span(Kind.CALL, "long name of a job", 3, 1, 0, 10, 20, True),
        Span(Kind.TAKEN, "long name of a job", 3, 1, 0, 9, 10, False),
        Span(Kind.LOCK, "long name of a job", 3, 1, 0, 12, 18, False),
    ]
    left = [Span(Kind.SYNTHESIS, "another", None, None, None, 15, None, False)]
    assert live_spans(Recent(now_ms=30, ended=spans, open=left, count=9)) == {
        "now_ms": 30,
        "ended": [["call", 0, 1, 0, 3, 10, 20, 1]],
        "open": [["synthesis", None, None, 1, None, 15, None, 0]],
        "jobs": ["long name of a job", "another"],
    }
