"""What an engine shows of itself: setups that are open, and how jobs ended."""

from __future__ import annotations

from cuzk.engine.events import What
from cuzk.engine.status import SetupStatus, snapshot
from cuzk.errors import EngineError
from tests.engine.fakes import FakeSetup, FakeWork
from tests.engine.hall import GIB, Hall


def test_a_setup_shows_its_bytes_its_users_and_since_when_it_is_idle() -> None:
    hall = Hall(gpu_lock="none")
    hall.submit(FakeWork("a", partitions=(0, 1), setup=FakeSetup("small", device_bytes=GIB // 4)))
    hall.prepare()
    first, second = hall.take(), hall.take(1)
    assert first is not None and second is not None
    hall.now = 3.0
    hall.proved(second, 1)
    hall.now = 5.0
    assert snapshot(hall.board, 0.0).devices[0].opened == (
        SetupStatus(name="small", nbytes=GIB // 2, users=1, idle_s=2.0),
    )
    hall.proved(first)
    assert snapshot(hall.board, 0.0).devices[0].opened[0].users == 0
    hall.close_all()
    assert snapshot(hall.board, 0.0).devices[0].opened == ()


def test_the_event_of_an_ended_job_has_its_kind_and_result() -> None:
    hall = Hall()
    hall.submit(FakeWork("good"), request_id="one")
    hall.run_all()
    late = hall.submit(FakeWork("late"), request_id="two")
    late.cancel()
    one, two = [event for event in list(hall.events._events) if event.what is What.ENDED]
    assert (one.job_id, one.kind, two.job_id, two.kind) == ("one", "fake", "two", "fake")
    assert one.result is not None and one.result.require_proof() == b"good:0;"
    assert two.result is not None and two.result is late.result
    assert isinstance(two.result.error, EngineError)
    hall.close_all()
