"""From what a user writes after --device to a device, or a plain no: nothing is swapped for something else.

auto, cpu             the CPU with the kernels that suit it
cpu:ifma              the CPU with eight-lane kernels, or an error
cpu:scalar            the CPU with one-lane kernels, for comparison
cuda:N, PCI id, UUID  a GPU, see `cuda_card`: an error until the prover has a schedule for it
"""

from __future__ import annotations

from cuzk.errors import DeviceError, UsageError
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda_card import names_a_card

_LANES = {"auto": None, "cpu": None, "cpu:ifma": 8, "cpu:scalar": 1}


def choose_device(name: str, threads: int | None = None) -> CpuDevice:
    """The device of that name. Raises DeviceError when it cannot be had, UsageError for what names none."""
    if name in _LANES:
        return CpuDevice(threads=threads, lanes=_LANES[name])
    if names_a_card(name):  # where `CudaDevice(name)` is returned once it proves
        raise DeviceError(
            "this version cannot prove on a GPU yet: it proves on the CPU only",
            where=name,
            next="use --device cpu",
        )
    raise UsageError(
        f"{name!r:.80} names no device",
        where="--device",
        next=f"devices are {', '.join(_LANES)}, cuda:N, a PCI id or a UUID",
    )
