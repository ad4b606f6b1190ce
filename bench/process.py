"""Whole tasks in a fresh process each, as a user starts them: wall time to the exit, stages, peak memory.

As a module it is that process: `python -m bench.process TASK ARGUMENTS` calls cuzk and prints as JSON what
the runner wants to know.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.runner import ROOT, Inside

VECTORS = ROOT / "tests/vectors/porep"
SECTOR_BYTES = 2048
KEPT = ROOT / ".bench"
"""What benchmarks make and use again; git ignores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a process printed and used."""

    answer: Any
    inside: Inside


def as_users_have_it() -> dict[str, str]:
    """This process's environment, in which Python may keep the bytecode of modules, as it does by default.

    Without it every start compiles cuzk's own sources again, 0.2 s; what pip installs has been compiled.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run_task(task: str, arguments: Mapping[str, Any], cache: Path | None = None) -> Finished:
    """The task in a process of its own. cache: the folder for compiled code, instead of the user's."""
    environment = {**as_users_have_it(), **({"XDG_CACHE_HOME": str(cache)} if cache else {})}
    command = [sys.executable, "-m", "bench.process", task, json.dumps(arguments)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=None)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{task} ended with exit code {process.returncode}")
    answer = json.loads(printed)
    return Finished(
        answer=answer["answer"], inside=Inside(stages=answer["stages"], peak_bytes=used.ru_maxrss << 10)
    )


def vectors() -> Any:
    """What upstream made of the bundled sectors, with the trapdoors and randomness used here too."""
    return json.loads((VECTORS / "vectors.json").read_text(encoding="utf-8"))


def generate(on_event: Any, *, device: str, out: str) -> str:
    """Parameters of 2 KiB from the trapdoors of the vectors: the path of .params."""
    import cuzk

    given = vectors()["trapdoors"]
    trapdoors = [given[name] for name in ("alpha", "beta", "gamma", "delta", "tau")]
    paths = cuzk.generate_parameters(
        SECTOR_BYTES, trapdoors=trapdoors, out=Path(out), device=device, on_event=on_event
    )
    return str(paths[0])


def prove(on_event: Any, *, device: str, params: str, c1: str) -> str:
    """The proof of a bundled sector with the randomness of the vectors, as hexadecimal digits."""
    import cuzk

    given = vectors()["proof_randomness"]
    result = cuzk.prove(
        VECTORS / c1,
        params=Path(params),
        device=device,
        insecure_rs=(given["r"], given["s"]),
        on_event=on_event,
    )
    return result.proof.hex()


TASKS: dict[str, Callable[..., str]] = {"generate": generate, "prove": prove}


def main() -> None:
    from cuzk.events import StageDone

    stages: dict[str, float] = {}

    def on_event(event: object) -> None:
        if isinstance(event, StageDone):
            stages[event.name] = stages.get(event.name, 0.0) + event.seconds

    answer = TASKS[sys.argv[1]](on_event, **json.loads(sys.argv[2]))
    print(json.dumps({"answer": answer, "stages": stages}))


if __name__ == "__main__":
    main()
