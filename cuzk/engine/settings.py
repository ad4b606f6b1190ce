"""How an engine is set up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

GpuLock = Literal["narrow", "coarse", "none"]
GPU_LOCKS: tuple[str, ...] = get_args(GpuLock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Numbers of threads, room between them, and how workers of one device share it.

    gpu_workers_per_device  of which one computes while the others prepare and finish
    partition_workers       threads that read, check and make witnesses
    synthesis_lookahead     prepared partitions that may wait for each device
    gpu_lock                narrow: held around launches and their synchronisation; coarse: around the whole
                            proof; none: each worker has its own prover, the device's memory permitting
    setup_batch_s           where setups do not fit a device together, jobs of one of them that come within so
                            many seconds are proven together
    stall_after_s           a partition that is on a device for so long is reported
    results_kept            finished jobs whose results can still be asked for
    """

    gpu_workers_per_device: int = 2
    partition_workers: int = 2
    synthesis_lookahead: int = 2
    gpu_lock: GpuLock = "narrow"
    setup_batch_s: float = 300.0
    stall_after_s: float = 300.0
    results_kept: int = 1000

    def __post_init__(self) -> None:
        for name, least in (
            ("gpu_workers_per_device", 1),
            ("partition_workers", 1),
            ("synthesis_lookahead", 1),
            ("results_kept", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; at least {least} is needed")
        if self.gpu_lock not in GPU_LOCKS:
            raise ValueError(f"gpu_lock is {self.gpu_lock!r}; known are {', '.join(GPU_LOCKS)}")
