"""The thread that turns prepared partitions into checked proofs on one device; two of them share one."""

from __future__ import annotations

from collections.abc import Callable

from cuzk.engine.devices import Worker
from cuzk.engine.dispatcher import Dispatcher, Verdict
from cuzk.engine.jobs import Unit
from cuzk.engine.placing import Close, Open, Prove
from cuzk.engine.recorder import Recorder
from cuzk.engine.settings import GpuLock
from cuzk.engine.threads import EngineThread, close_slot
from cuzk.engine.turn import Abandoned, Overtaken, Turn


class DeviceWorker(EngineThread):
    """Proves on one device.

    owns     the unit it is at, from the queue to the assembler
    borrows  the open setup, which its slot keeps as long as it has users
    shares   the device's lock with its twin, held inside its turn only: one computes, the other does what
             comes before and after on the host
    talks    takes ready units and setups to open or close; reports each
    ends     when the engine is over; on a device that is set aside it only closes what is open
    """

    def __init__(
        self,
        place: Worker,
        mode: GpuLock,
        dispatcher: Dispatcher,
        recorder: Recorder,
        *,
        clock: Callable[[], float],
        abort: Callable[[Exception], None],
    ) -> None:
        super().__init__(f"worker {place.number} on {place.device.name}", abort)
        self._place, self._mode = place, mode
        self._dispatcher, self._recorder, self._clock = dispatcher, recorder, clock

    def serve(self) -> None:
        while (errand := self._dispatcher.next_for(self._place)) is not None:
            if isinstance(errand, Open):
                self._open(errand)
            elif isinstance(errand, Close):
                close_slot(self._dispatcher, errand)
            else:
                self._prove(errand)
            del errand  # waiting for the next one must not keep this one's inputs alive

    def _open(self, errand: Open) -> None:
        slot, begin = errand.slot, self._clock()
        try:
            prover = slot.setup.open(slot.device.name)
        except Exception as error:  # thread boundary: this device cannot serve the setup
            self._dispatcher.open_failed(slot, error)
        else:
            self._dispatcher.opened(slot, prover, self._clock() - begin)

    def _prove(self, errand: Prove) -> None:
        """Until the proof holds, or the unit goes elsewhere or nowhere."""
        unit, place = errand.unit, self._place
        self._record(unit, "GPU_PICKUP")
        turn = self._turn(errand)
        try:
            verdict = Verdict.AGAIN
            while verdict is Verdict.AGAIN:
                proof = self._attempt(errand, turn)
                if errand.work.holds(unit.partition, proof):
                    self._dispatcher.proved(place, errand, turn, proof)
                    return
                self._record(unit, "FAILED", reason="wrong proof")
                verdict = self._dispatcher.rejected(place, errand, turn)
        except Abandoned:
            self._record(unit, "CANCELLED")
            self._dispatcher.abandoned(place, errand, turn)
            return
        except Overtaken:
            self._record(unit, "FAILED", reason="overtaken")
            verdict = self._dispatcher.overtaken(place, errand, turn)
        except Exception as error:  # thread boundary: it becomes the device's, or the job's
            self._record(unit, "FAILED", reason=type(error).__name__)
            verdict = self._dispatcher.prove_failed(place, errand, turn, error)
        if verdict is Verdict.ELSEWHERE:
            self._recorder.record("GPU_QUEUE", unit.run.id, partition=unit.partition)

    def _turn(self, errand: Prove) -> Turn:
        unit, place = errand.unit, self._place
        return Turn(
            place.device.lock,
            self._mode,
            user=errand.prover,
            urgency=lambda: unit.run.priority,
            is_over=lambda: unit.run.is_over or place.is_lost,
            is_overtaken=lambda: place.is_called_back or place.device.is_stalled,
            begins=lambda: self._dispatcher.begins(place),
            pauses=lambda: self._dispatcher.pauses(place),
            record=lambda name, **detail: self._record(unit, name, **detail),
            clock=self._clock,
        )

    def _attempt(self, errand: Prove, turn: Turn) -> bytes:
        """A proof, not yet checked."""
        self._record(errand.unit, "GPU_START")
        begin = self._clock()
        with turn.whole():
            proof = errand.prover.prove(errand.prepared, turn)
        self._record(errand.unit, "GPU_END", gpu_ms=round((self._clock() - begin) * 1000))
        return proof

    def _record(self, unit: Unit, name: str, **detail: int | str) -> None:
        place = self._place
        self._recorder.record(
            name,
            unit.run.id,
            worker=place.number,
            partition=unit.partition,
            device=place.device.ordinal,
            **detail,
        )
