"""The engine without threads: a test plays each of them, errand by errand, under a clock that it moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuzk.engine.board import Board
from cuzk.engine.budget import Budget
from cuzk.engine.devices import Device, Worker
from cuzk.engine.dispatcher import Dispatcher, Verdict
from cuzk.engine.events import Announcer, What
from cuzk.engine.jobs import Job, Priority, Unit
from cuzk.engine.placing import Close, Open, Prepare, Prove
from cuzk.engine.reception import Reception
from cuzk.engine.settings import Settings
from cuzk.engine.turn import Turn
from tests.engine.fakes import FakeWork, fake_proof

GIB = 1 << 30


class Records:
    """A recorder that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, dict[str, int | str]]] = []

    def record(self, name: str, job: str, **detail: int | str) -> None:
        self.heard.append((name, job, detail))


class Hall:
    """A board with its two sides; `workers` by number. By default all partitions are prepared ahead."""

    def __init__(
        self,
        devices: Mapping[str, int] | None = None,
        *,
        host_bytes: int = 64 * GIB,
        input_bytes: int = GIB,
        synthesis_lookahead: int = 1000,
        **settings: Any,
    ) -> None:
        self.now = 0.0
        self.announcer, self.records = Announcer(), Records()
        self.settings = Settings(synthesis_lookahead=synthesis_lookahead, **settings)
        self.devices = [
            Device(name, k, Budget(name, nbytes))
            for k, (name, nbytes) in enumerate((devices or {"cuda:0": GIB}).items())
        ]
        self.workers: list[Worker] = []
        for device in self.devices:
            for _ in range(self.settings.gpu_workers_per_device):
                worker = Worker(len(self.workers), device)
                device.workers.append(worker)
                self.workers.append(worker)
        self.board = Board(
            self.settings,
            (Budget("host memory", host_bytes), Budget("inputs", input_bytes)),
            self.devices,
            clock=lambda: self.now,
            announcer=self.announcer,
            recorder=self.records,
        )
        self.events = self.announcer.subscribe(100_000)
        self.reception, self.dispatcher = Reception(self.board), Dispatcher(self.board)

    def submit(
        self,
        work: FakeWork,
        priority: Priority = Priority.NORMAL,
        *,
        request_id: str = "",
        deadline_s: float | None = None,
    ) -> Job:
        return self.reception.submit(work, request_id=request_id, priority=priority, deadline_s=deadline_s)

    def said(self, what: What) -> list[str]:
        """Job, partition and device of all such events so far."""
        return [
            f"{event.job_id} {event.partition} {event.device}".replace(" None", "").strip()
            for event in list(self.events._events)
            if event.what is what
        ]

    # ---- a preparer ----

    def next_to_prepare(self) -> Prepare | Close | None:
        return self.dispatcher.next_to_prepare(wait=False)

    def prepare(self, count: int = 1000) -> list[Unit]:
        """Prepare up to so many units; closes what is asked for on the way."""
        units: list[Unit] = []
        while len(units) < count and (errand := self.next_to_prepare()) is not None:
            if isinstance(errand, Close):
                self.close(errand)
            else:
                self.dispatcher.prepared(errand.unit, errand.work.prepare(errand.unit.partition))
                units.append(errand.unit)
        return units

    # ---- a worker ----

    def next_for(self, number: int = 0) -> Prove | Open | Close | None:
        return self.dispatcher.next_for(self.workers[number], wait=False)

    def take(self, number: int = 0) -> Prove | None:
        """The next unit for a worker; opens and closes what is asked for on the way."""
        while (errand := self.next_for(number)) is not None:
            if isinstance(errand, Prove):
                return errand
            if isinstance(errand, Close):
                self.close(errand)
            else:
                self.open(errand)
        return None

    def open(self, errand: Open) -> None:
        slot = errand.slot
        self.dispatcher.opened(slot, slot.setup.open(slot.device.name), 0.0)

    def close(self, errand: Close) -> None:
        errand.prover.close()
        self.dispatcher.closed(errand.slot)

    def turn(self, number: int, errand: Prove) -> Turn:
        return Turn(
            self.workers[number].device.lock,
            self.settings.gpu_lock,
            user=errand.prover,
            urgency=lambda: errand.unit.run.priority,
            is_over=lambda: errand.unit.run.is_over,
            is_overtaken=lambda: self.workers[number].is_called_back,
            begins=lambda: True,
            pauses=lambda: None,
            record=lambda name: None,
            clock=lambda: self.now,
        )

    def proved(self, errand: Prove, number: int = 0) -> None:
        """The worker comes back with a good proof."""
        proof = fake_proof(*errand.prepared)
        self.dispatcher.proved(self.workers[number], errand, self.turn(number, errand), proof)

    def rejected(self, errand: Prove, number: int = 0) -> Verdict:
        return self.dispatcher.rejected(self.workers[number], errand, self.turn(number, errand))

    def failed(self, errand: Prove, error: Exception, number: int = 0) -> Verdict:
        return self.dispatcher.prove_failed(self.workers[number], errand, self.turn(number, errand), error)

    def prove_all(self, number: int = 0) -> list[str]:
        """Prove what is ready, all well; job and partition in order."""
        done = []
        while (errand := self.take(number)) is not None:
            done.append(f"{errand.unit.run.id} {errand.unit.partition}")
            self.proved(errand, number)
        return done

    # ---- the assembler ----

    def assemble_all(self) -> int:
        """How many runs were put together."""
        count = 0
        while (finished := self.dispatcher.next_to_assemble(wait=False)) is not None:
            run, proofs = finished
            self.dispatcher.assembled(run, run.work.assemble(proofs))
            count += 1
        return count

    def run_all(self) -> None:
        """Everything that can be done, by one thread."""
        busy = True
        while busy:
            busy = bool(self.prepare())
            for number in range(len(self.workers)):
                busy |= bool(self.prove_all(number))
            busy |= bool(self.assemble_all())

    # ---- the end ----

    def close_all(self, *, drain: bool = True) -> None:
        """The engine ends; nothing may be left."""
        self.reception.close(drain=drain)
        self.run_all()
        board = self.board
        assert board.is_over
        assert not board.runs.live and not len(board.pending) and not len(board.ready)
        assert [device.slots for device in self.devices] == [{} for _ in self.devices]
        assert [budget.by_purpose for budget in self.budgets] == [{} for _ in self.budgets]
        assert [budget.used_bytes for budget in self.budgets] == [0 for _ in self.budgets]

    @property
    def budgets(self) -> list[Budget]:
        return [self.board.host, self.board.inputs, *(device.memory for device in self.devices)]
