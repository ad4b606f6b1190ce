"""What proofs of a circuit take of a device, and how its parameters get there, also when memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cuzk.circuit.builder import Circuit
from cuzk.engine.seam import Needs
from cuzk.errors import lacks_memory
from cuzk.events import Notice, OnEvent
from cuzk.groth16.gpu.card_plan import CardFacts, CardPlan, ReaderBytes, of_decoder
from cuzk.groth16.gpu.synthesis_plan import synthesis_layout
from cuzk.groth16.memory_plan import MemoryPlan
from cuzk.groth16.qap import full_counts, point_counts
from cuzk.groth16.target import Target
from cuzk.kernels.device.choose import Choice
from cuzk.units import format_size

#: A card keeps so much for a small circuit beside a large one: parameters of WinningPoSt are 192 MB, and its
#: proofs cannot wait until others are moved out of the way.
ROOM_BYTES = 1 << 30
#: When memory runs out, the next plan takes so much of the last one's, at most so often.
_LESS, _TIMES = (7, 8), 4


def needs_on(
    choice: Choice,
    card_bytes: int,
    circuit: Circuit,
    host_bytes: int = 0,
    reader_bytes: ReaderBytes = of_decoder,
) -> Needs:
    """What proofs of a circuit take on a device; on a card, of so many bytes, for a plan that spares them.

    host_bytes    what else is held for them
    reader_bytes  of where points come from, as `CardPlan.of` takes it
    """
    counts = point_counts(circuit)
    if choice.card is None:
        host = MemoryPlan.of(choice.host, counts)
        return Needs(device=0, host=host.peak - host.process + host_bytes)
    facts, synthesis = CardFacts.of(choice.card, card_bytes), synthesis_layout(circuit).nbytes
    full, most = full_counts(circuit), max(0, card_bytes - ROOM_BYTES)
    plan = CardPlan.sparing(replace(facts, free_bytes=most), counts, full, synthesis, reader_bytes)
    if not plan.fits:
        plan = CardPlan.of(facts, counts, full, synthesis, reader_bytes)
    host = MemoryPlan.beside_a_gpu(counts)
    return Needs(device=plan.peak_bytes + facts.reserve_bytes, host=host.peak - host.process + host_bytes)


class Place:
    """A setup's on one device. Workers of the device may call it at once.

    needs       what is reserved there
    new_target  for so many bytes of a card, None for a CPU
    checked     what is done with a target before its first proof
    """

    def __init__(
        self,
        name: str,
        circuit: Circuit,
        needs: Needs,
        new_target: Callable[[int | None], Target],
        checked: Callable[[Target, OnEvent], None],
        on_event: OnEvent,
    ) -> None:
        self._name, self._circuit, self.needs = name, circuit, needs
        self._new_target, self._checked, self._on_event = new_target, checked, on_event
        self._most = needs.device or None
        self._times = 0

    def open(self) -> Target:
        """A target that is ready to prove; with less memory than planned where that ran out.

        Raises ResourceError when it has run out too often, or no plan does with what there is.
        """
        while True:
            target, is_planned = self._new_target(self._most), False
            try:
                target.prepare(self._on_event)
                target.opened(self._circuit)  # what this raises, another try would raise too
                is_planned = True
                target.loaded()
                self._checked(target, self._on_event)
                target.ready(self._circuit)
                return target
            except BaseException as error:
                target.close()
                if not (is_planned and self.ran_short(error)):
                    raise

    def ran_short(self, error: BaseException) -> bool:
        """Where memory has run out the next target makes do with less. False if that was tried often enough,
        and for any other error.
        """
        if not lacks_memory(error) or self._most is None or self._times == _TIMES:
            return False
        self._times += 1
        self._most = self._most * _LESS[0] // _LESS[1]
        text = f"{error}; {self._name} is opened again with at most {format_size(self._most)}"
        self._on_event(Notice(level="warning", text=text))
        return True
