"""What callers ask of the engine: take work, call it off, say how it stands, end."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from cuzk.engine.board import Board, described
from cuzk.engine.budget import Reservation
from cuzk.engine.events import What
from cuzk.engine.jobs import Job, Priority, Run, Status, Unit
from cuzk.engine.seam import Needs, Setup, Work
from cuzk.errors import BusyError, EngineError, ResourceError
from cuzk.units import format_size


class Reception:
    """The callers' side of a board. Every method takes its lock; only `preload` and `evict` wait for more."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def submit(
        self,
        work: Work,
        *,
        request_id: str,
        priority: Priority,
        deadline_s: float | None,
    ) -> Job:
        """A job of that work: joined to the same work under way, answered at once if it is known, or begun.

        Raises ResourceError for what can never fit, BusyError while too many jobs wait, EngineError while
        closing, DeviceError when no device is left.
        """
        board, key, needs = self._board, (request_id, work.digest), self._needs(work.setup)
        with board.held():
            self.require_open()
            now = board.clock()
            deadline = None if deadline_s is None else now + deadline_s
            kept = board.runs.kept(key)
            if kept is not None and kept.status is Status.COMPLETED:
                job = Job(kept.job_id, priority, deadline, self.cancel)
                job.settle(kept)
                return job
            run = board.runs.under_way(key)
            if run is None:
                run = self._begin(key, work, needs, request_id)
            else:
                board.say(What.JOINED, run=run)
            job = Job(run.id, priority, deadline, self.cancel)
            run.jobs.append(job)
            board.set_priority(run)
            if deadline is not None:
                board.alarm.notify_all()
            return job

    def _needs(self, setup: Setup) -> Mapping[str, Needs]:
        """By device. Asked for without the board's lock."""
        return {device.name: setup.needs(device.name) for device in self._board.devices}

    def require_open(self) -> None:
        """Raises EngineError while closing. Takes no lock."""
        if self._board.is_closing:
            raise EngineError("the engine is closing and takes no more work", next="submit it elsewhere")

    def _begin(self, key: Hashable, work: Work, needs: Mapping[str, Needs], request_id: str) -> Run:
        board = self._board
        host_bytes = self._require_possible(work.setup, needs, work.partition_bytes)
        board.inputs.require({"inputs": work.input_bytes})
        inputs, contended = self._room_for_inputs(work), self._contend(work.setup, needs)
        run = Run(
            id=board.runs.new_id(key, request_id, work.digest),
            key=key,
            work=work,
            sequence=board.runs.new_sequence(),
            batch=board.batches.join(work.setup.key, board.clock(), contended=contended),
            submitted_s=board.clock(),
            inputs=inputs,
        )
        run.units = [Unit(run, partition) for partition in work.partitions]
        board.leases.add_run(work.setup, needs, host_bytes)
        board.begin(run)
        return run

    def _require_possible(self, setup: Setup, needs: Mapping[str, Needs], partition_bytes: int) -> int:
        """What the setup takes of the host. Raises for work that could never begin."""
        board, purpose = self._board, f"parameters {setup.name}"
        places = 1 if board.shares_slots else board.settings.gpu_workers_per_device
        for device in board.devices:
            if not board.leases.has_runs(setup):  # what once failed is tried anew
                device.unfit.pop(setup.key, None)
            try:
                device.memory.require({purpose: places * needs[device.name].device})
            except ResourceError as error:
                device.unfit.setdefault(setup.key, error)
        board.require_device(setup)
        fit = [device for device in board.devices if device.serves(setup)]
        host_bytes = places * sum(needs[device.name].host for device in fit)
        board.host.require({purpose: host_bytes, "one partition": partition_bytes})
        return host_bytes

    def _contend(self, setup: Setup, needs: Mapping[str, Needs]) -> bool:
        """Whether the setup and those of the runs under way do not fit some device together."""
        board = self._board
        others = [lease for lease in board.leases.with_runs() if lease.setup.key != setup.key]
        return any(
            sum(lease.needs[device.name].device for lease in others) + needs[device.name].device
            > device.memory.total_bytes
            for device in board.devices
            if device.serves(setup)
        )

    def _room_for_inputs(self, work: Work) -> Reservation:
        inputs = self._board.inputs
        reservation = inputs.take(work.input_bytes, work.kind)
        if reservation is None:
            raise BusyError(
                f"the inputs of this job take {format_size(work.input_bytes)}, those of the jobs that are"
                f" waiting leave {format_size(inputs.free_bytes)} of {format_size(inputs.total_bytes)}",
                where=inputs.name,
                next="submit it again when fewer jobs wait, or raise the budget",
            )
        return reservation

    def preload(self, setup: Setup, timeout_s: float | None) -> bool:
        """Have a setup opened on every device that can serve it. False if that was so already.

        Raises what opening raised if no device can; ResourceError when it takes longer than the timeout,
        until there is room for it or it is open; what `submit` raises.
        """
        board, needs = self._board, self._needs(setup)
        with board.held():
            self.require_open()
            if board.is_opened(setup):
                return False
            board.leases.add_run(setup, needs, self._require_possible(setup, needs, 0))
            lease, is_held = board.leases[setup], False

            def is_there() -> bool:
                nonlocal is_held
                if not is_held and board.admission.hold(lease):
                    is_held = True
                    board.preloads -= 1
                    board.notify()
                is_hopeless = not any(device.serves(setup) for device in board.devices)
                return board.is_closing or is_hopeless or (is_held and board.is_opened(setup))

            board.preloads += 1
            board.notify()
            try:
                in_time = board.setups.wait_for(is_there, timeout_s)
                self.require_open()
                board.require_device(setup)
            finally:
                board.preloads -= not is_held
                board.leases.end_run(setup, had_begun=is_held)
                board.notify()
            if not in_time:
                raise ResourceError(
                    f"{setup.name} could not be opened within {timeout_s} s",
                    next="wait until fewer jobs are under way, or give more time",
                )
            return True

    def evict(self, name: str, timeout_s: float | None) -> bool:
        """Close the setups of that name, unless jobs use them. False if nothing was closed."""
        board = self._board
        with board.held():
            slots = [
                slot
                for device in board.devices
                for slot in device.slots.values()
                if slot.setup.name == name and not board.leases[slot.setup].begun
            ]
            for slot in slots:
                slot.spoilt = True
            board.notify()
            board.setups.wait_for(lambda: not any(map(board.holds, slots)), timeout_s)
            return bool(slots)

    def find(self, job_id: str) -> Job | None:
        """One more handle on a job of that id, under way or ended; None if it is not known any more."""
        board = self._board
        with board.held():
            key = board.runs.key_of(job_id)
            if key is None:
                return None
            job = Job(job_id, Priority.LOW, None, self.cancel)
            run = board.runs.under_way(key)
            if run is not None:
                run.jobs.append(job)
            else:
                kept = board.runs.kept(key)
                assert kept is not None, job_id
                job.settle(kept)
            return job

    def cancel(self, job: Job) -> bool:
        """One caller gives up. False if the job had ended."""
        board = self._board
        with board.held():
            run = board.runs.of_job(job.id) if job.result is None else None
            if run is None:
                return False
            board.withdraw(run, job, Status.CANCELLED, _cancelled())
            return True

    def urge(self, job: Job, priority: Priority) -> None:
        """Another caller, or the same, wants it sooner. Nothing if the job has ended."""
        board = self._board
        with board.held():
            run = board.runs.of_job(job.id) if job.result is None else None
            if run is not None and priority > job.priority:
                job.priority = priority
                board.set_priority(run)

    def cancel_all(self, job_id: str) -> bool:
        """End the work for everyone who waits for it. False if it is not under way."""
        board = self._board
        with board.held():
            run = board.runs.of_job(job_id)
            if run is None:
                return False
            board.end(run, Status.CANCELLED, error=_cancelled())
            return True

    def expire(self) -> None:
        """Answer the jobs whose deadline has come."""
        board = self._board
        with board.held():
            now = board.clock()
            for run in board.runs.live:
                for job in [job for job in run.jobs if job.deadline is not None and job.deadline <= now]:
                    board.withdraw(run, job, Status.TIMEOUT, _late(run, now))

    def report_stalls(self) -> None:
        """Name the workers that have been at one partition for too long, each once.

        Whatever waits for their device goes back into the queue, and what they are at to another device, if
        there is one.
        """
        board = self._board
        with board.held():
            now = board.clock()
            for worker in board.working():
                if not worker.is_stalled and now - worker.since >= board.settings.stall_after_s:
                    board.stalled(worker)

    def close(self, *, drain: bool) -> None:
        """Take no more work; without `drain`, cancel what is under way."""
        board = self._board
        with board.held():
            board.is_closing = True
            if not drain:
                for run in board.runs.live:
                    board.end(run, Status.CANCELLED, error=_cancelled())
            board.notify()

    def abort(self, error: Exception) -> None:
        """A mistake of the engine's own ended one of its threads: answer everyone, and close."""
        board = self._board
        with board.held():
            board.is_closing = True
            board.say(What.FAILED, text=described(error))
            for run in board.runs.live:
                board.end(run, Status.FAILED, error=error)
            board.notify()


def _cancelled() -> EngineError:
    return EngineError("the job was cancelled", next="submit it again if it is still wanted")


def _late(run: Run, now: float) -> EngineError:
    done = len(run.proofs)
    return EngineError(
        f"the deadline passed after {now - run.submitted_s:.1f} s, with {done} of {len(run.units)} partitions"
        " proven",
        where=run.id,
        next="give more time, a higher priority, or fewer jobs at once",
    )
