"""How long stages of partitions and whole jobs took: histograms, filled as things end."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import Metric

from cuzk.engine.jobs import Status
from cuzk.server.history import Ended
from cuzk.timeline.spans import Kind, Span

#: Seconds. From a proof of 2 KiB on a fast card to one of 32 GiB on a slow one.
BUCKETS = (
    0.01,
    0.03,
    0.1,
    0.3,
    1,
    2,
    3,
    5,
    7.5,
    10,
    15,
    20,
    30,
    45,
    60,
    90,
    120,
    180,
    300,
    600,
    1200,
    1800,
    3600,
)
#: A stage by the kind of its spans; the others are in between and short.
STAGES = {
    Kind.SYNTHESIS: "synthesis",
    Kind.QUEUE: "queue",
    Kind.CALL: "call",
    Kind.WAIT: "lock_wait",
    Kind.LOCK: "lock",
    Kind.KERNEL: "kernels",
}


class StageTimes:
    """Hears what ended, in any thread, in a few microseconds."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._stages = Histogram(
            "cuzk_stage_seconds",
            "Time of partitions in each stage. call: on a device with all that belongs to it; lock_wait, lock"
            " and kernels lie within.",
            ["stage"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._jobs = Histogram(
            "cuzk_job_seconds",
            "Time of completed jobs from their acceptance to their proof.",
            ["proof_kind"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._waits = Histogram(
            "cuzk_job_queue_seconds",
            "Time of completed jobs from their acceptance until a first partition was begun.",
            ["proof_kind"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._by_kind = {kind: self._stages.labels(stage) for kind, stage in STAGES.items()}

    def hear(self, span: Span) -> None:
        stage = self._by_kind.get(span.kind)
        if stage is not None and not span.failed:
            stage.observe(span.took_ms / 1000)

    def end(self, ended: Ended) -> None:
        if ended.status is Status.COMPLETED:
            label = kind_label(ended.kind)
            self._jobs.labels(label).observe(ended.timings.total_ms / 1000)
            self._waits.labels(label).observe(ended.timings.queue_ms / 1000)

    def collect(self) -> Iterable[Metric]:
        return self._registry.collect()


def kind_label(kind: str) -> str:
    """porep_c2 for porep-c2."""
    return kind.replace("-", "_")
