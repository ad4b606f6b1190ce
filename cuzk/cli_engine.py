"""Options of the commands that run an engine, and the engine that they and the configuration ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuzk.options import F, SizeType, params_option, threads_option, vram_option

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.engine.recorder import Recorder
    from cuzk.engine.settings import GpuLock, Settings
    from cuzk.events import OnEvent
    from cuzk.sector_engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFlags:
    """What the command line says; None, or nothing, where it is silent."""

    devices: tuple[str, ...]
    params: Path | None
    threads: int | None
    memory: int | None
    vram_limit: int | None
    gpu_workers: int | None
    partition_workers: int | None
    lookahead: int | None
    gpu_lock: GpuLock | None

    def engine(
        self, config: Config, recorder: Recorder, on_event: OnEvent, *, synthetic: bool = False
    ) -> Engine:
        """The engine; the command line wins over the configuration."""
        from cuzk.sector_engine import Engine

        return Engine(
            devices=self.devices or config.devices,
            params=self.params or config.params,
            threads=self.threads or config.threads,
            memory=self.memory or config.memory,
            safety_margin=config.safety_margin,
            vram_limit=self.vram_limit,
            settings=self._settings(config),
            synthetic=synthetic,
            recorder=recorder,
            on_event=on_event,
        )

    def _settings(self, config: Config) -> Settings:
        from cuzk.engine.settings import Settings

        return Settings(
            gpu_workers_per_device=self.gpu_workers or config.gpu_workers_per_device,
            partition_workers=self.partition_workers or config.bounded_partition_workers,
            synthesis_lookahead=self.lookahead or config.synthesis_lookahead,
            gpu_lock=self.gpu_lock or config.gpu_lock,
            setup_batch_s=config.setup_batch_s,
            stall_after_s=config.stall_after_s,
        )


_OPTIONS: tuple[Callable[[F], F], ...] = (
    click.option("--device", "devices", multiple=True, metavar="cpu|cuda:N|UUID",
                 help="Where to compute; may be repeated. Without it: every GPU, or else the CPU."),
    params_option,
    threads_option,
    click.option("--memory", type=SizeType(), metavar="SIZE",
                 help="Of the host for all jobs at once; without it most of what is free."),
    vram_option,
    click.option("--gpu-workers", type=click.IntRange(min=1), help="Workers of each device; without it 2."),
    click.option("--partition-workers", type=click.IntRange(min=1),
                 help="Threads that prepare partitions; without it 2."),
    click.option("--lookahead", type=click.IntRange(min=1),
                 help="Prepared partitions that may wait for each device; without it 2."),
    click.option("--gpu-lock", type=click.Choice(("narrow", "coarse", "none")),
                 help="What workers of a device exclude each other from; without it narrow."),
)  # fmt: skip


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All of them; the command gets them as `flags`."""

    @wraps(function)
    def call(**given: Any) -> Any:
        flags = EngineFlags(**{name: given.pop(name) for name in EngineFlags.__dataclass_fields__})
        return function(flags=flags, **given)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call
