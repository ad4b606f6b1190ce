"""The daemon as a process of its own, on a prover that needs nothing: `python -m tests.server.fake_daemon`.

It is the real one in everything but what it proves: see `fakes` for requests that it takes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from cuzk.errors import CuzkError
from cuzk.server import log
from cuzk.server.access import Access
from cuzk.server.address import parse_address
from cuzk.server.daemon import Daemon, DaemonSettings
from cuzk.timeline.record import Timeline
from tests.server.fakes import MIB, FakeProver, read_fake
from tests.server.load import go_behind


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--preload", action="append", default=[])
    parser.add_argument("--drain-s", type=float, default=10.0)
    parser.add_argument("--readers", type=int, default=1)
    parser.add_argument("--host-mib", type=int, default=1024)
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--journal-bytes", type=int, default=1024 * MIB)
    parser.add_argument("--memory-bytes", type=int, default=4096 * MIB)
    parser.add_argument("--token-file", type=Path)
    given = parser.parse_args()
    log.set_up("info")
    settings = DaemonSettings(
        listen=parse_address(given.listen),
        preload=given.preload,
        journal=given.journal,
        journal_bytes=given.journal_bytes,
        memory_bytes=given.memory_bytes,
        drain_s=given.drain_s,
        readers=given.readers,
        access=Access(token_file=given.token_file),
    )
    prover = FakeProver(host_bytes=given.host_mib * MIB, recorder=Timeline(sys.stderr.buffer))
    try:
        daemon = Daemon(settings, prover, read_fake, prepare=go_behind, metrics=_metrics)
        asyncio.run(daemon.run())
    except CuzkError as error:
        sys.exit(str(error))


async def _metrics() -> str:
    return "cuzk_fake 1\n"


if __name__ == "__main__":
    main()
