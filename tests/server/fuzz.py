"""Spoilt requests, one after another, to what reads and checks requests: `python -m tests.server.fuzz`.

A request must be refused as the client's fault, with a text that says where, or be one that can be proven:
then every row of its circuit is satisfied, which is all that a correct proof needs. Anything else is a
finding: another error, too much work, memory without bound, the end of the process. Input
number N of a seed is always the same: `--seed SEED --first N --count 1` repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from cuzk.circuit import rows
from cuzk.errors import InputError
from cuzk.kernels.device.choose import choose
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.proofs.synthesis import synthesis_on
from cuzk.server.intake import read_request
from cuzk.server.messages import code_of
from tests.server.mutations import good_requests, mutant

LONGEST_S = 10.0  # of processor time, for one input; the first of a kind also makes its circuit
MEMORY = 8 << 30  # of addresses: kernels and threads take two


@dataclass(slots=True)
class Findings:
    """refused: how often, by the first words of the text; accepted: how many could be proven."""

    refused: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    wrong: list[str] = field(default_factory=list)
    slowest_s: float = 0.0

    @property
    def inputs(self) -> int:
        return self.refused.total() + self.accepted + len(self.wrong)


def fuzz(seed: int, numbers: Iterator[int], found: Findings) -> None:
    """Adds to `found`; each entry of `wrong` names its input."""
    good = good_requests()
    for number in numbers:
        data = mutant(Random(f"{seed}-{number}"), good)
        begin = time.process_time()
        try:
            _try(data, found)
        except Exception:
            found.wrong.append(f"seed {seed} input {number}: {traceback.format_exc(limit=-4)}")
        took = time.process_time() - begin
        found.slowest_s = max(found.slowest_s, took)
        if took > LONGEST_S:
            found.wrong.append(f"seed {seed} input {number}: took {took:.1f} s")


def _try(data: bytes, found: Findings) -> None:
    try:
        request = read_request(data, True)
    except InputError as error:
        assert code_of(error).name == "INVALID_ARGUMENT"
        found.refused[" ".join(str(error).split(": ")[-1].split()[:4])] += 1
        return
    given: Any = request.source
    synthesis = _synthesis(given.shape)
    for partition in range(given.partition_count):
        synthesis.assign(free_values(given, partition))
        for side in (rows.A, rows.B, rows.C):
            synthesis.rows(side)
        unsatisfied = synthesis.unsatisfied_row()
        assert unsatisfied is None, f"accepted, but row {unsatisfied} does not hold"
    found.accepted += 1


_open = ExitStack()


@cache
def _synthesis(shape: Any) -> Any:
    """Of the few shapes that small requests have; kept until the process ends."""
    return _open.enter_context(synthesis_on(choose("cpu", None), circuit_of(shape)))


def numbers_for(seconds: float, first: int = 0) -> Iterator[int]:
    end = time.monotonic() + seconds
    number = first
    while time.monotonic() < end:
        yield number
        number += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found = Findings()
    chosen = numbers_for(given.seconds, given.first)
    if given.count is not None:
        chosen = iter(range(given.first, given.first + given.count))
    with contextlib.suppress(KeyboardInterrupt):
        fuzz(given.seed, chosen, found)
    report = {
        "inputs": found.inputs,
        "refused": found.refused.total(),
        "accepted_and_provable": found.accepted,
        "slowest_s": round(found.slowest_s, 2),
        "findings": found.wrong,
        "refusals": dict(found.refused.most_common(40)),
    }
    print(json.dumps(report, indent=1))
    _open.close()
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    main()
