"""Prometheus metrics: those that Curio's operators know, under their names, then ours.

The first nine are written out here, as their names allow no library: prometheus-client adds `_total` to every
counter, and so makes one family of two of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

import cuzk
from cuzk.engine.jobs import Stage, Status
from cuzk.engine.status import DeviceStatus, MemoryStatus
from cuzk.server.card_readings import CardReading
from cuzk.server.gpu_time import GpuTimes
from cuzk.server.history import CAUSES, FAILURES, INTERNAL, RETRIES
from cuzk.server.observation import Observation, Sight
from cuzk.server.stages import kind_label

T = TypeVar("T")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: The stretch of time that efficiency is of.
WINDOW_MS = 300_000


class Metrics:
    """Text of a moment. What is counted is counted where it happens, and only read here."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)

    def text(self) -> str:
        """Takes some milliseconds, after a busy quarter of an hour on eight GPUs 60."""
        return self._of(self._observation.look())

    async def text_beside(self) -> str:
        """The same, put together beside the event loop, which answers others meanwhile."""
        return await asyncio.to_thread(self._of, self._observation.look())

    def _of(self, sight: Sight) -> str:
        families = [*_ours(sight), *self._observation.stages.collect(), *self._process.collect()]
        return contract_text(sight) + generate_latest(_Collected(families)).decode()


