"""The runs that are under way, and how the last ones ended. Not locked: the board is."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable

from cuzk.engine.jobs import JobResult, Run, Status

_ID_DIGITS = 16
_DISTINCTION_DIGITS = 8


class Runs:
    """Runs by what makes them the same, and by their ids.

    ended  how many runs ended in each way, ever
    """

    def __init__(self, kept: int) -> None:
        self._kept_most = kept
        self._live: dict[Hashable, Run] = {}
        self._kept: OrderedDict[Hashable, JobResult] = OrderedDict()  # the oldest first
        self._keys: dict[str, Hashable] = {}  # of every id that is live or kept
        self._sequence = 0
        self.ended: Counter[Status] = Counter()

    def __len__(self) -> int:
        return len(self._live)

    @property
    def live(self) -> tuple[Run, ...]:
        return tuple(self._live.values())

    def under_way(self, key: Hashable) -> Run | None:
        return self._live.get(key)

    def of_job(self, job_id: str) -> Run | None:
        """The run under way that goes by that id."""
        return self._live.get(self._keys.get(job_id))

    def key_of(self, job_id: str) -> Hashable | None:
        return self._keys.get(job_id)

    def kept(self, key: Hashable) -> JobResult | None:
        """How the last run of that key ended, if it is remembered."""
        return self._kept.get(key)

    def new_id(self, key: Hashable, request_id: str, digest: str) -> str:
        """The caller's name or the digest, told apart from other work that goes by the same one."""
        job_id = request_id or digest[:_ID_DIGITS]
        return job_id if self._keys.get(job_id, key) == key else f"{job_id}~{digest[:_DISTINCTION_DIGITS]}"

    def new_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def begin(self, run: Run) -> None:
        assert run.key not in self._live, run.id
        self._live[run.key] = run
        self._keys[run.id] = run.key

    def end(self, run: Run, result: JobResult) -> None:
        """Remember the result, and forget the oldest of too many."""
        del self._live[run.key]
        self.ended[result.status] += 1
        self._kept.pop(run.key, None)
        self._kept[run.key] = result
        if len(self._kept) > self._kept_most:
            key, oldest = self._kept.popitem(last=False)
            if key not in self._live and self._keys.get(oldest.job_id) == key:
                del self._keys[oldest.job_id]
