"""Hands jobs from the book to the engine: the most urgent first, and no more than keep its devices busy.

What the engine has not been given waits as bytes, on the disk where there is a journal, and is read again
when its turn comes: a thousand jobs of 50 MB take no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial

from cuzk.engine.jobs import Job, JobResult, Status
from cuzk.errors import BusyError, EngineError
from cuzk.sector.claim import POREP
from cuzk.server.book import Book, Entry
from cuzk.server.log import Log
from cuzk.server.outcome import NO_TIME, Outcome
from cuzk.server.readers import Readers
from cuzk.server.seam import ProofRequest, Prover

_LOG, _ENGINE_LOG = Log("cuzk_core.scheduler"), Log("cuzk_core.engine")
_BUSY_S = 1.0  # without news, the engine is asked again after so long
_MS = 1000


class Feeder:
    """Listens to the book, and puts into it how jobs ended.

    on_begun  hear of a job that the engine is about to get
    on_lost   hear that the engine has closed by itself, which a mistake of its own makes it do
    owns   threads in which `Prover.submit` may wait for parameters: of one kind behind those of another
    ends   with `stop`, which lets go on what was handed over, and `close`
    """

    def __init__(self, book: Book, prover: Prover, readers: Readers) -> None:
        self._book, self._prover, self._readers = book, prover, readers
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(thread_name_prefix="cuzk submit")
        self._tasks: set[asyncio.Task[None]] = set()
        self._fed: set[Entry] = set()  # handed over, or about to be
        self._waiting: set[Entry] = set()
        self._blocked: Entry | None = None  # the engine has no room for it now
        self._is_closed = False
        self.ahead = jobs_ahead(prover)
        self.on_begun: list[Callable[[Entry], None]] = []
        self.on_lost: list[Callable[[], None]] = []
        book.on_accepted.append(self._accepted)
        book.on_ended.append(self._ended)
        book.on_urgent.append(self._urgent)

    def stop(self) -> None:
        """Hand over nothing more; jobs that wait are handed back to their clients."""
        self._is_closed = True
        for entry in list(self._waiting):
            self._book.hand_back(entry)

    def close(self) -> None:
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def position(self, entry: Entry) -> int:
        """How many jobs come before it; 0 once it is handed over."""
        if entry not in self._waiting:
            return 0
        return sum(other.order < entry.order for other in self._waiting)

    def _accepted(self, entry: Entry) -> None:
        _LOG.info(
            "job enqueued",
            job_id=entry.id,
            proof_kind=entry.kind.name,
            priority=entry.priority.name.lower(),
            queue_position=len(self._waiting),
        )
        self._waiting.add(entry)
        self._pump()
        if entry in self._waiting:
            entry.source = None  # its bytes stay

    def _urgent(self, entry: Entry) -> None:
        job = entry.job
        if job is not None:
            self._prover.urge(job, entry.priority)
        self._pump()

    def _ended(self, entry: Entry) -> None:
        self._waiting.discard(entry)
        self._fed.discard(entry)
        self._blocked = None
        outcome = entry.outcome
        if outcome is not None and outcome.status is Status.CANCELLED:
            _LOG.info("job cancelled", job_id=entry.id, why=outcome.error_text)
        self._pump()

    def _pump(self) -> None:
        """Begin to hand over what may go now: no job past a more urgent one for which there is no room."""
        while self._waiting and not self._is_closed:
            entry = min(self._waiting, key=lambda one: one.order)
            if self._blocked is not None and entry.order >= self._blocked.order:
                return
            if sum(other.priority >= entry.priority for other in self._fed) >= self.ahead:
                return
            self._waiting.remove(entry)
            self._fed.add(entry)
            task = self._loop.create_task(self._feed(entry))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _feed(self, entry: Entry) -> None:
        request = entry.source
        try:
            request = request or await self._readers.read(entry.payload, check=False)
            entry.source = None
            if not entry.is_begun:
                entry.is_begun = True
                for listener in self.on_begun:
                    listener(entry)
            job = await self._loop.run_in_executor(self._threads, self._submit, request, entry)
        except BusyError as error:
            if request is None:
                _LOG.error("a job cannot be read now, it waits", job_id=entry.id, error=error)
            self._put_back(entry, request)
            return
        except EngineError:  # closing: whatever waits is for the next engine
            self._put_back(entry, request)
            if not self._is_closed:
                self._lose()
            return
        except Exception as error:
            self._end(entry, self._outcome(entry, Status.FAILED, error=error))
            return
        _LOG.info("job dequeued for proving", job_id=entry.id, proof_kind=entry.kind.name)
        if entry.outcome is not None:  # cancelled meanwhile
            job.cancel()
            return
        entry.job = job
        self._prover.urge(job, entry.priority)  # which may have risen meanwhile
        job.then(partial(self._hear, entry))

    def _submit(self, request: ProofRequest, entry: Entry) -> Job:
        return self._prover.submit(replace(request, priority=entry.priority), entry.id)

    def _put_back(self, entry: Entry, request: ProofRequest | None) -> None:
        """The engine has no room for its inputs, or nobody can read it now. When a job has ended, or after a
        while, that may be otherwise."""
        self._fed.discard(entry)
        if self._is_closed:
            self._book.hand_back(entry)
        elif entry.outcome is None:
            entry.source = request
            self._waiting.add(entry)
            self._blocked = entry
            self._loop.call_later(_BUSY_S, self._try_again)

    def _try_again(self) -> None:
        self._blocked = None
        self._pump()

    def _hear(self, entry: Entry, result: JobResult) -> None:
        """In a thread of the engine, perhaps one that outlives the event loop."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._proved, entry, result)

    def _proved(self, entry: Entry, result: JobResult) -> None:
        """An engine that closes before its last job has ended has failed: the job is the next one's."""
        if entry.outcome is None and result.status is Status.FAILED and self._prover.status().closing:
            self._book.hand_back(entry, is_suspect=True)
            self._lose()
            return
        self._end(entry, self._outcome(entry, result.status, result=result, error=result.error))

    def _lose(self) -> None:
        for listener in self.on_lost:
            listener()

    def _end(self, entry: Entry, outcome: Outcome) -> None:
        if entry.outcome is None:  # else it was cancelled, or handed back, and that was that
            _log_end(entry, outcome)
            self._book.end(entry, outcome)

    def _outcome(
        self, entry: Entry, status: Status, *, result: JobResult | None = None, error: Exception | None = None
    ) -> Outcome:
        """With the time before the engine had it as waiting."""
        took = NO_TIME if result is None else result.timings
        total_ms = max(round((self._book.now() - entry.accepted_at) * _MS), took.total_ms)
        queue_ms = total_ms - took.total_ms + took.queue_ms
        return Outcome(
            status=status,
            proof=b"" if result is None or result.proof is None else result.proof,
            error=error,
            timings=replace(took, total_ms=total_ms, queue_ms=queue_ms),
        )


