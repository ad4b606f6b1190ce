"""How jobs ended, and what happened: counts that only grow, and the last ones in full."""

from __future__ import annotations

import pytest

from cuzk.engine.events import EngineEvent, What
from cuzk.engine.jobs import Status
from cuzk.errors import (
    DeviceFault,
    EngineError,
    InputError,
    ParameterError,
    ProofError,
    ResourceError,
)
from cuzk.server.history import FAILURES_KEPT, HOUR_MS, REFUSED_KEPT, RESULTS_KEPT, Ended, History
from tests.server.sights import took


def ended(name: str = "a", status: Status = Status.COMPLETED, error: Exception | None = None) -> Ended:
    return Ended(job_id=name, kind="porep-c2", status=status, timings=took(1500), error=error)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (InputError("x"), "input"),
        (ParameterError("x"), "parameters"),
        (ResourceError("x"), "resources"),
        (DeviceFault("x"), "device"),
        (ProofError("x"), "wrong proof"),
        (EngineError("x"), "called off"),
        (ZeroDivisionError("x"), "internal"),
    ],
)
def test_every_error_has_a_cause(error: Exception, cause: str) -> None:
    history = History(lambda: 0)
    history.end(ended("a", Status.FAILED, error))
    assert history.look().causes == {cause: 1}


def test_a_cancelled_job_is_no_failure_and_a_late_one_is() -> None:
    history = History(lambda: 0)
    history.end(ended("a", Status.CANCELLED, EngineError("x")))
    history.end(ended("b", Status.TIMEOUT, EngineError("x")))
    told = history.look()
    assert [job.job_id for _, job in told.failures] == ["b"] and told.causes == {"called off": 1}
    assert (told.count(Status.CANCELLED), told.count(Status.TIMEOUT, Status.FAILED)) == (1, 1)


def test_counts_and_sums_never_forget_what_lists_do() -> None:
    history = History(lambda: 0)
    for k in range(2 * RESULTS_KEPT):
        history.end(ended(f"{k}"))
    for k in range(2 * FAILURES_KEPT):
        history.end(ended(f"bad {k}", Status.FAILED, InputError("x")))
    told = history.look()
    assert told.ended == {
        ("porep-c2", Status.COMPLETED): 2 * RESULTS_KEPT,
        ("porep-c2", Status.FAILED): 2 * FAILURES_KEPT,
    }
    assert told.total_s == {"porep-c2": 1.5 * 2 * RESULTS_KEPT}
    assert len(told.results) == RESULTS_KEPT and len(told.failures) == FAILURES_KEPT
    assert told.results[-1][1].job_id == f"bad {2 * FAILURES_KEPT - 1}"


def test_the_last_hour_is_an_hour() -> None:
    now = [0]
    history = History(lambda: now[0])
    history.end(ended("early"))
    now[0] = HOUR_MS // 2
    history.end(ended("late"))
    assert history.look().last_hour == 2
    now[0] = HOUR_MS
    assert history.look().last_hour == 1
    now[0] = 2 * HOUR_MS
    assert history.look().last_hour == 0 and history.look().count(Status.COMPLETED) == 2


def test_requests_that_became_no_jobs_are_told_and_count_as_no_failures() -> None:
    history = History(lambda: 5)
    for k in range(2 * REFUSED_KEPT):
        history.refuse(InputError(f"bad {k}"))
    told = history.look()
    assert len(told.refused) == REFUSED_KEPT and told.refused[-1][0] == 5
    assert told.refused[-1][1].what == f"bad {2 * REFUSED_KEPT - 1}"
    assert told.failures == () and told.causes == {} and told.ended == {}


def test_retries_are_counted_by_why_and_only_what_matters_is_told() -> None:
    history = History(lambda: 7)
    for what in What:
        history.hear(EngineEvent(what=what, at_s=0.0))
    told = history.look()
    assert told.retries == {"wrong proof": 1, "another device": 1, "short of memory": 1}
    assert {event.what for _, event in told.incidents} >= {What.SET_ASIDE, What.STALLED, What.WRONG_PROOF}
    assert not {event.what for _, event in told.incidents} & {What.SUBMITTED, What.PROVED, What.PREPARING}
    assert {at for at, _ in told.incidents} == {7}
