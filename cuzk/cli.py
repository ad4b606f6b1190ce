"""The commands. Each parses, calls, shows; what it calls is imported when it runs: --help answers at once.

Exit codes: 0 done and verified, 1 the input or the environment is at fault, 2 usage, 3 a proof failed its
check, 128 + n ended by signal n: 130 after Ctrl-C.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

import cuzk
from cuzk import view
from cuzk.cli_bench import bench
from cuzk.cli_client import COMMANDS
from cuzk.cli_config import config_group
from cuzk.cli_daemon import serve
from cuzk.cli_root import Cli
from cuzk.cli_sweep import sweep
from cuzk.cli_timeline import timeline
from cuzk.errors import UsageError
from cuzk.events import stage
from cuzk.options import (
    PATH,
    Integers,
    SizeType,
    command,
    debug_option,
    device_option,
    file_argument,
    json_option,
    kind_option,
    params_option,
    require_destination,
    size_option,
    threads_option,
    vram_option,
)

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.sector.pieces import SideInputs


@click.group(
    cls=Cli,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "color": False if os.environ.get("NO_COLOR") else None,
    },
)
@click.version_option(cuzk.__version__, prog_name="cuzk")
@debug_option
def main() -> None:
    """Prove Filecoin sectors: turns the output of Commit 1 into Groth16 proofs."""


@main.group()
def params() -> None:
    """Groth16 parameters: find, check, make or download them."""


@main.group()
def sector() -> None:
    """What a prover is given: look at it, or make it up."""


bench.add_command(sweep)
main.add_command(bench)
main.add_command(config_group)
main.add_command(serve)
for of_daemon in COMMANDS:
    main.add_command(of_daemon)
main.add_command(timeline)


@main.group()
def circuit() -> None:
    """Look at the circuit that is proven."""


# ---- prove and verify ----


@command(main, "prove")
@file_argument
@click.option("--out", type=PATH, help="Write the proof's bytes to this file.")
@json_option
@params_option
@device_option
@vram_option
@threads_option
@click.option("--partition", "partitions", multiple=True, type=click.IntRange(min=0), metavar="K",
              help="Prove this partition only; may be repeated.")  # fmt: skip
@click.option("--explain", is_flag=True, help="Show how a proof would be computed; prove nothing.")
@click.option("--check", is_flag=True, help="Also evaluate every row: if one does not hold, it is named.")
@click.option(
    "--insecure-rs",
    type=Integers("R", "S"),
    help="Fix the randomness. For tests: the proof is not zero-knowledge.",
)
@click.pass_context
def prove(
    ctx: click.Context,
    file: Path,
    beside: SideInputs,
    out: Path | None,
    as_json: bool,
    settings: Config,
    params: Path | None,
    device: str | None,
    vram_limit: int | None,
    threads: int | None,
    partitions: tuple[int, ...],
    explain: bool,
    check: bool,
    insecure_rs: tuple[int, int] | None,
) -> None:
    """Prove what FILE is about and verify the proof.

    FILE is a Commit 1 output, or vanilla proofs of another kind: an envelope that says what they are, or a
    bare list (a JSON array of base64 strings) with options that say it.
    """
    device, threads = device or settings.device, threads or settings.threads
    if explain:
        from cuzk.cli_plan import show_plan
        from cuzk.explain import explain as explain_proof
        from cuzk.sources import read_input

        shape = read_input(file, beside).shape
        plan = explain_proof(shape, device=device, threads=threads, vram_limit=vram_limit)
        show_plan(ctx, plan, as_json=as_json)
        return
    from cuzk.groth16.files import replace_atomically

    if out is not None:
        require_destination(out)
    with view.live(as_json=as_json) as on_event:
        result = cuzk.prove(
            file,
            beside=beside,
            params=params or settings.params,
            device=device,
            vram_limit=vram_limit,
            threads=threads,
            partitions=partitions or None,
            insecure_rs=insecure_rs,
            check=check,
            on_event=on_event,
        )
    if out is not None:
        replace_atomically(out, result.proof)
    view.show_proof(result, out=out, as_json=as_json)


@command(main, "verify")
@file_argument
@click.argument("proof", type=PATH)
@params_option
@json_option
def verify(
    file: Path, proof: Path, beside: SideInputs, settings: Config, params: Path | None, as_json: bool
) -> None:
    """Check PROOF, raw bytes or hexadecimal digits, of what FILE is about; see `cuzk prove`."""
    with view.live(as_json=as_json) as on_event:
        result = cuzk.verify(file, proof, beside=beside, params=params or settings.params, on_event=on_event)
    view.show_verdict(result, as_json=as_json)


# ---- parameters ----


@command(params, "list")
@click.option("--kind", help="This kind of proof only: porep, snap, wpost or winning.")
@click.option("--sector-size", type=SizeType(), help="This size only.")
@params_option
@json_option
def params_list(
    kind: str | None, sector_size: int | None, settings: Config, params: Path | None, as_json: bool
) -> None:
    """List the parameters that a search finds, first come first served."""
    from cuzk import doctor

    files = list(doctor.parameter_files(params or settings.params, kind, sector_size))
    view.show_parameters(files, as_json=as_json)


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
        raise UsageError(
            "parameters made by one machine are insecure",
            next="add --insecure-dev if they are for development; `cuzk params fetch` gets the real ones",
        )
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
        view.show_tried(tried, as_json=as_json)
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


# ---- what is proven, and on what ----


@command(sector, "inspect")
@file_argument
@click.option(
    "--miner",
    type=click.IntRange(min=0),
    help="Of a Commit 1 output: check that it is this miner's (1000 for t01000).",
)
@json_option
def sector_inspect(
    file: Path, beside: SideInputs, miner: int | None, settings: Config, as_json: bool
) -> None:
    """Read FILE, check all that can be checked without proving, and show what it says; see `cuzk prove`."""
    from cuzk import report
    from cuzk.kernels.device.choose import choose_host
    from cuzk.sources import check_input, read_input
    from cuzk.warm_up import TO_CHECK, warm_up

    machine = choose_host(settings.device, settings.threads)
    with view.live(as_json=as_json) as on_event:
        with stage(on_event, "read"):
            given = read_input(file, beside)
        warm_up(machine, TO_CHECK, on_event)
        with stage(on_event, "check"):
            check_input(given, machine, miner=miner)
    view.show_sections(report.input_facts(given), as_json=as_json)


@command(sector, "synthesize")
@kind_option
@size_option
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another seed, another sector."
)
@click.option("--registered-proof", metavar="NAME",
              help="Of PoRep, for example StackedDrg32GiBV1; without it V1_1.")  # fmt: skip
@click.option("--out", type=PATH, help="File to write; without it one here whose name says what it is.")
@threads_option
@json_option
def sector_synthesize(
    kind: str,
    sector_size: int,
    seed: int,
    registered_proof: str | None,
    out: Path | None,
    settings: Config,
    threads: int | None,
    as_json: bool,
) -> None:
    """Make what is proven of sectors that nobody sealed, for tests and benchmarks. It passes every check."""
    from cuzk.api import synthetic_name

    out = out or Path(synthetic_name(kind, sector_size, registered_proof, seed))
    require_destination(out)
    with view.live(as_json=as_json) as on_event:
        cuzk.synthesize(
            sector_size,
            kind=kind,
            seed=seed,
            registered_proof=registered_proof,
            out=out,
            threads=threads or settings.threads,
            on_event=on_event,
        )
    view.show_paths("written", [out], as_json=as_json)


@command(circuit, "info")
@kind_option
@size_option
@json_option
def circuit_info(kind: str, sector_size: int, settings: Config, as_json: bool) -> None:
    """Show the counts of a sector size's circuit, and what its parameters take."""
    from cuzk import report
    from cuzk.kinds import circuit_of, kind_named

    with view.live(as_json=as_json) as on_event, stage(on_event, "build the circuit"):
        shape = kind_named(kind).shape(sector_size)
        built = circuit_of(shape)
    view.show_circuit(report.circuit_facts(shape, built), report.template_facts(built), as_json=as_json)