def _log_end(entry: Entry, outcome: Outcome) -> None:
    """The lines that Curio's daemon writes where a proof is complete; one of ours where it is none."""
    took, size = outcome.timings, len(outcome.proof)
    times = {"total_ms": took.total_ms, "synth_ms": took.synth_ms, "gpu_ms": took.gpu_ms}
    if outcome.status is not Status.COMPLETED:
        _ENGINE_LOG.error(
            "proof failed", job_id=entry.id, status=outcome.status.value, error=outcome.error_text
        )
        return
    _ENGINE_LOG.info(
        "Phase 7: all partitions complete, proof assembled", job_id=entry.id, proof_len=size, **times
    )
    name = "PoRep" if entry.kind.name == POREP else entry.kind.name
    _ENGINE_LOG.info(f"Phase 7: {name} proof self-check PASSED", job_id=entry.id, proof_len=size)
    _ENGINE_LOG.info(
        "proof completed successfully (pipeline)", proof_len=size, queue_ms=took.queue_ms, **times
    )


def jobs_ahead(prover: Prover) -> int:
    """Jobs of one partition that the engine can have in hand at once; of larger ones fewer are."""
    settings, devices = prover.settings, len(prover.status().devices)
    on_devices = devices * (settings.gpu_workers_per_device + settings.synthesis_lookahead)
    return on_devices + settings.partition_workers
