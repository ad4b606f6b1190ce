"""From what a user writes after --device to a device, or a plain no: nothing is swapped for something else.

    auto, cpu     the CPU with the kernels that suit it
    cpu:ifma      the CPU with eight-lane kernels, or an error
    cpu:scalar    the CPU with one-lane kernels, for comparison
    cuda:N, UUID  a GPU: an error, this version has no CUDA target
"""

from __future__ import annotations

import re

from cuzk.errors import DeviceError, UsageError
from cuzk.kernels.device.cpu import CpuDevice

_LANES = {"auto": None, "cpu": None, "cpu:ifma": 8, "cpu:scalar": 1}
_GPU = re.compile(r"cuda(:\d+)?|(GPU-|MIG-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def choose_device(name: str, threads: int | None = None) -> CpuDevice:
    """The device of that name. Raises DeviceError when it cannot be had, UsageError for what names none."""
    if name in _LANES:
        return CpuDevice(threads=threads, lanes=_LANES[name])
    if _GPU.fullmatch(name):
        raise DeviceError(
            "this version has no CUDA target: it computes on the CPU only", where=name, next="use --device cpu"
        )
    raise UsageError(
        f"{name!r:.80} names no device", where="--device", next=f"devices are {', '.join(_LANES)}, cuda:N or a UUID"
    )
