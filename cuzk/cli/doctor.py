"""`cuzk doctor`: this machine, and what proofs would take of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from cuzk import view
from cuzk.cli.options import (
    SizeType,
    device_option,
    json_option,
    kind_option,
    params_option,
    threads_option,
    top_command,
    vram_option,
)
from cuzk.errors import UsageError

if TYPE_CHECKING:
    from cuzk.config import Config


@top_command("doctor")
@params_option
@click.option("--self-test", is_flag=True, help="Also run the GPU's kernels and compare with plain integers.")
@click.option("--plan", is_flag=True, help="Show what proofs would take here, and nothing else.")
@kind_option
@click.option("--sector-size", type=SizeType(), help="With --plan: all about this size.")
@vram_option
@device_option
@threads_option
@json_option
@click.pass_context
def doctor(
    ctx: click.Context,
    settings: Config,
    params: Path | None,
    self_test: bool,
    plan: bool,
    kind: str,
    sector_size: int | None,
    vram_limit: int | None,
    device: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Show what this machine has, and what cuzk uses of it."""
    device, threads = device or settings.device, threads or settings.threads
    if plan:
        from cuzk.cli.plan import show_plans

        show_plans(
            ctx, kind, sector_size, device=device, threads=threads, vram_limit=vram_limit, as_json=as_json
        )
        return
    is_silent = ctx.get_parameter_source("kind") is ParameterSource.DEFAULT
    if not is_silent or sector_size is not None or vram_limit is not None:
        raise UsageError(
            "--kind, --sector-size and --vram-limit are about plans", next="add --plan, or omit them"
        )
    from cuzk.reports import machine

    sections, is_wrong = machine.examine(params or settings.params), False
    if self_test:
        from cuzk.reports import self_test as of_kernels

        with view.live(as_json=as_json) as on_event:
            verdicts = of_kernels.self_test(device, threads, on_event)
        sections["self_test"] = verdicts
        is_wrong = any(verdict.startswith(of_kernels.WRONG) for verdict in verdicts.values())
    view.show_sections(sections, as_json=as_json)
    if is_wrong:
        ctx.exit(1)
