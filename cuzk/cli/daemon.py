"""`cuzk serve`: the daemon that Curio's tasks talk to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import cuzk
from cuzk.cli.engine import EngineFlags, engine_options
from cuzk.cli.options import PATH, debug_option, load_config, with_options
from cuzk.errors import ResourceError, UsageError
from cuzk.folders import data_folder

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.proofs.sector_engine import Engine
    from cuzk.server.daemon import Daemon, DaemonSettings
    from cuzk.server.log import Log


def serve_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All of them, under the names that Curio's daemon has for the first three."""
    return with_options(function, (
        click.option("-c", "--config", "settings", type=PATH, callback=load_config,
                     help="Configuration file; without it the user's own, else /data/zk/cuzk.toml."),
        click.option("-l", "--listen", metavar="ADDRESS", help="unix:///path, or host:port."),
        click.option("--log-level", metavar="LEVEL", help="trace, debug, info, warn, error; RUST_LOG wins."),
        click.option("--status-listen", metavar="HOST:PORT", help="Status, metrics and page over HTTP."),
        engine_options,
        debug_option,
    ))  # fmt: skip


@click.command("serve")
@serve_options
def serve(
    settings: Config,
    listen: str | None,
    log_level: str | None,
    status_listen: str | None,
    flags: EngineFlags,
) -> None:
    """Prove for clients over gRPC, as Curio's daemon does, until a signal comes."""
    require_libraries("aiohttp", "grpc", "prometheus_client")
    import asyncio

    from cuzk.server import log
    from cuzk.server.beside import Beside
    from cuzk.server.card_readings import CardReadings
    from cuzk.server.daemon import Daemon
    from cuzk.server.intake import prepare_to_read, read_request
    from cuzk.server.observation import Observation
    from cuzk.server.sectors import SectorProver
    from cuzk.timeline.record import Timeline

    try:
        log.set_up(log_level or settings.log_level, as_json=settings.log_format == "json")
    except ValueError as error:
        raise UsageError(str(error), where="--log-level", next="name a level") from error
    told = log.Log("cuzk_daemon")
    told.info("cuzk-daemon starting", version=cuzk.__version__, pid=os.getpid())
    daemon_settings = _daemon_settings(settings, listen, status_listen)
    told.info("configuration loaded", listen=daemon_settings.listen)
    observation = Observation(Timeline(sys.stderr.buffer))
    engine = flags.engine(settings, observation.recorder, log.hear)
    _tell_engine(log.Log("cuzk_core.engine"), engine)
    cards = CardReadings(engine.cards)
    beside = Beside(observation, cards)
    daemon = Daemon(
        daemon_settings,
        SectorProver(engine),
        read_request,
        prepare=prepare_to_read,
        companions=[beside],
        metrics=beside.metrics,
        cards=cards.latest,
    )
    asyncio.run(_served(daemon))


async def _served(daemon: Daemon) -> None:
    """From start to end, which is that of the process: threads may be left that load parameters, or wait for
    a kernel that does not end, and Python would wait for them. All that must be closed is."""
    import logging

    await daemon.run()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def _tell_engine(told: Log, engine: Engine) -> None:
    """What Curio's daemon says when its engine has started."""
    status, workers = engine.status(), engine.settings.gpu_workers_per_device
    names = [device.name for device in status.devices]
    total_gib = sum(memory.total for memory in status.memory) >> 30
    told.info("memory budget initialized", total_budget_gib=total_gib)
    told.info(
        "initializing GPU workers",
        num_gpus=len(names),
        gpu_workers_per_device=workers,
        total_workers=workers * len(names),
        gpus=names,
    )
    told.info("cuzk engine started", num_workers=workers * len(names), pipeline=True)


def require_libraries(*names: str) -> None:
    """Load those of the daemon or its clients. Raises ResourceError where one is missing."""
    try:
        for name in names:
            import_module(name)
    except ImportError as error:
        raise ResourceError(
            "daemon and clients need more libraries than a prover",
            next="pip install '.[server]' in a clone of cuzk",
        ) from error


def _daemon_settings(config: Config, listen: str | None, status_listen: str | None) -> DaemonSettings:
    from cuzk.server.access import Access
    from cuzk.server.address import parse_address
    from cuzk.server.daemon import DaemonSettings

    status = status_listen or config.status_listen
    return DaemonSettings(
        listen=parse_address(listen or config.listen),
        status_listen=parse_address(status, where="--status-listen") if status else None,
        socket_mode=config.socket_mode,
        socket_group=config.socket_group,
        access=Access(
            certificate=config.tls_certificate,
            key=config.tls_key,
            client_ca=config.tls_client_ca,
            token_file=config.token_file,
        ),
        preload=config.preload,
        journal=_journal_folder(config.journal),
        journal_bytes=config.journal_bytes,
        memory_bytes=config.queue_memory,
        drain_s=config.drain_s,
        results_kept=config.results_kept,
        results_s=config.results_s,
        waiting_s=config.waiting_s,
        readers=config.readers,
    )


def _journal_folder(said: str) -> Path | None:
    """`auto` is what systemd gives a service for its state, else among what cuzk made for the user."""
    if said == "auto":
        given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
        return Path(given) if given else data_folder() / "daemon"
    return Path(said).expanduser() if said else None
