"""The figures of a report as plain data: what `--json` prints, and what tables are made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from cuzk.timeline.analyze import Report, Run
from cuzk.timeline.devices import Cause, Device, Gap, percent
from cuzk.timeline.jobs import Job, Partition

#: Gaps are counted below the first, between the two, and above the second.
SHORT_GAP_MS, LONG_GAP_MS = 50, 500
CRITICAL = ("before_synthesis", "synthesis", "before_call", "call")


def report_facts(report: Report, gap_ms: int) -> dict[str, Any]:
    """Everything: totals of all runs and GPUs first, then run by run. Times in milliseconds."""
    devices = [device for run in report.runs for device in run.devices]
    return {
        "log": report.name,
        "lines": asdict(report.counts),
        "jobs": sum(len(run.jobs) for run in report.runs),
        **device_facts(devices),
        f"gaps_of_at_least_{gap_ms}_ms": [
            {"run": number, **gap_facts(gap)}
            for number, run in enumerate(report.runs, 1)
            for gap in long_gaps(run, gap_ms)
        ],
        "runs": [_run_facts(number, run) for number, run in enumerate(report.runs, 1)],
        "notices": list(report.notices),
        "advice": list(report.advice),
    }


def device_facts(devices: Sequence[Device]) -> dict[str, Any]:
    """Figures of one GPU, or sums over several."""
    gaps = [gap.gap_ms for device in devices for gap in device.gaps]
    busy_ms, idle_ms = sum(device.busy.total for device in devices), sum(gaps)
    kernel_ms = _sum(device.kernel_ms for device in devices)
    return {
        "gpu_calls": sum(device.calls for device in devices),
        "gaps": len(gaps),
        f"gaps_below_{SHORT_GAP_MS}_ms": sum(gap < SHORT_GAP_MS for gap in gaps),
        f"gaps_{SHORT_GAP_MS}_to_{LONG_GAP_MS}_ms": sum(SHORT_GAP_MS <= gap <= LONG_GAP_MS for gap in gaps),
        f"gaps_above_{LONG_GAP_MS}_ms": sum(gap > LONG_GAP_MS for gap in gaps),
        "gap_total_ms": idle_ms,
        "gpu_busy_ms": busy_ms,
        "gap_average_ms": round(idle_ms / len(gaps), 1) if gaps else None,
        "efficiency_percent": percent(busy_ms, busy_ms + idle_ms),
        "kernel_ms": kernel_ms,
        "kernel_efficiency_percent": None if kernel_ms is None else percent(kernel_ms, busy_ms + idle_ms),
        "lock_wait_ms": _sum(device.wait_ms for device in devices),
        "lock_held_ms": _sum(device.lock_ms for device in devices),
        "idle_by_cause_ms": {
            cause.value: sum(gap.parts_ms[cause] for device in devices for gap in device.gaps)
            for cause in Cause
        },
    }


def long_gaps(run: Run, gap_ms: int) -> list[Gap]:
    """The gaps of all GPUs that last at least `gap_ms`, by their beginning."""
    return sorted((gap for gap in run.gaps if gap.gap_ms >= gap_ms), key=lambda gap: gap.end_ms)


def gap_facts(gap: Gap) -> dict[str, Any]:
    """A gap: `end_ms` is the GPU_END before it, `start_ms` the GPU_START after it."""
    return {
        "device": gap.device,
        "end_ms": gap.end_ms,
        "start_ms": gap.start_ms,
        "gap_ms": gap.gap_ms,
        "cause": gap.cause.value,
        "parts_ms": {cause.value: took for cause, took in gap.parts_ms.items()},
    }


def job_facts(job: Job) -> dict[str, Any]:
    """A job without its partitions."""
    return {
        "job": job.job,
        "state": job.state,
        "proven_partitions": sum(partition.proven for partition in job.partitions),
        "first_ms": job.first_ms,
        "last_ms": job.last_ms,
        "wall_ms": job.wall_ms,
        "synthesis_sum_ms": job.synthesis_ms,
        "queue_sum_ms": job.queue_ms,
        "gpu_sum_ms": job.gpu_ms,
        "critical_path_ms": dict(zip(CRITICAL, job.critical, strict=True)) if job.critical else None,
    }


def _run_facts(number: int, run: Run) -> dict[str, Any]:
    return {
        "run": number,
        "first_ms": run.work.first_ms,
        "last_ms": run.work.last_ms,
        "devices": [
            {"device": device.device, "workers": list(device.workers), **device_facts([device])}
            for device in run.devices
        ],
        "jobs": [
            {**job_facts(job), "partitions": [_partition_facts(partition) for partition in job.partitions]}
            for job in run.jobs
        ],
    }


def _partition_facts(partition: Partition) -> dict[str, Any]:
    return {field.name: getattr(partition, field.name) for field in fields(partition)}  # asdict takes 7 us


def _sum(values: Iterable[int | None]) -> int | None:
    """Of what is known; None where nothing is, or not of all."""
    known = list(values)
    return sum(value for value in known if value is not None) if known and None not in known else None
