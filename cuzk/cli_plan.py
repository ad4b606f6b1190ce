"""What `prove --explain` and `doctor --plan` show: a plan, and the exit code of one that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cuzk import view
from cuzk.explain import explain, explain_all

if TYPE_CHECKING:
    from cuzk.sector.shape import SectorShape


def show_plan(
    ctx: click.Context,
    shape: SectorShape | None,
    *,
    device: str,
    threads: int | None,
    vram_limit: int | None,
    as_json: bool,
) -> None:
    """Of sectors of that shape; without one, a line for each size that networks use."""
    if shape is None:
        plans = explain_all(device=device, threads=threads, vram_limit=vram_limit)
        view.show_plans(plans, as_json=as_json)
        return
    explanation = explain(shape, device=device, threads=threads, vram_limit=vram_limit)
    view.show_explanation(explanation, as_json=as_json)
    refusal = explanation.refusal()
    if refusal is not None:
        view.show_error(refusal)
        ctx.exit(refusal.exit_code)