@command(circuit, "digest")
@file_argument
@click.option("--partition", "partitions", multiple=True, type=click.IntRange(min=0), metavar="K",
              help="This partition only; may be repeated.")  # fmt: skip
@click.option("--check", is_flag=True, help="Also find the first row that is not satisfied.")
@device_option
@threads_option
@json_option
@click.pass_context
def circuit_digest(
    ctx: click.Context,
    file: Path,
    beside: SideInputs,
    partitions: tuple[int, ...],
    check: bool,
    settings: Config,
    device: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Print digests of the circuit and of the assignment that FILE gives it, to compare with other provers.

    FILE is as for `cuzk prove`.
    """
    from cuzk import report
    from cuzk.sources import read_input

    with view.live(as_json=as_json) as on_event:
        with stage(on_event, "read"):
            given = read_input(file, beside)
        facts = report.digests(
            given,
            partitions=partitions,
            check=check,
            device=device or settings.device,
            threads=threads or settings.threads,
            on_event=on_event,
        )
    view.show_sections(facts, as_json=as_json)
    if any(section.get("unsatisfied") for section in facts.values()):
        ctx.exit(1)


@command(main, "doctor")
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
def doctor_(
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
        from cuzk.cli_plan import show_plans

        show_plans(
            ctx, kind, sector_size, device=device, threads=threads, vram_limit=vram_limit, as_json=as_json
        )
        return
    if sector_size is not None or vram_limit is not None:
        raise UsageError("--sector-size and --vram-limit are about plans", next="add --plan, or omit them")
    from cuzk import doctor

    sections, verdicts = doctor.examine(params or settings.params), {}
    if self_test:
        from cuzk import self_test as tests

        with view.live(as_json=as_json) as on_event:
            sections["self-test"] = verdicts = tests.self_test(device, threads, on_event)
    view.show_sections(sections, as_json=as_json)
    if any(verdict.startswith(tests.WRONG) for verdict in verdicts.values()):
        ctx.exit(1)


if __name__ == "__main__":
    main()
