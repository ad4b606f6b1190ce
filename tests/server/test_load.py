"""Many requests at once, and large ones: right answers, bounded memory, and status meanwhile.

`bench.server` measures the same.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.server import load
from tests.server.processes import READY, daemon

MIB = 1 << 20
#: The processes themselves, and for each size what two messages take that are received, one that is read, and
#: the first bytes of all others: bounds, whatever the number of requests.
HELD_MIB = {1: 600, 32: 1000, 100: 4096}


def loaded(folder: Path, count: int, mib: int, *, is_ahead: bool = False) -> list[float]:
    """How long status took meanwhile, in seconds, the shortest first; all else is asserted."""
    address = f"unix://{folder / 'cuzk.sock'}"
    arguments = ("--listen", address, "--journal", str(folder / "journal"), "--host-mib", "4096")
    more = {"preexec_fn": load.go_ahead} if is_ahead else {}
    with daemon(*arguments, "--journal-bytes", str(8 << 30), **more) as process:
        process.line(READY)
        load.prove(address, 4, 100)
        with load.asking(address, is_ahead=is_ahead) as took:
            assert load.prove(address, count, mib * MIB).right == count
        assert load.peak_bytes(process.popen.pid) < HELD_MIB[mib] * MIB
    assert took
    return took


@pytest.mark.parametrize(("count", "mib"), [(40, 1), (4, 32)])
def test_all_of_many_requests_at_once_get_their_own_proofs(count: int, mib: int, tmp_path: Path) -> None:
    loaded(tmp_path, count, mib)


@pytest.mark.stress
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("count", "mib", "late_s"), [(1000, 1, 0.05), (20, 100, 2.0)])
def test_status_is_answered_soon_while_a_thousand_requests_and_very_large_ones_come(
    count: int, mib: int, late_s: float, tmp_path: Path
) -> None:
    """A message of 100 MiB keeps Python's lock for a tenth of a second or two, in gRPC's own code; several
    may follow each other."""
    if os.geteuid():
        pytest.skip("only root can go ahead of what else this machine does")
    assert load.quantile(loaded(tmp_path, count, mib, is_ahead=True), 0.99) < late_s
