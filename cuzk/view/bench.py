"""What `bench` shows: for one job and for many, the reports that providers' scripts know, and then ours."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cuzk import view
from cuzk.timeline.devices import percent, percent_text
from cuzk.units import format_duration, format_size
from cuzk.view.proof import proof_block

if TYPE_CHECKING:
    from cuzk.benchmarks.figures import Spread
    from cuzk.benchmarks.jobs import BenchedJob, JobsBench
    from cuzk.benchmarks.partitions import PartitionBench


def show_single(result: JobsBench) -> None:
    """The result block of the last job; with its error instead of times if it failed."""
    if result.last is not None:
        click.echo(proof_block(result.last))
    else:
        job = result.jobs[-1]
        click.echo(f"\n=== Proof Result ===\nstatus:    {job.status}")
        click.echo(f"job_id:    {job.job_id}\nerror:     {job.error}")
    _show_ours(result)


def show_multi(result: JobsBench, kind: str) -> None:
    """A line a job, a summary."""
    click.echo("=== Batch Benchmark ===")
    click.echo(f"proof type:  {kind}\ncount:       {result.count}\nconcurrency: {result.concurrency}\n")
    for k, job in enumerate(result.jobs, start=1):
        click.echo(f"  [{k}/{result.count}] {_line(job)}")
    completed, wall = result.completed, result.wall_ms
    click.echo("\n=== Batch Summary ===")
    click.echo(f"total time:    {result.total_s:.1f}s")
    click.echo(f"completed:     {len(completed)}\nfailed:        {len(result.jobs) - len(completed)}")
    if wall is not None:
        from cuzk.benchmarks.figures import Spread

        click.echo(f"wall time:     {_average(wall)}")
        click.echo(f"prove time:    {_average(Spread.of([job.timings['gpu_ms'] for job in completed]))}")
        a_proof = result.total_s / len(completed)
        click.echo(f"throughput:    {60 / a_proof:.3f} proofs/min ({a_proof:.1f}s/proof)")
        click.echo(f"latency:       median={_s(wall.median)} p95={_s(wall.p95)}")
    _show_ours(result)


_SWEPT = (
    "preparers",
    "GPU workers",
    "lock",
    "s a proof",
    "median s",
    "by kernels",
    "lock wait ms",
    "failed",
    "",
)


def show_sweep(results: Sequence[JobsBench], best: JobsBench | None) -> None:
    """A row for each set of settings, the best marked."""
    view.show_table(_SWEPT, [_sweep_row(result, result is best) for result in results])
    if best is None:
        click.echo("no set of settings proved everything")
        return
    said = best.settings
    click.echo(
        f"best: partition_workers = {said['partition_workers']},"
        f' gpu_workers_per_device = {said["gpu_workers_per_device"]}, gpu_lock = "{said["gpu_lock"]}"'
    )


def _sweep_row(result: JobsBench, is_best: bool) -> tuple[object, ...]:
    said, wall, figures = result.settings, result.wall_ms, result.figures
    shares = [share for one in figures.kernels.values() if (share := one.efficiency_percent) is not None]
    waited = [ms for facts in figures.devices.values() if (ms := facts["lock_wait_ms"]) is not None]
    return (
        said["partition_workers"],
        said["gpu_workers_per_device"],
        said["gpu_lock"],
        "-" if result.proof_s is None else f"{result.proof_s:.2f}",
        "-" if wall is None else f"{wall.median / 1000:.2f}",
        percent_text(round(statistics.fmean(shares), 1) if shares else None),
        sum(waited) if waited else "-",
        result.count - len(result.completed),
        "best" if is_best else "",
    )


def show_partitions(result: PartitionBench, *, as_json: bool) -> None:
    """What was made and proven, in what time and memory; then the stages of a partition."""
    if as_json:
        view.show_json(result.facts())
        return
    view.show_facts(
        f"{result.kind} of {result.sector_size}, {len(result.partitions)} partitions, verified",
        {
            "device": result.device,
            "all partitions": format_duration(result.proving_s),
            "host memory, setup": format_size(result.peak_host["setup"]),
            "host memory, proving": format_size(result.peak_host["proving"]),
        },
    )
    view.show_facts("setup", {name: format_duration(s) for name, s in result.setup.items()})
    view.show_table(
        ("stage", "clock", "first", "median of the others"),
        [(name, clock, format_duration(a), format_duration(b)) for name, clock, a, b in result.stage_table()],
    )


def _line(job: BenchedJob) -> str:
    if job.error is not None:
        return f"{job.status} \N{EM DASH} {_s(job.wall_ms)} ({job.error})"
    times = f"prove={job.timings['gpu_ms']} ms, queue={job.timings['queue_ms']} ms"
    return f"{job.status} \N{EM DASH} {_s(job.wall_ms)} ({times})"


def _average(spread: Spread) -> str:
    return f"avg={_s(spread.mean)} min={_s(spread.least)} max={_s(spread.most)}"


def _s(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f}s"


def _show_ours(result: JobsBench) -> None:
    """Stages of partitions, devices, memory."""
    figures = result.figures
    if figures.stages:
        click.secho(
            "\nstages of a partition, in ms; sums over partitions may exceed the total time", bold=True
        )
        rows = [
            (name, *(round(getattr(spread, figure)) for figure in ("median", "p95", "most", "total")))
            for name, spread in figures.stages.items()
        ]
        view.show_table(("stage", "median", "p95", "most", "sum"), rows)
    if figures.devices:
        click.secho("devices, from the first partition to the last", bold=True)
        view.show_table(
            ("device", "busy ms", "idle ms", "efficiency", "lock held ms", "by lock", "by kernels"),
            [_device_row(name, facts) for name, facts in figures.devices.items()],
        )
    if figures.kernels:
        click.secho("kernels, by the devices' clocks, after the first partition of each", bold=True)
        view.show_table(
            ("device", "efficiency", "a partition, ms"),
            [
                (name, percent_text(one.efficiency_percent), round(one.partition_ms))
                for name, one in figures.kernels.items()
            ],
        )
        _show_against_kernels(result)
    for name, nbytes in result.memory.items():
        click.echo(f"most reserved of {name}: {format_size(nbytes)}")


def _show_against_kernels(result: JobsBench) -> None:
    """What a proof took, beside what its kernels take; of one proof that is no comparison."""
    took, kernels = result.proof_s, result.kernels_s
    if took is not None and kernels and result.count > 1:
        parts = f"{result.partitions} partitions on {len(result.figures.kernels)} devices"
        click.echo(
            f"a proof takes {took:.2f} s, the kernels of its {parts} {kernels:.2f} s:"
            f" {100 * (took / kernels - 1):+.1f} %"
        )


def _device_row(name: str, facts: dict[str, Any]) -> tuple[object, ...]:
    busy, idle, held = (facts[key] for key in ("gpu_busy_ms", "gap_total_ms", "lock_held_ms"))
    by_lock = None if held is None else percent(held, busy + idle)
    shares = (facts["efficiency_percent"], by_lock, facts["kernel_efficiency_percent"])
    whole, lock, kernels = map(percent_text, shares)
    return name, busy, idle, whole, "-" if held is None else held, lock, kernels
