"""From what a user writes after --device to a device, or a plain no: nothing is swapped for something else.

auto                  the first GPU if there is one that can be used, else the CPU; it says which, and why
cpu                   the CPU with the kernels that suit it
cpu:ifma              the CPU with eight-lane kernels, or an error
cpu:scalar            the CPU with one-lane kernels, for comparison
cuda:N, PCI id, UUID  a GPU, see `cuda_card`, or an error
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuzk.errors import DeviceError, UsageError
from cuzk.kernels.device import cuda_driver
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda_card import Card, all_cards, check_driver, find_card, names_a_card
from cuzk.units import format_size

_LANES = {"auto": None, "cpu": None, "cpu:ifma": 8, "cpu:scalar": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Where a proof is computed.

    host  the threads for all that runs on the CPU in any case
    card  the GPU for the rest, or None
    why   one sentence for the user, if there was a choice
    """

    host: CpuDevice
    card: Card | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """Of where the proof is computed."""
        return self.host.name if self.card is None else self.card.label


def choose(name: str, threads: int | None = None) -> Choice:
    """What the name stands for. Raises DeviceError when it cannot be had, UsageError for what names none."""
    host = choose_host(name, threads)
    if names_a_card(name):
        return Choice(host=host, card=usable_card(name))
    if name != "auto":
        return Choice(host=host)
    try:
        card = usable_card("auto")
    except DeviceError as error:
        return Choice(host=host, why=f"no GPU is used, {error.what}: computing on {host.name}")
    return Choice(host=host, card=card, why=f"computing on {card.label}, {card.name}")


def choose_all(names: Sequence[str], threads: int | None = None) -> list[Choice]:
    """What each name stands for; without names every card, or the CPU if there is none. Raises likewise."""
    if not names:
        first = choose("auto", threads)
        if first.card is None:
            return [first]
        cards = [usable_card(card.label) for card in all_cards(cuda_driver.load_api())]
        why = f"computing on {', '.join(f'{card.label}, {card.name}' for card in cards)}"
        return [Choice(host=first.host, card=card, why=why) for card in cards]
    return [choose(name, threads) for name in names]


def require_gpu_for_limit(choice: Choice, vram_limit: int | None) -> None:
    """Raises UsageError when a GPU's memory is to be limited where none is used."""
    if vram_limit is not None and choice.card is None:
        raise UsageError(
            f"{format_size(vram_limit)} of a GPU's memory mean nothing to {choice.host.name}",
            where="--vram-limit",
            next="leave it out, or name a GPU: --device cuda:0",
        )


def choose_host(name: str, threads: int | None = None) -> CpuDevice:
    """The CPU's threads beside whatever the name stands for; a GPU is not looked for."""
    return CpuDevice(threads=threads) if names_a_card(name) else _cpu(name, threads)


def choose_device(name: str, threads: int | None = None) -> CpuDevice:
    """The same for work that only the CPU does: a GPU is refused, not replaced."""
    if names_a_card(name):
        raise DeviceError("this is computed on the CPU only", where=name, next="use --device cpu")
    return _cpu(name, threads)


def usable_card(name: str) -> Card:
    """The card of that name, "auto" for the first, which driver and compiler can serve; or DeviceError."""
    api = cuda_driver.load_api()
    if name == "auto" and not all_cards(api):
        raise DeviceError("the driver shows no GPU to this process")
    card = find_card(api, "cuda:0" if name == "auto" else name)
    from cuzk.kernels.gpu.compiler import compiler_version  # fails, typed, without numba-cuda

    check_driver(card, compiler_version())
    return card


def _cpu(name: str, threads: int | None) -> CpuDevice:
    if name not in _LANES:
        raise UsageError(
            f"{name!r:.80} names no device",
            where="--device",
            next=f"devices are {', '.join(_LANES)}, cuda:N, a PCI id or a UUID",
        )
    return CpuDevice(threads=threads, lanes=_LANES[name])
