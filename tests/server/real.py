"""A daemon of which every part is the real one, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cuzk.proofs.sector_engine import Engine
from cuzk.server.address import Address
from cuzk.server.beside import Beside
from cuzk.server.daemon import Daemon, DaemonSettings, no_metrics
from cuzk.server.intake import prepare_to_read, read_request
from cuzk.server.observation import Observation
from cuzk.server.sectors import SectorProver
from tests.server.hall import Caller, up

LONG_S = 900.0


@asynccontextmanager
async def serving(
    engine: Engine, folder: Path, *, observation: Observation | None = None, **settings: Any
) -> AsyncIterator[tuple[Daemon, Caller]]:
    """On a socket in the folder, with a journal there; it is up when it takes calls, and drains at the end.

    observation  whose recorder the engine has; then there are metrics
    """
    beside = None if observation is None else Beside(observation)
    daemon = Daemon(
        DaemonSettings(listen=Address(path=folder / "cuzk.sock"), journal=folder / "journal", **settings),
        SectorProver(engine),
        read_request,
        prepare=prepare_to_read,
        companions=[] if beside is None else [beside],
        metrics=no_metrics if beside is None else beside.metrics,
    )
    async with up(daemon, waits=False, patience_s=LONG_S) as caller:
        yield daemon, caller
