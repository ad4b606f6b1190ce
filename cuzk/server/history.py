"""How jobs ended and what went wrong on the way: counted for ever, told for the last ones."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cuzk import errors
from cuzk.engine.events import EngineEvent, What
from cuzk.engine.jobs import Status, Timings

RESULTS_KEPT = 50
FAILURES_KEPT = 50
REFUSED_KEPT = 20
INCIDENTS_KEPT = 100
HOUR_MS = 3_600_000

#: What makes a proof fail, by the class of its error; the first that fits.
CAUSES: tuple[tuple[type[Exception], str], ...] = (
    (errors.InputError, "input"),
    (errors.ParameterError, "parameters"),
    (errors.ResourceError, "resources"),
    (errors.DeviceError, "device"),
    (errors.ProofError, "wrong proof"),
    (errors.EngineError, "called off"),
)
INTERNAL = "internal"
#: How a job ends of which somebody wanted a proof and got none.
FAILURES = (Status.FAILED, Status.TIMEOUT)
#: Of a partition, and why: each is one attempt more than if all had gone well.
RETRIES = {
    What.WRONG_PROOF: "wrong proof",
    What.GOES_ELSEWHERE: "another device",
    What.SHORT_OF_MEMORY: "short of memory",
}
_INCIDENTS = frozenset(
    {
        *RETRIES,
        What.WAITS_FOR_MEMORY,
        What.OPENED,
        What.CLOSED,
        What.CANNOT_OPEN,
        What.STALLED,
        What.SET_ASIDE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A job that ended. `error` is None if it was proven."""

    job_id: str
    kind: str
    status: Status
    timings: Timings
    partitions: tuple[int, ...] = ()
    error: Exception | None = None

    @property
    def cause(self) -> str:
        """Empty if it was proven."""
        if self.error is None:
            return ""
        return next((cause for kind, cause in CAUSES if isinstance(self.error, kind)), INTERNAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A copy of what is kept, the newest last, each with the moment when it was heard.

    ended      jobs by kind and by how they ended, ever
    total_s    seconds of completed jobs, by kind
    causes     of failures, ever
    retries    of partitions, by why
    last_hour  jobs completed within it
    refused    requests that never became jobs, as their input was at fault
    """

    ended: Mapping[tuple[str, Status], int]
    total_s: Mapping[str, float]
    causes: Mapping[str, int]
    retries: Mapping[str, int]
    last_hour: int
    results: tuple[tuple[int, Ended], ...]
    failures: tuple[tuple[int, Ended], ...]
    refused: tuple[tuple[int, errors.CuzkError], ...]
    incidents: tuple[tuple[int, EngineEvent], ...]

    def by_kind(self, *statuses: Status) -> dict[str, int]:
        """Jobs that ended so; kinds without any are left out."""
        counts: Counter[str] = Counter()
        for (kind, status), n in self.ended.items():
            if status in statuses:
                counts[kind] += n
        return dict(counts)

    def count(self, *statuses: Status) -> int:
        """Those of all kinds."""
        return sum(self.by_kind(*statuses).values())


class History:
    """Hears jobs that end and events of the engine, in any thread.

    now_ms  the clock of its moments
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._ended: Counter[tuple[str, Status]] = Counter()  # guarded by _lock, as is all below
        self._total_s: defaultdict[str, float] = defaultdict(float)
        self._causes: Counter[str] = Counter()
        self._retries: Counter[str] = Counter()
        self._completed_ms: deque[int] = deque()
        self._results: deque[tuple[int, Ended]] = deque(maxlen=RESULTS_KEPT)
        self._failures: deque[tuple[int, Ended]] = deque(maxlen=FAILURES_KEPT)
        self._refused: deque[tuple[int, errors.CuzkError]] = deque(maxlen=REFUSED_KEPT)
        self._incidents: deque[tuple[int, EngineEvent]] = deque(maxlen=INCIDENTS_KEPT)

    def hear(self, event: EngineEvent) -> None:
        with self._lock:
            if event.what in RETRIES:
                self._retries[RETRIES[event.what]] += 1
            if event.what in _INCIDENTS:
                self._incidents.append((self._now_ms(), event))

    def end(self, ended: Ended) -> None:
        """A job has ended."""
        with self._lock:
            now = self._now_ms()
            self._ended[ended.kind, ended.status] += 1
            self._results.append((now, ended))
            if ended.status is Status.COMPLETED:
                self._total_s[ended.kind] += ended.timings.total_ms / 1000
                self._completed_ms.append(now)
                self._forget(now)
            elif ended.status in FAILURES:
                self._causes[ended.cause] += 1
                self._failures.append((now, ended))

    def refuse(self, error: errors.CuzkError) -> None:
        """A request whose input was at fault. Counted by whoever refused it."""
        with self._lock:
            self._refused.append((self._now_ms(), error))

    def _forget(self, now_ms: int) -> None:
        while self._completed_ms and self._completed_ms[0] <= now_ms - HOUR_MS:
            self._completed_ms.popleft()

    def look(self) -> Told:
        with self._lock:
            self._forget(self._now_ms())
            return Told(
                ended=dict(self._ended),
                total_s=dict(self._total_s),
                causes=dict(self._causes),
                retries=dict(self._retries),
                last_hour=len(self._completed_ms),
                results=tuple(self._results),
                failures=tuple(self._failures),
                refused=tuple(self._refused),
                incidents=tuple(self._incidents),
            )
