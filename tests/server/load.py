"""Load on a daemon: many proofs at once, and someone who asks for its status meanwhile, each a process.

`python -m tests.server.load prove ADDRESS COUNT BYTES` sends so many different inputs of that size at once;
`python -m tests.server.load ask ADDRESS` asks for status until its stdin ends. Both print JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzk.server import proving_pb2 as pb
from tests.server.fakes import proof_of
from tests.server.hall import Caller, channel_to, porep
from tests.server.processes import ROOT

ASK_EVERY_S = 0.02
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """count proofs; of how many the answer was right; seconds from the first call to the last answer."""

    right: int
    seconds: float


def prove(address: str, count: int, nbytes: int) -> Proven:
    """All calls are under way at once. At low priority, since clients are other machines' burden."""
    made = _run("prove", address, str(count), str(nbytes))
    return Proven(**json.loads(made))


def go_ahead() -> None:
    """This process goes before all others on the machine. Needs root."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def go_behind() -> None:
    """This process goes beside all others again, after one that went ahead has started it."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def asking(address: str, *, is_ahead: bool = False) -> Iterator[list[float]]:
    """Ask meanwhile; at the end the list has how many seconds each answer took, the shortest first."""
    took: list[float] = []
    process = subprocess.Popen(
        _command("ask", address),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=go_ahead if is_ahead else None,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()  # it has had its first answer
        yield took
        printed, _ = process.communicate(timeout=PATIENCE_S)
        took += sorted(json.loads(printed))
    finally:
        process.kill()
        process.communicate()


def quantile(ascending: list[float], share: float) -> float:
    """The smallest value that so large a share does not exceed."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def peak_bytes(pid: int) -> int:
    """The most memory that a process and its children held, each at its own time."""
    path = Path(f"/proc/{pid}")
    children = {int(child) for task in path.glob("task/*/children") for child in task.read_text().split()}
    lines = (path / "status").read_text().splitlines()
    [own] = [int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")]
    return own + sum(map(peak_bytes, children))


def _run(*arguments: str) -> bytes:
    done = subprocess.run(
        _command(*arguments), cwd=ROOT, stdout=subprocess.PIPE, timeout=PATIENCE_S, check=True
    )
    return done.stdout


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.server.load", *arguments]


async def _prove(address: str, count: int, nbytes: int) -> dict[str, Any]:
    filling = bytes(nbytes)

    async def is_right(caller: Caller, number: int) -> bool:
        name = f"load-{number}".encode()
        submit = porep(name.decode(), name + filling[len(name) :])
        answer = await caller.prove(submit, timeout=PATIENCE_S)
        result = answer.result
        return bool(result.status == pb.AwaitProofResponse.COMPLETED and result.proof == proof_of(submit))

    async with channel_to(address) as channel:
        caller = Caller(channel)
        begin = time.perf_counter()
        answers = await asyncio.gather(*(is_right(caller, number) for number in range(count)))
        return {"right": sum(answers), "seconds": time.perf_counter() - begin}


async def _ask(address: str) -> list[float]:
    """At a steady pace, whether or not the answers before have come."""
    took: list[float] = []

    async def once(caller: Caller) -> None:
        begin = time.perf_counter()
        await caller.call("GetStatus", timeout=PATIENCE_S)
        took.append(time.perf_counter() - begin)

    async with channel_to(address) as channel:
        caller = Caller(channel)
        await once(caller)
        print(flush=True)
        took.clear()
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        calls = set()
        while not ended.done():
            calls.add(asyncio.create_task(once(caller)))
            await asyncio.sleep(ASK_EVERY_S)
        await asyncio.gather(*calls)
    return took


def main() -> None:
    what, address, *numbers = sys.argv[1:]
    if what == "prove":
        os.nice(10)
        print(json.dumps(asyncio.run(_prove(address, *map(int, numbers)))))
    else:
        print(json.dumps(asyncio.run(_ask(address))))


if __name__ == "__main__":
    main()
