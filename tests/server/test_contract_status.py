"""The status document of Curio's daemon: every field of the contract, one by one, and each of them true."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cuzk.engine.jobs import Priority, Stage, Status
from cuzk.engine.status import SetupStatus
from cuzk.errors import DeviceError
from cuzk.server.contract_status import KEPT_MS, contract_status
from cuzk.server.history import Ended
from cuzk.server.observation import WaitingJob
from tests.server.sights import BUSY, NOW_MS, device, idle, job, sight, told, took, worker

#: Path -> type of every field, [] for the elements of a list.
FIELDS: dict[str, tuple[type, ...]] = {
    "uptime_secs": (float,),
    "memory.total_bytes": (int,),
    "memory.used_bytes": (int,),
    "memory.available_bytes": (int,),
    "synthesis.max_concurrent": (int,),
    "synthesis.active": (int,),
    "pipelines[].job_id": (str,),
    "pipelines[].proof_kind": (str,),
    "pipelines[].started_secs_ago": (float,),
    "pipelines[].total_partitions": (int,),
    "pipelines[].partitions_done": (int,),
    "pipelines[].partitions[].index": (int,),
    "pipelines[].partitions[].state": (str,),
    "pipelines[].partitions[].synth_ms": (int, type(None)),
    "pipelines[].partitions[].gpu_ms": (int, type(None)),
    "gpu_workers[].worker_id": (int,),
    "gpu_workers[].gpu_ordinal": (int,),
    "gpu_workers[].state": (str,),
    "gpu_workers[].current_job": (str, type(None)),
    "gpu_workers[].current_partition": (int, type(None)),
    "gpu_workers[].busy_secs": (float, type(None)),
    "allocations.srs[].circuit_id": (str,),
    "allocations.srs[].bytes": (int,),
    "allocations.srs[].last_used_secs_ago": (float,),
    "allocations.srs[].evictable": (bool,),
    "allocations.pce": (list,),
    "counters.total_completed": (int,),
    "counters.total_failed": (int,),
    "counters.completed_by_kind": (dict,),
    "counters.failed_by_kind": (dict,),
    "counters.queue_depth": (int,),
    "buffers.synth_in_flight": (int,),
    "buffers.provers_in_flight": (int,),
    "buffers.aux_in_flight": (int,),
    "buffers.shells_in_flight": (int,),
    "buffers.pending_handles": (int,),
}
LEAVES = {"counters.completed_by_kind", "counters.failed_by_kind", "allocations.pce"}

FAILED = Ended(
    job_id="bad",
    kind="porep-c2",
    status=Status.FAILED,
    timings=took(3000),
    partitions=(0, 1),
    error=DeviceError("gone"),
)
DONE = Ended(job_id="good", kind="porep-c2", status=Status.COMPLETED, timings=took(9000), partitions=(0, 1))


def document(*given: Any, took_of: dict[str, Any] | None = None, **facts: Any) -> dict[str, Any]:
    times = took_of or {}
    made = contract_status(sight(*given, **facts), lambda name: times.get(name, {}))
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read


def fields(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every leaf with its path."""
    if path in LEAVES or not isinstance(value, dict | list):
        return [(path, value)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in fields(one, f"{path}[]")]
    return [leaf for key, one in value.items() for leaf in fields(one, f"{path}.{key}".lstrip("."))]


def test_it_has_every_field_of_the_contract_and_no_other() -> None:
    assert {path for path, _ in fields(document())} == set(FIELDS)


@pytest.mark.parametrize("path", FIELDS)
def test_every_field_has_the_type_of_the_contract(path: str) -> None:
    found = [type(value) for where, value in fields(document()) if where == path]
    assert found and set(found) <= set(FIELDS[path])


def test_an_idle_engine_has_empty_lists_and_nothing_missing() -> None:
    made = document(replace(idle(), devices=(device(0, opened=()),)), waiting=())
    assert made["pipelines"] == [] and made["allocations"] == {"srs": [], "pce": []}
    assert {worker["state"] for worker in made["gpu_workers"]} == {"idle"}
    assert made["counters"]["queue_depth"] == 0
    assert set(made["buffers"].values()) == {0}


def test_memory_is_that_of_the_host_all_budgets_together() -> None:
    assert document()["memory"] == {"total_bytes": 8000, "used_bytes": 970, "available_bytes": 7030}


def test_synthesis_counts_threads_and_partitions_in_it() -> None:
    assert document()["synthesis"] == {"max_concurrent": 3, "active": 1}


