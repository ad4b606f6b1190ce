"""A daemon under load: `python -m bench.server`.

So many calls of Prove at once, each with an input of its own, over a unix socket; meanwhile status is asked
for fifty times a second, whether or not the answers before have come. The daemon is the real one with a
journal on the disk; its engine is a fake one that answers at once, so that what is measured is the way of
requests in and answers out. Clients are processes of their own. Check: every answer is the proof of its own
input. The peak of memory is that of the daemon and the processes that read its requests, added up.

On a machine that does other things too, --ahead lets the daemon and those who ask for status go before all
else that runs, the daemon's readers too, as if it had cores of its own; it needs root.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.process import KEPT
from bench.runner import Case, Inside, main
from tests.server import load
from tests.server.processes import READY, Process, daemon

_MIB = 1 << 20
_BOOT_S = 120.0
#: Calls at once, MiB of each: many, a sector of 32 GiB, the largest that anyone speaks of.
LOADS = ((1000, 1), (20, 65), (20, 100))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ahead", action="store_true", help="before everything else that runs")
    parser.add_argument("--load", action="append", metavar="CALLSxMIB", help="instead of the usual three")


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    with tempfile.TemporaryDirectory(dir=_folder()) as folder:
        address = f"unix://{folder}/cuzk.sock"
        journal = ("--journal", f"{folder}/journal", "--journal-bytes", str(8 << 30))
        sizes = ("--readers", "2", "--host-mib", "4096")
        hurry: dict[str, Callable[[], None]] = {"preexec_fn": load.go_ahead} if chosen.ahead else {}
        for count, mib in _loads(chosen):
            with daemon("--listen", address, *journal, *sizes, patience_s=_BOOT_S, **hurry) as process:
                process.line(READY)
                yield Case(
                    name=f"{count} x {mib} MiB",
                    device="fake",
                    n=count,
                    prepare=lambda: None,
                    run=partial(run, process, address, count, mib * _MIB, is_ahead=chosen.ahead),
                    check=partial(_is_right, count),
                    items=count,
                    unit="proofs",
                    inside=_inside,
                )


def _loads(chosen: argparse.Namespace) -> list[tuple[int, int]]:
    if not chosen.load:
        return list(LOADS)
    return [(int(count), int(mib)) for count, _, mib in (text.partition("x") for text in chosen.load)]


def _folder() -> Path:
    KEPT.mkdir(exist_ok=True)
    return KEPT


def run(
    process: Process, address: str, count: int, nbytes: int, _: Any, *, is_ahead: bool
) -> tuple[load.Proven, list[float], int]:
    """What was proven, how long status took meanwhile, and the most memory."""
    load.prove(address, 8, 100)  # readers have started
    with load.asking(address, is_ahead=is_ahead) as took:
        proven = load.prove(address, count, nbytes)
    return proven, took, load.peak_bytes(process.popen.pid)


def _is_right(count: int, ran: tuple[load.Proven, list[float], int]) -> bool:
    return ran[0].right == count


def _inside(ran: tuple[load.Proven, list[float], int]) -> Inside:
    proven, took, peak_bytes = ran
    shares = (("half", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("all", 1.0))
    stages = {"first call to last answer": proven.seconds}
    stages |= {f"status, {name} within": load.quantile(took, share) for name, share in shares}
    return Inside(stages=stages, peak_bytes=peak_bytes)


if __name__ == "__main__":
    main((__doc__ or "").split("\n")[0], cases, options, warm_up=0, runs=1)
