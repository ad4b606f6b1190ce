"""The daemon's jobs: which request is which job, who waits for it, and how the last ones ended.

A job's identity is the kind of proof, the client's name for the request, and the digest of every input. The
same request joins the job that there is, or gets its proof while that is kept; anything else is a job of its
own, under an id of its own even where clients use one name for different things.

For the event loop's thread only. What becomes of jobs that wait is the business of `feeder`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from cuzk.engine.jobs import Job, Priority, Status
from cuzk.engine.status import EngineStatus
from cuzk.errors import CuzkError, EngineError, InputError
from cuzk.server.kinds import KINDS, Kind
from cuzk.server.outcome import NO_TIME, HandedBack, HandedBackSuspect, Outcome
from cuzk.server.payload import Payload
from cuzk.server.seam import ProofRequest

#: A kind, while a request is still on its way.
UNKNOWN = "unknown"
_ID_DIGITS = 16
_DISTINCTION_DIGITS = 8

Identity = tuple[int, str, str]


@dataclass(slots=True, eq=False)
class Entry:
    """A job.

    payload     the request's bytes, until it has ended
    source      what was read of them, while nobody else has it
    job         the engine's, once it has one
    priority    the highest that anyone asked for
    callers     calls that wait
    is_kept     wanted even if no call waits: it was submitted, or comes from before a restart
    is_durable  the journal has it, which sets this
    is_begun    it was about to be given to the engine, perhaps in vain
    accepted_at  when the call came that asked first, seconds since 1970
    ended       set with the outcome
    """

    id: str
    identity: Identity
    kind: Kind
    priority: Priority
    sequence: int
    payload: Payload
    accepted_at: float
    source: ProofRequest | None = None
    job: Job | None = None
    callers: int = 0
    is_kept: bool = False
    is_durable: bool = False
    is_begun: bool = False
    outcome: Outcome | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def order(self) -> tuple[int, int]:
        """Smaller ones first."""
        return -self.priority, self.sequence


@dataclass(slots=True, eq=False)
class Arrival:
    """A call whose request is being received or read. kind: its name, once that is known."""

    at: float
    kind: str = UNKNOWN


class Book:
    """All jobs under way, and the last that ended, up to so many and so old.

    kept, kept_s  how many results are kept, and for how many seconds
    on_accepted, on_ended, on_urgent  hear of a job that is new, that has ended (its payload is there for the
                                      last time), that is wanted sooner
    on_kept                           hear of one under way that was submitted as well
    on_rejected                       hears what was wrong with a request that became no job
    completed, failed, cancelled      how many jobs ended so, ever, by kind
    rejected                          requests whose input was at fault, ever
    """

    def __init__(
        self,
        *,
        kept: int = 1000,
        kept_s: float = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.kept, self.kept_s, self._clock = kept, kept_s, clock
        self._entries: dict[Identity, Entry] = {}  # under way
        self._ended: OrderedDict[Identity, Entry] = OrderedDict()  # the oldest first
        self._ids: dict[str, Entry] = {}
        self._sequence = 0
        self.arrivals: set[Arrival] = set()
        self.on_accepted: list[Callable[[Entry], None]] = []
        self.on_ended: list[Callable[[Entry], None]] = []
        self.on_urgent: list[Callable[[Entry], None]] = []
        self.on_kept: list[Callable[[Entry], None]] = []
        self.on_rejected: list[Callable[[InputError], None]] = []
        self.completed: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.cancelled: Counter[str] = Counter()
        self.rejected = 0

    def reject(self, error: CuzkError) -> None:
        """A request that becomes no job. It counts if its input was at fault."""
        if isinstance(error, InputError):
            self.rejected += 1
            for listener in self.on_rejected:
                listener(error)

    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock()

    @property
    def under_way(self) -> Iterable[Entry]:
        return self._entries.values()

    def waiting(self, status: EngineStatus) -> list[Entry]:
        """Jobs that nobody has begun: the engine has not got them, or no partition of them begun."""
        begun = {job.job_id for job in status.jobs if job.status is not Status.WAITING}
        return [entry for entry in self.under_way if entry.job is None or entry.job.id not in begun]

    @property
    def results(self) -> Iterable[Entry]:
        """The last jobs that ended, the oldest first."""
        self._forget()
        return self._ended.values()

    @contextmanager
    def arriving(self) -> Iterator[Arrival]:
        """A call has come; inside, its request becomes a job or none."""
        arrival = Arrival(self.now())
        self.arrivals.add(arrival)
        try:
            yield arrival
        finally:
            self.arrivals.discard(arrival)

    def accept(self, request: ProofRequest, payload: Payload, *, arrived_at: float, is_kept: bool) -> Entry:
        """The job of that request: one that is under way, one whose proof is kept, or a new one."""
        identity = (request.kind.number, request.request_id, request.digest)
        known = self._entries.get(identity) or self._proven(identity)
        if known is not None:
            if known.outcome is None and is_kept:
                known.is_kept = True
                _tell(self.on_kept, known)
            if known.outcome is None and request.priority > known.priority:
                known.priority = request.priority
                _tell(self.on_urgent, known)
            return known
        entry = self.entry(self._new_id(identity), identity, request.priority, payload, arrived_at)
        entry.source, entry.is_kept = request, is_kept
        self.begin(entry)
        return entry

    def entry(
        self, job_id: str, identity: Identity, priority: Priority, payload: Payload, accepted_at: float
    ) -> Entry:
        """A job that is in no book yet, younger than all that are."""
        self._sequence += 1
        return Entry(
            id=job_id,
            identity=identity,
            kind=KINDS[identity[0]],
            priority=priority,
            sequence=self._sequence,
            payload=payload,
            accepted_at=accepted_at,
        )

    def begin(self, entry: Entry) -> None:
        """A job that waits from now on."""
        assert entry.identity not in self._entries, entry.identity
        self._drop(self._ended.pop(entry.identity, None))
        self._entries[entry.identity] = self._ids[entry.id] = entry
        _tell(self.on_accepted, entry)

    def find(self, job_id: str) -> Entry | None:
        self._forget()
        return self._ids.get(job_id)

    async def wait(self, entry: Entry, timeout_s: float | None = None) -> Outcome | None:
        """How it ended; None if it has not within the timeout, which leaves it alone."""
        with self.calling(entry):
            try:
                await asyncio.wait_for(entry.ended.wait(), timeout_s)
            except (TimeoutError, asyncio.TimeoutError):
                return None
        return entry.outcome

    @contextmanager
    def calling(self, entry: Entry) -> Iterator[None]:
        """A call that waits. Who goes away meanwhile may be the last, with whom the job ends."""
        entry.callers += 1
        try:
            yield
        except BaseException:
            entry.callers -= 1
            if not entry.callers and not entry.is_kept:
                self.cancel(entry, "the client went away and nobody else waits for this proof")
            raise
        entry.callers -= 1

    def cancel(self, entry: Entry, why: str) -> bool:
        """End it for everyone who waits. False if it had ended."""
        if entry.outcome is not None:
            return False
        job = entry.job
        error = EngineError(why, next="send it again if it is still wanted")
        total_ms = round((self.now() - entry.accepted_at) * 1000)
        self.end(
            entry,
            Outcome(status=Status.CANCELLED, error=error, timings=replace(NO_TIME, total_ms=total_ms)),
        )
        if job is not None:
            job.cancel()
        return True

    def hand_back(self, entry: Entry, *, is_suspect: bool = False) -> None:
        """Answer everyone who waits that this daemon will not do it: another one may, or the next.

        is_suspect  the engine failed while it had the job
        """
        error = (HandedBackSuspect if is_suspect else HandedBack)(
            "the daemon is shutting down and hands this proof back", next="send it again: it has not failed"
        )
        self.end(entry, Outcome(status=Status.CANCELLED, error=error))

    def end(self, entry: Entry, outcome: Outcome) -> None:
        """Answer everyone who waits or asks later. Nothing if it had ended; it need not have begun."""
        if entry.outcome is not None:
            return
        self._entries.pop(entry.identity, None)
        entry.outcome, entry.source = replace(outcome, ended_at=self.now()), None
        if not outcome.is_handed_back:
            by_kind = {Status.COMPLETED: self.completed, Status.CANCELLED: self.cancelled}
            by_kind.get(outcome.status, self.failed)[entry.kind.name] += 1
        self.keep(entry)
        _tell(self.on_ended, entry)
        entry.payload, entry.job = Payload(), None

    def keep(self, entry: Entry) -> None:
        """Remember a job that has ended, and forget what is too much or too old."""
        assert entry.outcome is not None, entry.id
        entry.ended.set()
        self._drop(self._ended.pop(entry.identity, None))
        self._ended[entry.identity] = self._ids[entry.id] = entry
        self._forget()

    def _forget(self) -> None:
        oldest = self.now() - self.kept_s
        while self._ended:
            entry = next(iter(self._ended.values()))
            assert entry.outcome is not None
            if len(self._ended) <= self.kept and entry.outcome.ended_at >= oldest:
                return
            self._drop(self._ended.pop(entry.identity))

    def _drop(self, entry: Entry | None) -> None:
        if entry is not None and self._ids.get(entry.id) is entry:
            del self._ids[entry.id]

    def _proven(self, identity: Identity) -> Entry | None:
        """What is kept of it, if that is a proof: whatever failed is tried again."""
        self._forget()
        entry = self._ended.get(identity)
        if entry is None or entry.outcome is None or entry.outcome.status is not Status.COMPLETED:
            return None
        return entry

    def _new_id(self, identity: Identity) -> str:
        """The client's name or the digest, told apart from other jobs that go by the same."""
        _, request_id, digest = identity
        job_id = request_id or digest[:_ID_DIGITS]
        known = self._ids.get(job_id)
        if known is None or known.identity == identity:
            return job_id
        return f"{job_id}~{digest[:_DISTINCTION_DIGITS]}"


def _tell(listeners: list[Callable[[Entry], None]], entry: Entry) -> None:
    for listener in listeners:
        listener(entry)
