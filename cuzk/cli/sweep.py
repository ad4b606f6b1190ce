"""`cuzk bench sweep`: the settings of an engine that prove fastest here, tried one set after another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import cuzk
from cuzk import view
from cuzk.cli.bench import input_options, require_input
from cuzk.cli.engine import EngineFlags, sweep_options
from cuzk.cli.options import PATH, config_option, debug_option, json_option, require_destination
from cuzk.errors import ProofError
from cuzk.events import prefixed

if TYPE_CHECKING:
    from cuzk.benchmarks.jobs import JobsBench
    from cuzk.config import Config
    from cuzk.sector.pieces import SideInputs

#: Keys of the configuration, and the setting that each has.
KEYS = {
    "gpus.gpu_workers_per_device": "gpu_workers_per_device",
    "gpus.gpu_lock": "gpu_lock",
    "synthesis.partition_workers": "partition_workers",
}


@click.command("sweep")
@input_options
@click.option(
    "-c",
    "--count",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Proofs with each set of settings.",
)
@click.option(
    "-j", "--concurrency", type=click.IntRange(min=1), default=3, show_default=True, help="Proofs at once."
)
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Proofs before those that count, with each set.",
)
@click.option("--write-config", type=PATH, help="Write the best set into this configuration file.")
@sweep_options
@json_option
@config_option
@debug_option
@click.pass_context
def sweep(
    ctx: click.Context,
    beside: SideInputs,
    file: Path | None,
    synthetic: bool,
    count: int,
    concurrency: int,
    warm_up: int,
    write_config: Path | None,
    flags: Sequence[EngineFlags],
    settings: Config,
    as_json: bool,
) -> None:
    """Prove an input with every set of the settings given, and show which proves fastest."""
    from cuzk.benchmarks.jobs import bench_jobs
    from cuzk.view.bench import show_sweep

    kind = require_input(beside, file, synthetic=synthetic)
    if write_config is not None:
        require_destination(write_config, *filter(None, [file]))
    if synthetic:
        flags[0].require_cards(settings)  # the devices of all sets
    results: list[JobsBench] = []
    with view.live(as_json=as_json) as on_event:
        source = file or cuzk.synthesize(beside.sector_size, kind=kind, on_event=on_event)
        for k, one in enumerate(flags, start=1):
            hear = prefixed(on_event, f"{k}/{len(flags)}: ")
            results.append(
                bench_jobs(
                    source,
                    lambda recorder, one=one, hear=hear: one.engine(  # type: ignore[misc]
                        settings, recorder, hear, synthetic=synthetic
                    ),
                    beside=beside if file else None,
                    count=count,
                    concurrency=concurrency,
                    warm_up=warm_up,
                    on_event=hear,
                )
            )
    best = fastest(results)
    if write_config is not None and best is not None:
        _write(write_config, best)
    if as_json:
        view.show_json({
            "type": kind,
            "runs": [result.facts() for result in results],
            "best": None if best is None else best.settings,
        })  # fmt: skip
    else:
        show_sweep(results, best)
        if write_config is not None and best is not None:
            view.show_paths("written", [write_config], as_json=False)
    ctx.exit(max(result.worst_exit_code for result in results) if best else ProofError.exit_code)


def fastest(results: Sequence[JobsBench]) -> JobsBench | None:
    """The run of the least seconds a proof, if every proof in it came out; None if there is none such."""
    whole = [result for result in results if len(result.completed) == result.count]
    return min(whole, key=lambda result: result.proof_s or 0.0, default=None)


def _write(path: Path, best: JobsBench) -> None:
    from cuzk.config.edit import with_keys
    from cuzk.whole_files import replace_whole

    text = path.read_text(encoding="utf-8") if path.exists() else ""
    keys = {key: best.settings[name] for key, name in KEYS.items()}
    replace_whole(path, [with_keys(text, keys, where=str(path)).encode()])
