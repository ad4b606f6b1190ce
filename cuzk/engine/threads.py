"""The engine's threads but the workers of devices: what each owns, where it takes work, when it ends.

A thread that ends for any other reason than its own end takes the engine with it: everyone is answered.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from cuzk.engine.board import Board
from cuzk.engine.dispatcher import Dispatcher
from cuzk.engine.jobs import Unit
from cuzk.engine.placing import Close, Prepare
from cuzk.engine.reception import Reception
from cuzk.engine.recorder import Recorder


class EngineThread(threading.Thread, ABC):
    """Runs `serve` to its end, and reports what no thread should ever raise."""

    def __init__(self, name: str, abort: Callable[[Exception], None]) -> None:
        super().__init__(name=f"cuzk {name}", daemon=True)
        self._abort = abort

    def run(self) -> None:
        try:
            self.serve()
        except Exception as error:  # a mistake of ours: callers must not wait for ever
            self._abort(error)
            raise

    @abstractmethod
    def serve(self) -> None:
        """What the thread does, until it is to end."""


def close_slot(dispatcher: Dispatcher, errand: Close) -> None:
    """Close what a slot holds. What goes wrong is said, and changes nothing: the slot is given up."""
    error: Exception | None = None
    try:
        errand.prover.close()
    except Exception as raised:  # thread boundary: nobody else needs what was closed
        error = raised
    dispatcher.closed(errand.slot, error)


class Preparer(EngineThread):
    """Prepares partitions on the host.

    owns   the unit it is at, until that is in the queue
    talks  takes pending units, puts ready ones
    ends   when the engine is over
    """

    def __init__(
        self,
        number: int,
        dispatcher: Dispatcher,
        recorder: Recorder,
        *,
        clock: Callable[[], float],
        abort: Callable[[Exception], None],
    ) -> None:
        super().__init__(f"preparer {number}", abort)
        self._dispatcher, self._recorder, self._clock = dispatcher, recorder, clock

    def serve(self) -> None:
        while (errand := self._dispatcher.next_to_prepare()) is not None:
            if isinstance(errand, Close):
                close_slot(self._dispatcher, errand)
            else:
                self._prepare(errand)
            del errand  # waiting for the next one must not keep this one's inputs alive

    def _prepare(self, errand: Prepare) -> None:
        unit = errand.unit
        self._record("SYNTH_START", unit)
        begin = self._clock()
        try:
            prepared = errand.work.prepare(unit.partition)
        except Exception as error:  # thread boundary: it becomes the job's
            self._record("FAILED", unit)
            self._dispatcher.failed(unit, error)
            return
        self._record("SYNTH_END", unit, synth_ms=round((self._clock() - begin) * 1000))
        self._record("GPU_QUEUE", unit)
        self._dispatcher.prepared(unit, prepared)

    def _record(self, name: str, unit: Unit, **detail: int | str) -> None:
        self._recorder.record(name, unit.run.id, partition=unit.partition, **detail)


class Assembler(EngineThread):
    """Joins the proofs of a job's partitions.

    owns   the run that it is at
    talks  takes finished runs, ends them
    ends   when the engine is over
    """

    def __init__(self, dispatcher: Dispatcher, *, abort: Callable[[Exception], None]) -> None:
        super().__init__("assembler", abort)
        self._dispatcher = dispatcher

    def serve(self) -> None:
        while (finished := self._dispatcher.next_to_assemble()) is not None:
            run, proofs = finished
            try:
                proof = run.work.assemble(proofs)
            except Exception as error:  # thread boundary: it becomes the job's
                self._dispatcher.assembly_failed(run, error)
            else:
                self._dispatcher.assembled(run, proof)
            del run, finished


class Watch(EngineThread):
    """Answers jobs whose deadline has come, and reports partitions that are on a device for too long.

    wakes  when the next of both is due; a deadline that comes in rings the alarm, and a worker that begins
           now is not due before the longest wait is over
    ends   when the engine is over
    """

    def __init__(self, board: Board, reception: Reception, *, abort: Callable[[Exception], None]) -> None:
        super().__init__("watch", abort)
        self._board, self._reception = board, reception

    def serve(self) -> None:
        board = self._board
        while True:
            self._reception.expire()
            self._reception.report_stalls()
            with board.held():
                if board.is_over:
                    return
                board.alarm.wait(self._seconds_to_next())

    def _seconds_to_next(self) -> float:
        board = self._board
        now, longest = board.clock(), board.settings.stall_after_s
        due = [job.deadline for run in board.runs.live for job in run.jobs if job.deadline is not None]
        due += [worker.since + longest for worker in board.working() if not worker.is_stalled]
        return max(0.0, min(due, default=now + longest) - now)
