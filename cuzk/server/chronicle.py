"""What the engine says, as log lines, and to the event loop what the daemon must know of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from cuzk.engine.events import EngineEvent, Subscription, What
from cuzk.server.circuits import circuit_id
from cuzk.server.log import Log

_ENGINE, _SRS = Log("cuzk_core.engine"), Log("cuzk_core.srs_manager")
_PARTITIONS = {
    What.READY: "partition synthesis complete, pushing to GPU queue",
    What.PROVED: "partition GPU prove complete",
}
_TROUBLES = {
    What.WRONG_PROOF: "a partition's proof did not verify, it is proven again",
    What.GOES_ELSEWHERE: "a partition goes to another device",
    What.SHORT_OF_MEMORY: "a device ran out of memory, the partition is tried again",
    What.CANNOT_OPEN: "parameters cannot be opened",
    What.STALLED: "a partition is on a device for too long",
    What.SET_ASIDE: "a device is set aside",
}
#: What may change whether a proof could start.
_TURNS = {What.OPENED, What.CLOSED, What.CANNOT_OPEN, What.SET_ASIDE, What.FAILED}


class Chronicle(threading.Thread):
    """Writes until the subscription ends.

    owns  the subscription
    call  called from this thread when parameters were opened or closed, a device was set aside, or the
          engine has failed
    """

    def __init__(self, events: Subscription, call: Callable[[], object]) -> None:
        super().__init__(name="cuzk chronicle", daemon=True)
        self._events, self._call = events, call

    def run(self) -> None:
        for event in self._events:
            self._write(event)
            if event.what in _TURNS:
                self._call()

    def close(self) -> None:
        self._events.close()
        self.join()

    def _write(self, event: EngineEvent) -> None:
        about = {"job_id": event.job_id, "partition": event.partition, "device": event.device}
        fields = {name: value for name, value in about.items() if value not in ("", None)}
        if event.what in _PARTITIONS:
            _ENGINE.info(_PARTITIONS[event.what], **fields)
        elif event.what in _TROUBLES:
            _ENGINE.warn(_TROUBLES[event.what], **fields, text=event.text)
        elif event.what is What.FAILED:
            _ENGINE.error("a mistake in cuzk ended the engine", error=event.text)
        elif event.what is What.OPENED:
            _SRS.info("SRS loaded successfully", circuit_id=circuit_id(event.text), **fields)
        elif event.what is What.CLOSED:
            _SRS.info("SRS evicted", circuit_id=circuit_id(event.text), **fields)
