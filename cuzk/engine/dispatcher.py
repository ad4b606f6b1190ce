"""What the engine's threads ask: what to do next, and where to put what they did.

A thread asks for an errand, does it without the lock, and reports; reports of runs that have ended are taken
and forgotten. Asking waits, unless it is told not to; None means that the engine is over.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, TypeVar

from cuzk.engine.board import Board, bare, described
from cuzk.engine.devices import Device, Slot, SlotState, Worker
from cuzk.engine.events import What
from cuzk.engine.jobs import Run, Stage, Status, Unit
from cuzk.engine.placing import Close, Open, Prepare, Prove, closing
from cuzk.engine.seam import Prover
from cuzk.engine.turn import Turn
from cuzk.errors import DeviceError, DeviceFault, ProofError, ResourceError, lacks_memory

T = TypeVar("T")


class Verdict(enum.Enum):
    """What becomes of a unit whose proof did not hold, or whose device failed."""

    AGAIN = "again"  # by the same worker, at once
    ELSEWHERE = "elsewhere"
    OVER = "over"


#: Proofs of one partition that did not hold: after the first it is proven again at once, after the second on
#: another device, after the third its job fails.
WRONG_PROOFS = 3


class Dispatcher:
    """The threads' side of a board."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._uses = 0  # of slots; guarded by the board's lock

    def _next(self, kind: str, choose: Callable[[], T], *, wait: bool) -> T:
        """What `choose` gives, as soon as it gives something."""
        board = self._board
        with board.held():
            while True:
                chosen = choose()
                if chosen is not None or board.is_over or not wait:
                    return chosen
                board.changed[kind].wait()

    # ---- preparation ----

    def next_to_prepare(self, *, wait: bool = True) -> Prepare | Close | None:
        return self._next("prepare", self._choose_to_prepare, wait=wait)

    def _choose_to_prepare(self) -> Prepare | Close | None:
        """A unit that got its memory; while one waits for that, setups that no run needs are closed."""
        board, before = self._board, self._board.admission.waiting
        unit = self._next_unit()
        waiting = board.admission.waiting
        if waiting is not None and waiting is not before:
            board.say(What.WAITS_FOR_MEMORY, unit=waiting)
        if unit is None:
            return self._make_room() if waiting is not None or board.preloads else None
        run = unit.run
        unit.to(Stage.PREPARING, board.clock())
        board.preparing.add(unit)
        if run.begun_s is None:
            run.begun_s = unit.since
            run.to(Status.RUNNING)
            board.admission.begin(run)
        board.say(What.PREPARING, unit=unit)
        board.notify()  # others may open the setup now, or take the next unit
        return Prepare(unit, run.work)

    def _next_unit(self) -> Unit | None:
        """While enough are prepared for the devices, only one that is more urgent than all of them."""
        board = self._board
        settings, usable = board.settings, sum(device.set_aside is None for device in board.devices)
        enough = settings.synthesis_lookahead * max(usable, 1) + settings.partition_workers
        if len(board.ready) + len(board.preparing) < enough:
            return board.admission.next()
        first, prepared = board.pending.first(), (*board.ready, *board.preparing)
        if first is None or any(unit.run.priority >= first.run.priority for unit in prepared):
            return None
        return board.admission.next(only_first=True)

    def _make_room(self) -> Close | None:
        """What no run needs, one setup after another: what is closing already may be enough."""
        for lease in self._board.leases.idle():
            slots = [
                slot
                for device in self._board.devices
                for slot in device.slots.values()
                if slot.setup.key == lease.setup.key
            ]
            for slot in slots:
                if slot.is_idle:
                    return closing(slot)
            if any(slot.state is SlotState.CLOSING for slot in slots):
                return None
        return None

    def prepared(self, unit: Unit, value: Any) -> None:
        """The unit is in the queue from now on."""
        board = self._board
        with board.held():
            board.preparing.discard(unit)
            unit.run.spent.synth_s += board.clock() - unit.since
            if board.is_dropped(unit):
                return
            unit.prepared = value
            self._make_ready(unit)

    def _make_ready(self, unit: Unit) -> None:
        """For any device that may still be asked; a unit that none may ends its run."""
        board = self._board
        if board.takers(unit):
            board.say(What.READY, unit=unit)
            board.make_ready(unit)
            return
        self._fail(unit, board.nobody_left(unit))

    def failed(self, unit: Unit, error: Exception) -> None:
        """Preparation failed: the input is at fault, or we are."""
        with self._board.held():
            self._board.preparing.discard(unit)
            self._fail(unit, error)

    def _fail(self, unit: Unit, error: Exception) -> None:
        board = self._board
        if not unit.run.is_over:
            board.end(unit.run, Status.FAILED, error=error)
        board.is_dropped(unit)

    # ---- proving ----

    def next_for(self, worker: Worker, *, wait: bool = True) -> Prove | Open | Close | None:
        return self._next("prove", lambda: self._choose(worker), wait=wait)

    def _choose(self, worker: Worker) -> Prove | Open | Close | None:
        board, worker.waits = self._board, False
        chosen = board.placing.choose(worker)
        if chosen is None and board.is_over and (slot := worker.device.eviction()) is not None:
            chosen = closing(slot)
        errand = self._begin_proof(worker, chosen) if isinstance(chosen, Unit) else chosen
        worker.waits, worker.is_away = errand is None, isinstance(errand, Open | Close)
        first = board.ready.first()
        if errand is not None and first is not None:  # which may have been left to this worker
            board.call_back_for(first)
            board.changed["prove"].notify_all()
        return errand

    def _begin_proof(self, worker: Worker, unit: Unit) -> Prove:
        board = self._board
        slot = worker.device.slots[board.placing.slot_key(worker, unit.run.work.setup)]
        assert slot.prover is not None, slot.key
        self._uses += 1
        slot.users, slot.last_use, slot.since = slot.users + 1, self._uses, board.clock()
        board.ready.discard(unit)
        unit.to(Stage.PROVING, board.clock())
        worker.unit, worker.since = unit, unit.since
        board.say(What.PROVING, unit=unit, device=worker.device)
        board.changed["prepare"].notify_all()
        return Prove(unit, unit.run.work, unit.prepared, slot, slot.prover)

    def begins(self, worker: Worker) -> bool:
        """The worker has the device from now on; False if it should give up its unit instead."""
        with self._board.held():
            worker.computes, worker.is_paused, worker.since = True, False, self._board.clock()
            return not (worker.is_called_back or worker.is_lost)

    def pauses(self, worker: Worker) -> None:
        """The worker lets somebody in between, until it begins again."""
        with self._board.held():
            worker.is_paused = True

    def _leave(self, worker: Worker, errand: Prove, turn: Turn) -> bool:
        """The worker is done with the unit, whatever came out. False if somebody else has got it."""
        is_its_own, worker.unit = not worker.is_lost, None
        worker.computes = worker.is_paused = False
        worker.is_stalled = worker.is_lost = worker.is_called_back = False
        errand.slot.users, errand.slot.since = errand.slot.users - 1, self._board.clock()
        errand.unit.run.spent.gpu_s += turn.held_s
        errand.unit.run.spent.lock_s += turn.waited_s
        self._board.notify()
        return is_its_own

    def proved(self, worker: Worker, errand: Prove, turn: Turn, proof: bytes) -> None:
        """A proof that holds. What the same unit failed on before is to blame for that."""
        board, unit = self._board, errand.unit
        with board.held():
            if not self._leave(worker, errand, turn):
                return
            if not unit.wrong:
                worker.device.strikes = 0
            if not board.is_dropped(unit):
                unit.to(Stage.PROVED, board.clock())
                unit.free()
                board.say(What.PROVED, unit=unit, device=worker.device)
                self._add_proof(unit, proof)
            self._blame(unit, unit.wrong)

    def _add_proof(self, unit: Unit, proof: bytes) -> None:
        run = unit.run
        run.proofs[unit.partition] = proof
        if len(run.proofs) == len(run.units):
            run.to(Status.ASSEMBLING)
            self._board.finished.append(run)
        self._board.notify()

    def rejected(self, worker: Worker, errand: Prove, turn: Turn) -> Verdict:
        """A proof that does not hold."""
        board, unit, device = self._board, errand.unit, worker.device
        with board.held():
            if worker.is_lost:
                self._leave(worker, errand, turn)
                return Verdict.OVER
            device.wrong += 1
            unit.wrong.append(device.name)
            board.say(What.WRONG_PROOF, unit=unit, device=device)
            if len(unit.wrong) == 1 and not unit.run.is_over and device.set_aside is None:
                return Verdict.AGAIN
            self._leave(worker, errand, turn)
            if board.is_dropped(unit):
                return Verdict.OVER
            if len(unit.wrong) < WRONG_PROOFS and self._goes_elsewhere(unit, device):
                return Verdict.ELSEWHERE
            self._fail(unit, self._wrong_proof(unit))
            if len(set(unit.wrong)) == 1:  # there is nobody else to suspect but the input
                self._blame(unit, [device.name])
            return Verdict.OVER

    def _goes_elsewhere(self, unit: Unit, device: Device) -> bool:
        """Whether another device can be asked; then the unit waits for one."""
        board = self._board
        unit.avoid.add(device.name)
        if not board.takers(unit):
            return False
        board.say(What.GOES_ELSEWHERE, unit=unit, device=device)
        self._make_ready(unit)
        return True

    def _blame(self, unit: Unit, devices: list[str]) -> None:
        for device in self._board.devices:
            for _ in range(devices.count(device.name)):
                self._board.strike(device, f"a wrong proof of {unit.run.id}, partition {unit.partition}")

    def _wrong_proof(self, unit: Unit) -> ProofError:
        return ProofError(
            f"no proof of this partition verified, in {len(unit.wrong)} attempts; none was handed out",
            where=f"{unit.run.id}, partition {unit.partition}, on {', '.join(dict.fromkeys(unit.wrong))}",
            next="check the parameters with `cuzk params verify` and C1 with `cuzk circuit digest --check`",
        )

    def prove_failed(self, worker: Worker, errand: Prove, turn: Turn, error: Exception) -> Verdict:
        """An exception: a device's own sends the unit to another one; any other ends its run."""
        board, unit, device = self._board, errand.unit, worker.device
        with board.held():
            errand.slot.spoilt = True
            is_its_own = self._leave(worker, errand, turn)
            verdict = self._after_exception(unit, device, error) if is_its_own else Verdict.OVER
            if isinstance(error, DeviceError):
                board.strike(device, error.what, fatal=isinstance(error, DeviceFault))
            return verdict

    def _after_exception(self, unit: Unit, device: Device, error: Exception) -> Verdict:
        if self._board.is_dropped(unit):
            return Verdict.OVER
        if lacks_memory(error) and device.name not in unit.short:
            unit.short.add(device.name)  # the setup is opened anew, and may make do with less
            self._board.say(What.SHORT_OF_MEMORY, unit=unit, device=device, text=str(error))
            self._make_ready(unit)
            return Verdict.ELSEWHERE
        if isinstance(error, DeviceError | ResourceError) and self._goes_elsewhere(unit, device):
            return Verdict.ELSEWHERE
        self._fail(unit, error)
        return Verdict.OVER

    def abandoned(self, worker: Worker, errand: Prove, turn: Turn) -> None:
        """Stopped at a boundary, because its run has ended."""
        with self._board.held():
            if self._leave(worker, errand, turn):
                dropped = self._board.is_dropped(errand.unit)
                assert dropped, errand.unit.stage

    def overtaken(self, worker: Worker, errand: Prove, turn: Turn) -> Verdict:
        """The unit goes back to where it came from."""
        with self._board.held():
            if not self._leave(worker, errand, turn) or self._board.is_dropped(errand.unit):
                return Verdict.OVER
            self._make_ready(errand.unit)
            return Verdict.ELSEWHERE

    # ---- setups on devices ----

    def opened(self, slot: Slot, prover: Prover, seconds: float) -> None:
        board = self._board
        with board.held():
            self._uses += 1
            slot.prover, slot.state, slot.since = prover, SlotState.OPEN, board.clock()
            slot.last_use = self._uses
            for run in board.runs.live:
                if run.work.setup.key == slot.setup.key:
                    run.spent.srs_s = max(run.spent.srs_s, min(seconds, board.clock() - run.submitted_s))
            board.say(What.OPENED, device=slot.device, text=slot.setup.name)
            board.notify()

    def open_failed(self, slot: Slot, error: Exception) -> None:
        """The device cannot serve this setup, as long as runs with it are under way."""
        board, device = self._board, slot.device
        with board.held():
            device.unfit[slot.setup.key] = bare(error)
            board.release(slot)
            board.say(What.CANNOT_OPEN, device=device, text=f"{slot.setup.name}: {error}")
            if isinstance(error, DeviceFault):
                board.strike(device, error.what, fatal=True)
            board.fail_stranded()

    def closed(self, slot: Slot, error: Exception | None = None) -> None:
        board = self._board
        with board.held():
            text = slot.setup.name if error is None else f"{slot.setup.name}: {described(error)}"
            board.say(What.CLOSED, device=slot.device, text=text)
            board.release(slot)

    # ---- assembly ----

    def next_to_assemble(self, *, wait: bool = True) -> tuple[Run, list[bytes]] | None:
        """A run, and its proofs in the order of its partitions."""
        return self._next("assemble", self._first_finished, wait=wait)

    def _first_finished(self) -> tuple[Run, list[bytes]] | None:
        finished = self._board.finished
        while finished:
            run = finished.popleft()
            if not run.is_over:
                return run, [run.proofs[unit.partition] for unit in run.units]
        return None

    def assembled(self, run: Run, proof: bytes) -> None:
        with self._board.held():
            if not run.is_over:
                self._board.end(run, Status.COMPLETED, proof=proof)

    def assembly_failed(self, run: Run, error: Exception) -> None:
        with self._board.held():
            if not run.is_over:
                self._board.end(run, Status.FAILED, error=error)
