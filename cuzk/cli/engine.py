"""Options of the commands that run an engine, and the engine that they and the configuration ask for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuzk.cli.options import F, SizeType, params_option, threads_option, vram_option, with_options
from cuzk.engine.settings import GPU_LOCKS

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.engine.recorder import Recorder
    from cuzk.engine.settings import GpuLock, Settings
    from cuzk.events import OnEvent
    from cuzk.proofs.sector_engine import Engine


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
        from cuzk.proofs.sector_engine import Engine

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

    def require_cards(self, config: Config) -> None:
        """Raises DeviceError unless each device is a GPU: synthetic inputs' parameters are made there."""
        from cuzk.kernels.device.choose import choose_all
        from cuzk.proofs.targets import card_for_ephemeral

        for choice in choose_all(self.devices or config.devices, self.threads or config.threads):
            card_for_ephemeral(choice)

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


#: Where an engine works, and what it may take.
_PLACES: tuple[Callable[[F], F], ...] = (
    click.option("--device", "devices", multiple=True, metavar="cpu|cuda:N|UUID",
                 help="Where to compute; may be repeated. Without it: every GPU, or else the CPU."),
    params_option,
    threads_option,
    click.option("--memory", type=SizeType(), metavar="SIZE",
                 help="Of the host for all jobs at once; without it most of what is free."),
    vram_option,
)  # fmt: skip
_lookahead = click.option(
    "--lookahead", type=click.IntRange(min=1),
    help="Prepared partitions that may wait for each device; without it 2.",
)  # fmt: skip
#: How it shares that out.
_WORKERS: tuple[Callable[[F], F], ...] = (
    click.option("--gpu-workers", type=click.IntRange(min=1), help="Workers of each device; without it 2."),
    click.option("--partition-workers", type=click.IntRange(min=1),
                 help="Threads that prepare partitions; without it 2."),
    _lookahead,
    click.option("--gpu-lock", type=click.Choice(GPU_LOCKS),
                 help="What workers of a device exclude each other from; without it narrow."),
)  # fmt: skip


class Several(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """Values of another type, with commas between them."""

    def __init__(self, one: click.ParamType) -> None:  # type: ignore[type-arg]
        self.one, self.name = one, "several"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(dict.fromkeys(self.one.convert(part.strip(), param, ctx) for part in value.split(",")))


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All of them; the command gets them as `flags`."""

    @wraps(function)
    def call(**given: Any) -> Any:
        flags = EngineFlags(**{name: given.pop(name) for name in EngineFlags.__dataclass_fields__})
        return function(flags=flags, **given)

    return with_options(call, (*_PLACES, *_WORKERS))


def sweep_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but for numbers and the lock several values; the command gets `flags`, one for each set."""

    @wraps(function)
    def call(**given: Any) -> Any:
        swept = {name: given.pop(name) for name in ("partition_workers", "gpu_workers", "gpu_lock")}
        rest = {name: given.pop(name) for name in EngineFlags.__dataclass_fields__ if name not in swept}
        sets = itertools.product(*swept.values())
        flags = [EngineFlags(**rest, **dict(zip(swept, values, strict=True))) for values in sets]
        return function(flags=flags, **given)

    positive = Several(click.IntRange(min=1))
    return with_options(call, (
        *_PLACES,
        _lookahead,
        click.option("--partition-workers", type=positive, default="2", show_default=True, metavar="N,...",
                     help="Threads that prepare partitions."),
        click.option("--gpu-workers", type=positive, default="2", show_default=True, metavar="N,...",
                     help="Workers of each device."),
        click.option("--gpu-lock", type=Several(click.Choice(GPU_LOCKS)), default="narrow", show_default=True,
                     metavar="narrow,coarse,none",
                     help="What workers of a device exclude each other from."),
    ))  # fmt: skip
