"""The commands. Each parses, calls, shows; what it calls is imported when it runs: --help answers at once.

    root        what goes wrong in a command, as what, where, next and an exit code
    options     values, options and checks that several commands share; `engine`: those of an engine
    prove       prove and verify; a file each for params, sector, circuit, doctor, config, timeline
    plan        what `prove --explain` and `doctor --plan` show
    bench       how fast this machine proves; `sweep`: with which settings
    daemon      serve; `client`: the commands that talk to a daemon

Exit codes: 0 done and verified, 1 the input or the environment is at fault, 2 usage, 3 a proof failed its
check, 128 + n ended by signal n: 130 after Ctrl-C.
"""

from __future__ import annotations

import os

import click

import cuzk
from cuzk.cli import bench, circuit, client, config, daemon, doctor, params, prove, sector, sweep, timeline
from cuzk.cli.options import debug_option
from cuzk.cli.root import Cli


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


bench.bench.add_command(sweep.sweep)
for _command in (
    prove.prove,
    prove.verify,
    params.params,
    sector.sector,
    circuit.circuit,
    doctor.doctor,
    config.config_group,
    timeline.timeline,
    bench.bench,
    daemon.serve,
    *client.COMMANDS,
):
    main.add_command(_command)