def test_partitions_have_the_states_of_the_contract_and_times_that_go_on() -> None:
    one = document(took_of={"one": {0: (1300, 2100), 1: (1400, None), 2: (1500, 77)}})["pipelines"][0]
    assert (one["job_id"], one["proof_kind"], one["started_secs_ago"]) == ("one", "porep-c2", 12.5)
    assert (one["total_partitions"], one["partitions_done"]) == (5, 1)
    assert [tuple(part.values()) for part in one["partitions"]] == [
        (0, "done", 1300, 2100),
        (1, "gpu", 1400, 2000),
        (2, "synth_done", 1500, None),  # its first attempt, on another device, is nobody's time
        (3, "synthesizing", 4000, None),
        (4, "pending", None, None),
    ]


def test_jobs_that_ended_stay_for_half_a_minute_whatever_became_of_them() -> None:
    times = {"good": {0: (10, 20), 1: (11, 21)}, "bad": {0: (10, 20), 1: (11, None)}}
    fresh = told((NOW_MS - 5000, DONE), (NOW_MS - KEPT_MS + 1, FAILED))
    good, bad = document(idle(), told=fresh, took_of=times)["pipelines"]
    assert good["started_secs_ago"] == 14.0 and good["partitions_done"] == 2
    assert [part["state"] for part in good["partitions"]] == ["done", "done"]
    assert bad["started_secs_ago"] == pytest.approx(3 + 29.999)
    assert [part["state"] for part in bad["partitions"]] == ["done", "failed"] and bad["partitions_done"] == 1
    old = told((NOW_MS - KEPT_MS, DONE), (NOW_MS - KEPT_MS, FAILED))
    assert document(idle(), told=old)["pipelines"] == []


def test_workers_are_idle_or_proving_and_never_both() -> None:
    busy, idle_one, *_ = document()["gpu_workers"]
    assert busy == {
        "worker_id": 0,
        "gpu_ordinal": 0,
        "state": "proving",
        "current_job": "one",
        "current_partition": 1,
        "busy_secs": 2.25,
    }
    assert idle_one == {
        "worker_id": 1,
        "gpu_ordinal": 0,
        "state": "idle",
        "current_job": None,
        "current_partition": None,
        "busy_secs": None,
    }
    assert [worker["gpu_ordinal"] for worker in document()["gpu_workers"]] == [0, 0, 1, 1]


def test_parameters_are_listed_once_with_what_they_take_everywhere() -> None:
    [srs] = document()["allocations"]["srs"]
    assert srs == {
        "circuit_id": "porep-32g",
        "bytes": 800 + 2 * 1000,
        "last_used_secs_ago": 0.0,
        "evictable": False,
    }
    unused = tuple(SetupStatus(name="porep-32GiB", nbytes=5, users=0, idle_s=s) for s in (8.0, 3.0))
    engine = replace(BUSY, devices=tuple(device(k, opened=(unused[k],)) for k in range(2)))
    [srs] = document(engine)["allocations"]["srs"]
    assert (srs["bytes"], srs["last_used_secs_ago"], srs["evictable"]) == (810, 3.0, True)


def test_counters_count_every_job_once_by_kind() -> None:
    late = replace(FAILED, job_id="late", status=Status.TIMEOUT, kind="window-post")
    called_off = replace(FAILED, job_id="off", status=Status.CANCELLED)
    counters = document(told=told(*((0, one) for one in (DONE, DONE, FAILED, late, called_off))))["counters"]
    assert counters == {
        "total_completed": 2,
        "total_failed": 2,
        "completed_by_kind": {"porep-c2": 2},
        "failed_by_kind": {"porep-c2": 1, "window-post": 1},
        "queue_depth": 2,
    }


def test_the_queue_is_that_of_the_server_and_of_the_engine() -> None:
    waiting = tuple(
        WaitingJob(job_id=f"{k}", kind="porep-c2", priority=Priority.NORMAL, for_s=1.0) for k in range(7)
    )
    engine = replace(
        BUSY, jobs=(job("a", Status.WAITING, Stage.PENDING), job("b", Status.RUNNING, Stage.PROVING))
    )
    assert document(engine, waiting=waiting)["counters"]["queue_depth"] == 8


def test_buffers_follow_partitions_and_cannot_drift() -> None:
    assert document()["buffers"] == {
        "synth_in_flight": 1,
        "provers_in_flight": 1,
        "aux_in_flight": 2,
        "shells_in_flight": 0,
        "pending_handles": 0,
    }
    stalled = replace(BUSY, devices=(device(0, workers=(worker(0, ("one", 1), stalled=True),)),))
    assert document(stalled)["gpu_workers"][0]["state"] == "proving"
