"""The timeline of the last minutes, kept in memory: a recorder whose spans the page and the metrics read."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from cuzk.engine.recorder import NoRecorder, Recorder
from cuzk.timeline.line import ENDINGS, Event
from cuzk.timeline.spans import Kind, Matcher, Span

_NS_PER_MS = 1_000_000
#: What ended longer ago is forgotten.
HORIZON_MS = 15 * 60_000
#: So are the oldest of more spans: ten minutes of eight busy GPUs.
MOST_SPANS = 20_000
#: Jobs that have ended whose partitions' times can still be asked for.
ENDED_JOBS = 200

_STAGES = {Kind.SYNTHESIS: 0, Kind.CALL: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """What lies within the horizon. Moments are milliseconds since the recorder was made.

    ended, open  spans in the order of their ends, and those that go on
    count        spans that ever ended: `ended` holds the last of them
    """

    now_ms: int
    ended: list[Span]
    open: list[Span]
    count: int


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


class RecentTimeline:
    """Keeps what it hears, and hands it on to another recorder. For any number of threads.

    shares   all it keeps among the threads that record and those that look: 5 us to record, copies to look
    fails    never, as recorders do
    on_span  hears each span that ends, in the thread that ended it, without a lock
    """

    def __init__(
        self,
        then: Recorder | None = None,
        *,
        on_span: Callable[[Span], None] = lambda span: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._then, self._on_span, self._clock_ns = then or NoRecorder(), on_span, clock_ns
        self.zero_ns = clock_ns()
        self._lock = threading.Lock()
        self._matcher = Matcher(self._keep)  # guarded by _lock, as is all below
        self._ended: deque[Span] = deque(maxlen=MOST_SPANS)
        self._fresh: list[Span] = []
        self._count = 0
        self._took: dict[str, dict[int | None, list[int | None]]] = {}
        self._over: OrderedDict[str, None] = OrderedDict()

    @property
    def now_ms(self) -> int:
        return self.at_ms(self._clock_ns())

    def at_ms(self, clock_ns: int) -> int:
        """A reading of the clock as a moment."""
        return max(0, (clock_ns - self.zero_ns) // _NS_PER_MS)

    def record(self, name: str, job: str, *, at_ns: int | None = None, **detail: int | str) -> None:
        """As `engine.recorder.Recorder`."""
        moment = self.now_ms if at_ns is None else self.at_ms(at_ns)
        get = detail.get
        event = Event(
            moment, name, job, _number(get("partition")), _number(get("worker")), _number(get("device")), ""
        )
        with self._lock:
            self._hear(event)
            fresh, self._fresh = self._fresh, []
        for span in fresh:
            self._on_span(span)
        self._then.record(name, job, **detail if at_ns is None else {**detail, "at_ns": at_ns})

    def _hear(self, event: Event) -> None:
        if event.name == "SYNTH_START":  # of a job that ended, done again under its old name
            self._over.pop(event.job, None)
        elif event.name == "GPU_QUEUE" and event.job in self._over:  # nobody will take it
            return
        self._matcher.hear(event)
        if event.name in ENDINGS and event.partition is None:
            self._end_job(event.job)

    def _end_job(self, job: str) -> None:
        self._matcher.forget(job)
        self._over[job] = None
        self._over.move_to_end(job)
        if len(self._over) > ENDED_JOBS:
            forgotten, _ = self._over.popitem(last=False)
            self._took.pop(forgotten, None)

    def _keep(self, span: Span) -> None:
        """One that ended."""
        assert span.end_ms is not None
        while self._ended and (self._ended[0].end_ms or 0) < span.end_ms - HORIZON_MS:
            self._ended.popleft()
        self._ended.append(span)
        self._fresh.append(span)
        self._count += 1
        stage = _STAGES.get(span.kind)
        if stage is not None and not span.failed:
            times = self._took.setdefault(span.job, {}).setdefault(span.partition, [None, None])
            times[stage] = span.took_ms

    def look(self, since: int = 0) -> Recent:
        """Spans that ended after the first `since` ones, and those that go on."""
        with self._lock:
            fresh = min(self._count - since, len(self._ended))
            ended = list(islice(reversed(self._ended), fresh))[::-1]
            return Recent(now_ms=self.now_ms, ended=ended, open=self._matcher.left(), count=self._count)

    def took_ms(self, job: str) -> dict[int | None, tuple[int | None, int | None]]:
        """Milliseconds of synthesis and of the last call by partition, as far as they ended."""
        with self._lock:
            return {partition: (times[0], times[1]) for partition, times in self._took.get(job, {}).items()}