@dataclass(frozen=True, slots=True)
class _Collected:
    """What `generate_latest` asks of a registry."""

    families: list[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.families


# ---- those of Curio's daemon ----


def contract_text(sight: Sight) -> str:
    """In their order, each with HELP and TYPE even where there is no sample."""
    told = sight.told
    workers = [worker for device in sight.engine.devices for worker in device.workers]
    completed, failed = _labels(told.by_kind(Status.COMPLETED)), _labels(told.by_kind(*FAILURES))
    lines = [
        *_family("cuzk_proofs_completed_total", "counter", "Proofs completed.", told.count(Status.COMPLETED)),
        *_family("cuzk_proofs_failed_total", "counter", "Jobs without a proof.", told.count(*FAILURES)),
        *_family("cuzk_uptime_seconds", "gauge", "Since the start.", int(sight.engine.uptime_s)),
        *_family("cuzk_queue_depth", "gauge", "Jobs that nothing was begun of.", sight.jobs_waiting),
        *_family("cuzk_proofs_completed", "counter", "Proofs completed, by kind.", completed),
        *_family("cuzk_proofs_failed", "counter", "The same, by kind.", failed),
    ]  # fmt: skip
    if completed:
        lines += _durations(completed, told.total_s)
    busy = sum(worker.job_id is not None for worker in workers)
    lines += _family("cuzk_running_jobs", "gauge", "Workers that are at a partition.", busy)
    lines += _family("cuzk_gpu_workers", "gauge", "Workers of all devices.", len(workers))
    return "\n".join(lines) + "\n"


def _labels(by_kind: Mapping[str, T]) -> dict[str, T]:
    return {kind_label(kind): value for kind, value in by_kind.items()}


def _family(name: str, type: str, help: str, value: int | Mapping[str, int]) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {type}"
    if isinstance(value, int):
        yield f"{name} {value}"
    else:
        yield from (f'{name}{{proof_kind="{kind}"}} {count}' for kind, count in sorted(value.items()))


def _durations(completed: Mapping[str, int], total_s: Mapping[str, float]) -> Iterator[str]:
    """A summary without quantiles. Unlike the original's it never falls."""
    name = "cuzk_proof_duration_seconds"
    seconds = _labels(total_s)
    yield f"# HELP {name} Time of completed proofs."
    yield f"# TYPE {name} summary"
    for kind, count in sorted(completed.items()):
        yield f'{name}_count{{proof_kind="{kind}"}} {count}'
        yield f'{name}_sum{{proof_kind="{kind}"}} {seconds[kind]:.3f}'


# ---- ours ----


def _ours(sight: Sight) -> Iterator[Metric]:
    yield InfoMetricFamily("cuzk_build", "What runs.", value={"version": cuzk.__version__})
    yield _gauge("cuzk_ready", "Whether a proof could start now.", float(sight.not_ready is None))
    yield from _jobs(sight)
    yield from _memory([*sight.engine.memory, *(device.memory for device in sight.engine.devices)])
    yield from _devices(sight)
    yield from _cards(sight.cards)


def _gauge(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help, value=value)


def _labelled(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    name: str,
    help: str,
    labels: tuple[str, ...],
    samples: Iterable[tuple[tuple[str, ...], float]],
) -> Metric:
    family = kind(name, help, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _jobs(sight: Sight) -> Iterator[Metric]:
    engine, told = sight.engine, sight.told
    states = {status.value.lower(): 0 for status in (Status.WAITING, Status.RUNNING, Status.ASSEMBLING)}
    stages = {stage.value: 0 for stage in Stage if stage is not Stage.DROPPED}
    states["waiting"] = len(sight.waiting)
    for job in engine.jobs:
        states[job.status.value.lower()] += 1
        for part in job.partitions:
            if part.stage is not Stage.DROPPED:
                stages[part.stage.value] += 1
    yield _labelled(GaugeMetricFamily, "cuzk_jobs", "Jobs under way.", ("state",), _samples(states))
    yield _labelled(
        GaugeMetricFamily, "cuzk_partitions", "Partitions of jobs under way.", ("stage",), _samples(stages)
    )
    ended = [((kind_label(kind), status.value.lower()), n) for (kind, status), n in told.ended.items()]
    yield _labelled(
        CounterMetricFamily, "cuzk_jobs_ended", "Jobs by how they ended.", ("proof_kind", "status"), ended
    )
    causes = {cause: told.causes.get(cause, 0) for cause in (*(name for _, name in CAUSES), INTERNAL)}
    yield _labelled(
        CounterMetricFamily, "cuzk_failures", "Jobs that failed, by cause.", ("cause",), _samples(causes)
    )
    retries = {why: told.retries.get(why, 0) for why in RETRIES.values()}
    yield _labelled(
        CounterMetricFamily,
        "cuzk_retries",
        "Partitions proven again, by why.",
        ("reason",),
        _samples(retries),
    )
    yield CounterMetricFamily(
        "cuzk_requests_rejected", "Requests whose input was at fault.", value=sight.rejected
    )
    yield CounterMetricFamily("cuzk_events_lost", "Events that were not counted here.", value=sight.lost)


def _samples(values: Mapping[str, float]) -> Iterator[tuple[tuple[str, ...], float]]:
    for label, value in values.items():
        yield (label.replace(" ", "_"),), value


def _memory(budgets: list[MemoryStatus]) -> Iterator[Metric]:
    """Reserved memory; what the process really holds is `process_resident_memory_bytes`."""
    yield _labelled(
        GaugeMetricFamily,
        "cuzk_memory_reserved_bytes",
        "Reserved memory by what for.",
        ("budget", "purpose"),
        (((m.name, purpose), n) for m in budgets for purpose, n in m.by_purpose.items()),
    )
    for name, help, field in (
        ("cuzk_memory_used_bytes", "Reserved memory.", "used"),
        ("cuzk_memory_peak_bytes", "The most that was reserved.", "peak"),
        ("cuzk_memory_budget_bytes", "What may be reserved.", "total"),
    ):
        samples = (((memory.name,), getattr(memory, field)) for memory in budgets)
        yield _labelled(GaugeMetricFamily, name, help, ("budget",), samples)


def _devices(sight: Sight) -> Iterator[Metric]:
    devices = sight.engine.devices

    def gauge(name: str, help: str, samples: Iterable[tuple[DeviceStatus, float]]) -> Metric:
        return _labelled(GaugeMetricFamily, name, help, ("device",), (((d.name,), v) for d, v in samples))

    yield gauge("cuzk_device_healthy", "Gets work.", ((d, float(d.set_aside is None)) for d in devices))
    yield gauge("cuzk_device_strikes", "Failures in a row.", ((d, d.strikes) for d in devices))
    yield gauge(
        "cuzk_device_stalled_workers",
        "Workers that are at one partition for too long.",
        ((d, sum(worker.stalled for worker in d.workers)) for d in devices),
    )
    yield _labelled(
        CounterMetricFamily,
        "cuzk_device_wrong_proofs",
        "Proofs that did not hold; none was handed out.",
        ("device",),
        (((d.name,), d.wrong_proofs) for d in devices),
    )
    yield _labelled(
        CounterMetricFamily,
        "cuzk_gpu_kernel_seconds",
        "Time in which kernels ran, by the device's own clock.",
        ("device",),
        (((d.name,), sight.kernel_ms[d.ordinal] / 1000) for d in devices if d.ordinal in sight.kernel_ms),
    )
    every = GpuTimes(sight.recent)
    times = [(d, every.of(d.ordinal, WINDOW_MS, has_clock=d.ordinal in sight.kernel_ms)) for d in devices]
    yield gauge(
        "cuzk_gpu_efficiency_ratio",
        "Kernels of the last five minutes, by the device's own clock.",
        (
            (d, time.efficiency_percent / 100)
            for d, time in times
            if time is not None and time.efficiency_percent is not None
        ),
    )
    yield _labelled(
        GaugeMetricFamily,
        "cuzk_gpu_time_ratio",
        "What the last five minutes went to.",
        ("device", "part"),
        (
            ((d.name, part), took / time.total_ms)
            for d, time in times
            if time is not None
            for part, took in time.parts_ms.items()
        ),
    )


def _cards(cards: Mapping[str, CardReading]) -> Iterator[Metric]:
    """As the driver says, a few seconds old; what it does not say is left out."""
    for name, help, field in (
        ("cuzk_card_memory_used_bytes", "Used by all processes.", "memory_used_bytes"),
        ("cuzk_card_memory_bytes", "Of the card.", "memory_total_bytes"),
        ("cuzk_card_temperature_celsius", "Of the GPU.", "temperature_c"),
        ("cuzk_card_power_watts", "Drawn now.", "power_w"),
        ("cuzk_card_power_limit_watts", "Enforced.", "power_limit_w"),
        ("cuzk_card_busy_percent", "Of the last second, as NVML has it.", "utilisation_percent"),
    ):
        told = [((device,), getattr(card, field)) for device, card in cards.items()]
        samples = [(labels, value) for labels, value in told if value is not None]
        yield _labelled(GaugeMetricFamily, name, help, ("device",), samples)
