"""What an engine shows of itself: the setups that are open."""

from __future__ import annotations

from cuzk.engine.status import SetupStatus, snapshot
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
