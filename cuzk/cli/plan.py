"""What `prove --explain` and `doctor --plan` show: a plan, and the exit code of one that does not fit."""

from __future__ import annotations

import click

from cuzk import view
from cuzk.proofs.kinds import kind_named
from cuzk.reports.plan import Explanation, explain, explain_all
from cuzk.view.reports import show_explanation, show_explanations


def show_plans(
    ctx: click.Context,
    kind: str,
    sector_size: int | None,
    *,
    device: str,
    threads: int | None,
    vram_limit: int | None,
    as_json: bool,
) -> None:
    """Of one kind of proof and sector size; without a size, a line for each that networks use."""
    if sector_size is None:
        plans = explain_all(kind_named(kind), device=device, threads=threads, vram_limit=vram_limit)
        show_explanations(plans, as_json=as_json)
        return
    shape = kind_named(kind).shape(sector_size)
    show_plan(ctx, explain(shape, device=device, threads=threads, vram_limit=vram_limit), as_json=as_json)


def show_plan(ctx: click.Context, plan: Explanation, *, as_json: bool) -> None:
    show_explanation(plan, as_json=as_json)
    refusal = plan.refusal()
    if refusal is not None:
        view.show_error(refusal)
        ctx.exit(refusal.exit_code)
