"""`cuzk params`: Groth16 parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import cuzk
from cuzk import view
from cuzk.cli.options import (
    KIND,
    PATH,
    Integers,
    SizeType,
    command,
    device_option,
    json_option,
    kind_option,
    params_option,
    size_option,
    threads_option,
    vram_option,
)
from cuzk.errors import UsageError
from cuzk.view.params import show_parameters, show_tried

if TYPE_CHECKING:
    from cuzk.config import Config


@click.group()
def params() -> None:
    """Groth16 parameters: find, check, make or download them."""


@command(params, "list")
@click.option(*KIND, help="This kind of proof only: porep, snap, wpost or winning.")
@click.option("--sector-size", type=SizeType(), help="This size only.")
@params_option
@json_option
def params_list(
    kind: str | None, sector_size: int | None, settings: Config, params: Path | None, as_json: bool
) -> None:
    """List the parameters that a search finds, first come first served."""
    from cuzk.reports.parameters import parameter_files

    files = list(parameter_files(params or settings.params, kind, sector_size))
    show_parameters(files, as_json=as_json)


@command(params, "verify")
@kind_option
@size_option
@params_option
@device_option
@threads_option
@json_option
def params_verify(
    kind: str,
    sector_size: int,
    settings: Config,
    params: Path | None,
    device: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Check the parameters of a sector size: sizes, digest, every point on the curve and in its group."""
    with view.live(as_json=as_json) as on_event:
        found = cuzk.verify_parameters(
            sector_size,
            kind=kind,
            params=params or settings.params,
            device=device or settings.device,
            threads=threads or settings.threads,
            on_event=on_event,
        )
    view.show_paths("checked", [found], as_json=as_json)


@command(params, "generate")
@kind_option
@size_option
@click.option("--insecure-dev", is_flag=True, help="Required: you know that no network accepts such proofs.")
@click.option(
    "--trapdoors", type=Integers("ALPHA", "BETA", "GAMMA", "DELTA", "TAU"), help="Fixed, for tests."
)
@click.option("--vk-only", is_flag=True, help="The verifying key alone: .vk and .meta, no points.")
@click.option(
    "--ephemeral", is_flag=True,
    help="In the memory of a GPU only: made, every point checked, one proof made and verified, given up. With"
    " --out the verifying key is kept.",
)  # fmt: skip
@click.option("--out", type=PATH, help="Folder; without it cuzk's own for development parameters.")
@device_option
@vram_option
@threads_option
@json_option
def params_generate(
    kind: str,
    sector_size: int,
    insecure_dev: bool,
    trapdoors: tuple[int, ...] | None,
    vk_only: bool,
    ephemeral: bool,
    out: Path | None,
    settings: Config,
    device: str | None,
    vram_limit: int | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Make development parameters for a sector size. Whoever makes them can forge proofs."""
    if not insecure_dev:
        raise _insecure(kind, sector_size)
    if vk_only and ephemeral or vram_limit is not None and not ephemeral:
        raise UsageError(
            "--vk-only makes no points, and only --ephemeral keeps them on a GPU",
            next="choose one of --vk-only and --ephemeral; --vram-limit goes with --ephemeral",
        )
    device, threads = device or settings.device, threads or settings.threads
    if ephemeral:
        from cuzk.parameters import try_parameters

        with view.live(as_json=as_json) as on_event:
            tried = try_parameters(
                sector_size,
                kind=kind,
                trapdoors=trapdoors,
                out=out,
                device=device,
                vram_limit=vram_limit,
                threads=threads,
                on_event=on_event,
            )
        show_tried(tried, as_json=as_json)
        return
    with view.live(as_json=as_json) as on_event:
        paths = cuzk.generate_parameters(
            sector_size,
            kind=kind,
            trapdoors=trapdoors,
            out=out,
            vk_only=vk_only,
            device=device,
            threads=threads,
            on_event=on_event,
        )
    view.show_paths("written", paths, as_json=as_json)


def _insecure(kind: str, sector_size: int) -> UsageError:
    """With what to do instead, where there is something else."""
    from cuzk.groth16.parameters.locate import how_to_fetch
    from cuzk.proofs.kinds import kind_named

    fetch = how_to_fetch(kind_named(kind).shape(sector_size))
    return UsageError(
        "parameters made by one machine are insecure",
        next=f"add --insecure-dev if they are for development{f'; {fetch}' if fetch else ''}",
    )


@command(params, "fetch")
@kind_option
@size_option
@click.option("--out", type=PATH, help="Folder; without it where other software keeps its parameters.")
@click.option("--gateway", metavar="URL", help="Where to download from.")
@json_option
def params_fetch(
    kind: str, sector_size: int, out: Path | None, settings: Config, gateway: str | None, as_json: bool
) -> None:
    """Download the published parameters of a sector size. Run it again to go on where it stopped."""
    from cuzk.parameters import fetch_parameters

    with view.live(as_json=as_json) as on_event:
        paths = fetch_parameters(
            sector_size,
            kind=kind,
            out=out or settings.params,
            gateway=gateway or settings.gateway,
            on_event=on_event,
        )
    view.show_paths("fetched", paths, as_json=as_json)
