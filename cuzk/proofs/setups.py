"""Setups of an engine, found at the first input of a kind and size: parameters, circuit, kernels, memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

from cuzk.circuit.builder import Circuit
from cuzk.events import OnEvent, prefixed, stage
from cuzk.groth16.gpu.card_plan import ReaderBytes, of_decoder
from cuzk.groth16.parameters.locate import find_parameters
from cuzk.groth16.parameters.params_file import SECTIONS, Parameters, open_parameters
from cuzk.groth16.qap import point_counts
from cuzk.groth16.target import Target
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.choose import Choice
from cuzk.proofs.jobs import ProofSetup
from cuzk.proofs.kinds import circuit_of, setup_name
from cuzk.proofs.places import Place, needs_on
from cuzk.proofs.sources import warn_of_development
from cuzk.proofs.targets import FirstUse, card_for_ephemeral, compile_ahead, ephemeral_parameters, new_targets
from cuzk.proofs.warm_up import TO_CHECK, warm_up
from cuzk.sector.claim import CircuitShape

_SCALAR_BYTES = 32


class Setups(ABC):
    """One for each kind and size, for all devices.

    choices     the devices, by name
    card_bytes  of each, for a setup: none for the CPU
    on_event    hears what is done for the first input of a kind and size, from one thread or another
    """

    def __init__(
        self, choices: Mapping[str, Choice], card_bytes: Mapping[str, int], on_event: OnEvent
    ) -> None:
        self._choices, self._card_bytes, self._on_event = choices, card_bytes, on_event
        self._lock = threading.Lock()  # held while a setup is made: inputs whose own is there do not wait
        self._setups: dict[CircuitShape, ProofSetup] = {}  # filled under _lock
        self._is_over = False

    def of(self, shape: CircuitShape) -> ProofSetup:
        """Raises ParameterError when there are none, or not those of the circuit."""
        if (found := self._setups.get(shape)) is not None:
            return found
        with self._lock:
            if (found := self._setups.get(shape)) is not None:
                return found
            new = self._setups[shape] = self._new(shape)
            if self._is_over:  # nobody will let go of it later
                self._setups.clear()
            return new

    def let_go(self) -> None:
        """Keep none any more, nor what is being made: parameters may be gigabytes. Waits for nobody."""
        self._is_over = True
        self._setups.clear()

    @abstractmethod
    def _new(self, shape: CircuitShape) -> ProofSetup:
        """What nobody has asked for before."""

    def _setup(
        self,
        shape: CircuitShape,
        key: Hashable,
        circuit: Circuit,
        parameters: Parameters,
        new_target: Callable[[str, int | None], Target],
        checked: Callable[[Target, OnEvent], None],
        host_bytes: int = 0,
        reader_bytes: ReaderBytes = of_decoder,
    ) -> ProofSetup:
        """The setup whose targets are opened in the same way wherever their points come from.

        new_target    by device, for so many bytes of a card
        checked       what is done with a target before its first proof
        host_bytes    that the parameters themselves take
        reader_bytes  that their points take while they come to a card
        """
        name = setup_name(shape)

        def place(k: int, device: str) -> Place:
            choice, card_bytes = self._choices[device], self._card_bytes[device]
            bytes_of_all = host_bytes if k == 0 else 0
            return Place(
                f"{name} on {device}",
                circuit,
                needs_on(choice, card_bytes, circuit, bytes_of_all, reader_bytes),
                lambda most: new_target(device, most),
                checked,
                prefixed(self._on_event, f"{device}: "),
            )

        return ProofSetup(
            name=name,
            key=key,
            circuit=circuit,
            parameters=parameters,
            verifier=Verifier(parameters.key),
            places={device: place(k, device) for k, device in enumerate(self._choices)},
        )


class FileSetups(Setups):
    """From parameter files; `params` is the folder that is searched first."""

    def __init__(
        self,
        choices: Mapping[str, Choice],
        card_bytes: Mapping[str, int],
        on_event: OnEvent,
        params: Path | None,
    ) -> None:
        super().__init__(choices, card_bytes, on_event)
        self._params = params

    def _new(self, shape: CircuitShape) -> ProofSetup:
        on_event = self._on_event
        with stage(on_event, "parameters"):
            found = find_parameters(shape, explicit=self._params)
            parameters = open_parameters(found.path)
        warn_of_development(found, on_event)
        with stage(on_event, "circuit"):
            circuit = circuit_of(shape)
            parameters.require(point_counts(circuit))
        first_use = FirstUse.of(found, on_event)
        for choice in self._choices.values():
            warm_up(choice.host, TO_CHECK, on_event)
            compile_ahead(choice, parameters, on_event)
        return self._setup(
            shape,
            found.path,
            circuit,
            parameters,
            new_targets(self._choices, parameters),
            first_use.check,
        )


class SyntheticSetups(Setups):
    """Made for this engine, on the first of its GPUs: no network accepts its proofs, and no file remains."""

    def _new(self, shape: CircuitShape) -> ProofSetup:
        cards = {name: card_for_ephemeral(choice) for name, choice in self._choices.items()}
        from cuzk.groth16.gpu.held_sections import HeldSections  # needs numba-cuda, as the next
        from cuzk.groth16.gpu.target import GpuTarget

        on_event, host = self._on_event, next(iter(self._choices.values())).host
        with stage(on_event, "circuit"):
            circuit = circuit_of(shape)
            counts = point_counts(circuit)
        parameters = ephemeral_parameters(host, list(cards.values()), circuit, None, on_event)
        held = HeldSections()

        def target(device: str, most: int | None) -> Target:
            return GpuTarget.on_card(host, cards[device], parameters, most, held)

        scalars = sum(counts.of(name) for name, _ in SECTIONS)
        return self._setup(
            shape,
            f"synthetic {setup_name(shape)}",
            circuit,
            parameters,
            target,
            _nothing,
            _SCALAR_BYTES * scalars,
            parameters.reader_bytes,
        )


def _nothing(target: Target, on_event: OnEvent) -> None:
    """Of points that were made here there is nothing to be checked."""
