"""`cuzk bench`: how fast this machine proves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import cuzk
from cuzk import view
from cuzk.cli.client import DaemonFlags, daemon_options
from cuzk.cli.engine import EngineFlags, engine_options
from cuzk.cli.options import (
    KIND,
    PATH,
    beside_options,
    command,
    device_option,
    json_option,
    kind_option,
    require_destination,
    size_option,
    threads_option,
    vram_option,
    with_options,
)
from cuzk.errors import UsageError

if TYPE_CHECKING:
    from cuzk.benchmarks.jobs import JobsBench
    from cuzk.config import Config
    from cuzk.sector.pieces import SideInputs


@click.group()
def bench() -> None:
    """Measure how fast this machine proves."""


def input_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is proven."""
    return with_options(function, (
        click.option(*KIND, required=True, help="porep, snap, wpost or winning."),
        click.option("--c1", "--vanilla", "file", type=PATH,
                     help="What is proven: a Commit 1 output, or other vanilla proofs."),
        click.option("--synthetic", is_flag=True,
                     help="Without a file: a synthetic input, under parameters made in the memory of GPUs."),
        beside_options,
    ))  # fmt: skip


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is proven, and what else is asked of both commands."""
    return with_options(function, (
        input_options,
        click.option("--timeline", type=PATH, help="Write the TIMELINE lines to this file."),
        click.option("--miner-id", type=click.IntRange(min=0),
                     help="With -a: whose sector a Commit 1 output is, 1000 for t01000; it is checked."),
        click.option("--sector-num", "sector_number", type=click.IntRange(min=0),
                     help="With -a: the sector's number."),
        daemon_options,
        engine_options,
        json_option,
    ))  # fmt: skip


@command(bench, "single")
@job_options
@click.option("--warm-up", type=click.IntRange(min=0), default=0, show_default=True,
              help="Proofs before the one that counts.")  # fmt: skip
@click.pass_context
def bench_single(ctx: click.Context, /, **given: Any) -> None:
    """Prove an input once."""
    _bench(ctx, "single", count=1, concurrency=1, **given)


@command(bench, "multi")
@job_options
@click.option("-c", "--count", type=click.IntRange(min=1), default=3, show_default=True, help="Proofs.")
@click.option("-j", "--concurrency", type=click.IntRange(min=1), default=1, show_default=True,
              help="Proofs at once.")  # fmt: skip
@click.option("--warm-up", type=click.IntRange(min=0), default=1, show_default=True,
              help="Proofs before those that count.")  # fmt: skip
@click.pass_context
def bench_multi(ctx: click.Context, /, **given: Any) -> None:
    """Prove an input many times, some of them at once."""
    _bench(ctx, "multi", **given)


bench.add_command(bench_multi, "batch")  # its older name


def _bench(
    ctx: click.Context,
    report: str,
    *,
    beside: SideInputs,
    file: Path | None,
    daemon: DaemonFlags,
    settings: Config,
    as_json: bool,
    count: int,
    concurrency: int,
    warm_up: int,
    **of_engine: Any,
) -> None:
    from cuzk.view.bench import show_multi, show_single

    kind = require_input(beside, file, synthetic=of_engine["synthetic"])
    with view.live(as_json=as_json) as on_event:
        counts = {"count": count, "concurrency": concurrency, "warm_up": warm_up, "on_event": on_event}
        if daemon.address is None:
            result = _here(kind, beside, file, settings, counts, **of_engine)
        else:
            _require_silence(**of_engine)
            result = _there(daemon, settings, beside, file, counts)
    if as_json:
        view.show_json({"type": kind, **result.facts()})
    elif report == "single":
        show_single(result)
    else:
        show_multi(result, kind)
    ctx.exit(result.worst_exit_code)


def _here(
    kind: str,
    beside: SideInputs,
    file: Path | None,
    settings: Config,
    counts: dict[str, Any],
    *,
    synthetic: bool,
    timeline: Path | None,
    flags: EngineFlags,
) -> JobsBench:
    """By an engine of this process."""
    from cuzk.benchmarks.jobs import bench_jobs

    if timeline is not None:
        require_destination(timeline, *filter(None, [file]))
    if synthetic:
        flags.require_cards(settings)
    on_event = counts["on_event"]
    return bench_jobs(
        file or cuzk.synthesize(beside.sector_size, kind=kind, on_event=on_event),
        lambda recorder: flags.engine(settings, recorder, on_event, synthetic=synthetic),
        beside=beside if file else None,
        timeline=timeline,
        **counts,
    )


def _there(
    daemon: DaemonFlags,
    settings: Config,
    beside: SideInputs,
    file: Path | None,
    counts: dict[str, Any],
) -> JobsBench:
    """By a daemon."""
    daemon.connect(settings).close()  # what is wrong with the address is said once
    from cuzk.proofs.kinds import kind_named
    from cuzk.server.bench_client import bench_daemon, request_from

    assert file is not None
    request = request_from(file, replace(beside, kind=kind_named(beside.kind).name))
    return bench_daemon(lambda: daemon.connect(settings), request, **counts)


def _require_silence(*, synthetic: bool, timeline: Path | None, flags: EngineFlags) -> None:
    """Raises UsageError for options of an engine, which a daemon has of its own."""
    said = [name for name, value in asdict(flags).items() if value]
    said += ["synthetic"] * synthetic + ["timeline"] * (timeline is not None)
    if said:
        raise UsageError(
            f"a daemon was given its engine when it started: {', '.join(said)} would change nothing",
            where="bench -a",
            next="leave these options out",
        )


def require_input(beside: SideInputs, file: Path | None, *, synthetic: bool) -> str:
    """The kind of proof. Raises UsageError where that is none, or it is not clear what is proven."""
    from cuzk.proofs.kinds import kind_named

    kind = beside.kind.lower()
    kind_named(kind)  # it is one
    if (file is None) is not synthetic or (synthetic and not beside.sector_size):
        raise UsageError(
            "either a file is given or the input is synthetic",
            where="bench",
            next="give --c1 or --vanilla FILE, or --synthetic with --sector-size",
        )
    return kind


@command(bench, "partition")
@kind_option
@size_option
@click.option(
    "--synthetic", is_flag=True, required=True,
    help="The input is synthetic and the parameters are made for it, in memory: say that you know.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the sector.")
@click.option("--registered-proof", metavar="NAME", help="For example StackedDrg32GiBV1; without it V1_1.")
@click.option("--partitions", type=click.IntRange(min=1), help="Only the first so many; without it all.")
@click.option("--out", type=PATH, help="Folder for input, verifying key and proof, for other software.")
@device_option
@vram_option
@threads_option
@json_option
def bench_partition(
    kind: str,
    sector_size: int,
    synthetic: bool,
    seed: int,
    registered_proof: str | None,
    partitions: int | None,
    out: Path | None,
    settings: Config,
    device: str | None,
    vram_limit: int | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Input, parameters and partitions of a size in one process on a GPU, each stage timed."""
    from cuzk.benchmarks.partitions import bench_partitions
    from cuzk.view.bench import show_partitions

    with view.live(as_json=as_json) as on_event:
        result = bench_partitions(
            sector_size,
            kind=kind,
            registered_proof=registered_proof,
            seed=seed,
            partitions=partitions,
            device=device or settings.device,
            threads=threads or settings.threads,
            vram_limit=vram_limit,
            out=out,
            on_event=on_event,
        )
    show_partitions(result, as_json=as_json)
