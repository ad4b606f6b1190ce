"""Targets for a parameter file, ready to prove: what must be known of the file, compiled and opened before.

`prove` keeps one target on a card from call to call, in `kept_target`; an engine has targets of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuzk.circuit.builder import Circuit
from cuzk.errors import DeviceError
from cuzk.events import Notice, OnEvent, stage
from cuzk.garbage import load
from cuzk.groth16.parameters.checked import Checked, CheckedFiles
from cuzk.groth16.parameters.locate import Found
from cuzk.groth16.parameters.manifest import entry_of
from cuzk.groth16.parameters.params_file import ParameterFile, Parameters
from cuzk.groth16.proof_memory import ProofMemory
from cuzk.groth16.qap import domain_log2
from cuzk.groth16.target import Target
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.kernels.device.choose import Choice
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.proofs.warm_up import TO_CHECK, TO_GENERATE_BESIDE_GPU, TO_PROVE, TO_PROVE_BESIDE_GPU, warm_up

if TYPE_CHECKING:
    from cuzk.groth16.gpu.ephemeral import EphemeralParameters
    from cuzk.groth16.gpu.target import GpuTarget
    from cuzk.kernels.device.cuda_card import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstUse:
    """What is to be found out about a parameter file before its first proof, once.

    What is published is known by its digest; of other files every point must be of order r.
    """

    path: Path
    known: Checked
    is_unknown: bool

    @classmethod
    def of(cls, found: Found, on_event: OnEvent) -> FirstUse:
        """Raises ParameterError when the digest is not that of the manifest."""
        checked = CheckedFiles()
        known = checked.of(found.path)
        entry = None if found.is_development else entry_of(found.path.name)
        if entry is not None and known.digest != entry.digest:
            with stage(on_event, "digest", unit="bytes") as progress:
                checked.require_digest(found.path, entry, progress)
        return cls(path=found.path, known=known, is_unknown=entry is None and not known.points_checked)

    def check(self, target: Target, on_event: OnEvent) -> None:
        """Raises ParameterError for a bad point."""
        if self.is_unknown and not CheckedFiles().of(self.path).points_checked:  # by another card meanwhile
            on_event(Notice(level="info", text=f"first use of {self.path}: its points are checked, once"))
            target.require_good_points(on_event)
            CheckedFiles().points_are_good(self.path, as_of=self.known)


@contextmanager
def kept_target(
    choice: Choice, parameters: ParameterFile, vram_limit: int | None, memory: ProofMemory | None = None
) -> Iterator[Target]:
    """For the work inside `with`. `memory` is for the CPU, if it has been made ready before."""
    if choice.card is None:
        yield CpuTarget(choice.host, parameters, memory)
        return
    load("cuzk.groth16.gpu.target")  # needs numba-cuda
    from cuzk.groth16.gpu.target import resident

    with resident(choice.host, choice.card, parameters, memory_limit=vram_limit) as target:
        yield target


def new_targets(
    choices: Mapping[str, Choice], parameters: ParameterFile
) -> Callable[[str, int | None], Target]:
    """Opens targets that nobody else uses, by the name of a device and a limit of its memory.

    One card reads the file, the others copy from it.
    """
    if any(choice.card is not None for choice in choices.values()):
        from cuzk.groth16.gpu.held_sections import HeldSections
        from cuzk.groth16.gpu.points_on_card import PointsOfFile

        points, held = PointsOfFile(parameters), HeldSections()

    def new_target(name: str, memory_limit: int | None) -> Target:
        choice = choices[name]
        if choice.card is None:
            return CpuTarget(choice.host, parameters)
        from cuzk.groth16.gpu.target import GpuTarget

        return GpuTarget.on_card(choice.host, choice.card, points, memory_limit, held)

    return new_target


def compile_ahead(choice: Choice, parameters: Parameters, on_event: OnEvent) -> None:
    if choice.card is None:
        warm_up(choice.host, TO_PROVE, on_event)
        return
    from cuzk.proofs.warm_up_gpu import warm_up_gpu

    warm_up(choice.host, TO_PROVE_BESIDE_GPU, on_event)
    warm_up_gpu(choice.host, choice.card, "prove", parameters.counts.domain_log2, on_event)


def ephemeral_parameters(
    host: CpuDevice,
    cards: Sequence[Card],
    circuit: Circuit,
    memory_limit: int | None,
    on_event: OnEvent,
    trapdoors: Trapdoors | None = None,
) -> EphemeralParameters:
    """Development parameters that are never written, for proofs on these cards; the first helps to make them.

    All kernels of both are compiled before. Without trapdoors they are random.
    """
    from cuzk.groth16.gpu.ephemeral import EphemeralParameters  # needs numba-cuda, as the rest
    from cuzk.kernels.device.cuda import CudaDevice
    from cuzk.proofs.warm_up_gpu import warm_up_gpu

    warm_up(host, (*TO_CHECK, *TO_GENERATE_BESIDE_GPU), on_event)
    for card in cards:
        for task in ("generate", "prove"):
            warm_up_gpu(host, card, task, domain_log2(circuit), on_event)
    with stage(on_event, "values at tau"), CudaDevice(cards[0].uuid, memory_limit=memory_limit) as gpu:
        return EphemeralParameters.of(host, gpu, circuit, trapdoors or Trapdoors.random())


def card_for_ephemeral(choice: Choice) -> Card:
    """Raises DeviceError when no card was chosen."""
    if choice.card is None:
        raise DeviceError(
            "parameters that live in memory need a GPU",
            where=choice.host.name,
            next="use a machine with one; on a CPU, `cuzk params generate` writes them",
        )
    return choice.card


@contextmanager
def ephemeral_target(
    host: CpuDevice,
    card: Card,
    circuit: Circuit,
    memory_limit: int | None,
    on_event: OnEvent,
    trapdoors: Trapdoors | None = None,
) -> Iterator[tuple[EphemeralParameters, GpuTarget]]:
    """Such parameters, and a target that is ready to prove under them."""
    from cuzk.groth16.gpu.target import GpuTarget  # needs numba-cuda

    parameters = ephemeral_parameters(host, [card], circuit, memory_limit, on_event, trapdoors)
    with closing(GpuTarget.on_card(host, card, parameters, memory_limit)) as target:
        target.prepare(on_event)
        target.opened(circuit)
        target.loaded()
        if target.is_resident:
            parameters.let_go()
        yield parameters, target
