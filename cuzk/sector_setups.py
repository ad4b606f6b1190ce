"""Setups of an engine, found at the first sector of a size: parameters, circuit, compiled kernels, memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from cuzk.circuit.builder import Circuit
from cuzk.circuit.porep import porep_circuit
from cuzk.engine.seam import Needs
from cuzk.events import OnEvent, prefixed, stage
from cuzk.groth16.card_plan import CardFacts, CardPlan
from cuzk.groth16.locate import find_parameters
from cuzk.groth16.memory_plan import MemoryPlan
from cuzk.groth16.parameters import ParameterFile, open_parameters
from cuzk.groth16.qap import full_counts, point_counts
from cuzk.groth16.synthesis_plan import synthesis_layout
from cuzk.groth16.target import Target
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.choose import Choice
from cuzk.porep_jobs import PorepSetup
from cuzk.sector.shape import SectorShape
from cuzk.sources import warn_of_development
from cuzk.targets import FirstUse, compile_ahead, new_target
from cuzk.warm_up import TO_CHECK, warm_up


class SectorSetups:
    """Of parameter files, each for all devices.

    choices      the devices, by name
    card_bytes   of each, for a setup: none for the CPU
    params       folder that is searched first
    on_event     hears what is done for the first sector of a size, from one thread or another
    """

    def __init__(
        self,
        choices: Mapping[str, Choice],
        card_bytes: Mapping[str, int],
        *,
        params: Path | None,
        on_event: OnEvent,
    ) -> None:
        self._choices, self._card_bytes = choices, card_bytes
        self._params, self._on_event = params, on_event
        self._lock = threading.Lock()  # held while a setup is made: the second sector of a size waits
        self._setups: dict[SectorShape, PorepSetup] = {}  # guarded by _lock

    def of(self, shape: SectorShape) -> PorepSetup:
        """Raises ParameterError when there are none, or not those of the circuit."""
        with self._lock:
            if shape not in self._setups:
                self._setups[shape] = self._new(shape)
            return self._setups[shape]

    def _new(self, shape: SectorShape) -> PorepSetup:
        on_event = self._on_event
        with stage(on_event, "parameters"):
            found = find_parameters(shape.parameter_stem, sector_size=shape.name, explicit=self._params)
            parameters = open_parameters(found.path)
        warn_of_development(found, on_event)
        with stage(on_event, "circuit"):
            circuit = porep_circuit(shape)
            parameters.require(point_counts(circuit))
        first_use = FirstUse.of(found, on_event)
        for choice in self._choices.values():
            warm_up(choice.host, TO_CHECK, on_event)
            compile_ahead(choice, parameters, on_event)
        needs = {
            name: needs_on(choice, self._card_bytes[name], circuit) for name, choice in self._choices.items()
        }

        def open_target(device: str) -> Target:
            return self._opened(device, parameters, circuit, needs[device], first_use)

        return PorepSetup(
            name=f"porep-{shape.name}",
            key=found.path,
            circuit=circuit,
            parameters=parameters,
            verifier=Verifier(parameters.key),
            needs_of=needs,
            open_target=open_target,
        )

    def _opened(
        self, device: str, parameters: ParameterFile, circuit: Circuit, needs: Needs, first_use: FirstUse
    ) -> Target:
        """A target whose points are where it needs them, checked at the file's first use."""
        target = new_target(self._choices[device], parameters, needs.device or None)
        try:
            target.prepare()
            target.opened(circuit)
            target.loaded()
            first_use.check(target, prefixed(self._on_event, f"{device}: "))
        except BaseException:
            target.close()
            raise
        return target


def needs_on(choice: Choice, card_bytes: int, circuit: Circuit) -> Needs:
    """What proofs of a circuit take on a device; on a card, of so many bytes, for the fastest plan."""
    counts = point_counts(circuit)
    if choice.card is None:
        host = MemoryPlan.of(choice.host, counts)
        return Needs(device=0, host=host.peak - host.process)
    facts, synthesis = CardFacts.of(choice.card, card_bytes), synthesis_layout(circuit).nbytes
    plan = CardPlan.of(facts, counts, full_counts(circuit), synthesis)
    host = MemoryPlan.beside_a_gpu(counts)
    return Needs(device=plan.peak_bytes + facts.reserve_bytes, host=host.peak - host.process)
