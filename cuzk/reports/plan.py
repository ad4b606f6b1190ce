"""What a proof would take here, and how it would be computed, before anything is: for --explain and --plan.

Only the circuit is needed, neither parameters nor vanilla proofs. A card is opened to ask for its free
memory and closed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cuzk.circuit.builder import Circuit
from cuzk.errors import ResourceError
from cuzk.groth16.gpu.card_plan import PHASES, CardFacts, CardPlan
from cuzk.groth16.gpu.synthesis_plan import synthesis_layout
from cuzk.groth16.memory_limits import available_memory
from cuzk.groth16.memory_plan import MemoryPlan
from cuzk.groth16.parameters.manifest import is_published
from cuzk.groth16.qap import full_counts, point_counts
from cuzk.kernels.device.choose import Choice, choose, require_gpu_for_limit
from cuzk.kernels.device.cuda_card import Card
from cuzk.kernels.gpu.card_speed import Speed, pace, throughput
from cuzk.kernels.gpu.sum_plan import COSTS, LIST_NS, SCAN_NS, SORT_NS, STAGED_SORT_NS
from cuzk.proofs.kinds import Kind, circuit_of
from cuzk.sector.claim import CircuitShape

Section = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The plans of a proof of one kind and sector size.

    device           as a user would give it
    available_bytes  memory of the host that the process may take
    mapped_bytes     pages of the parameter file that show in the process beside that, and that the system
                     takes back when it needs them; 0 where points are read to a card
    card             None where the CPU computes all
    """

    kind: str
    sector_size: str
    device: str
    host: MemoryPlan
    available_bytes: int
    mapped_bytes: int
    card: CardPlan | None

    def refusal(self) -> ResourceError | None:
        """Why a proof would not begin; None if it would."""
        try:
            self.host.require(self.available_bytes)
            if self.card is not None:
                self.card.require(self.device)
        except ResourceError as error:
            return error
        return None

    def facts(self) -> dict[str, Section]:
        """By heading: names that end in _bytes or _ms say their unit."""
        refusal = self.refusal()
        host = self.host
        facts: dict[str, Section] = {
            "plan": {
                "kind": self.kind,
                "sector_size": self.sector_size,
                "device": self.device,
                "fits": refusal is None,
                "verdict": "fits" if refusal is None else refusal.what,
            },
            "host_memory": {
                "process_bytes": host.process,
                "witness_bytes": host.witness,
                "transforms_bytes": host.transforms,
                "sums_bytes": host.sums,
                "peak_bytes": host.peak,
                "available_bytes": self.available_bytes,
                "mapped_parameters_bytes": self.mapped_bytes,
            },
        }
        if self.card is not None:
            facts["gpu_memory"] = {
                **{f"{phase}_bytes": self.card.bytes_in(phase) for phase in PHASES},
                "peak_bytes": self.card.peak_bytes,
                "budget_bytes": self.card.budget_bytes,
                "reserve_bytes": self.card.facts.reserve_bytes,
                "free_bytes": self.card.facts.free_bytes,
            }
            facts["gpu_costs"] = _costs(self.card.facts)
            facts["expected"] = {
                "transforms_ms": _rounded(self.card.transforms_ms),
                "sums_ms": _rounded(self.card.expected_ms - self.card.transforms_ms),
                "both_ms": _rounded(self.card.expected_ms),
                "streamed_bytes": self.card.streamed_bytes,
            }
        return facts

    def summary(self) -> Section:
        """The same in one line."""
        refusal = self.refusal()
        card = (
            {}
            if self.card is None
            else {
                "gpu_bytes": self.card.peak_bytes,
                "gpu_budget_bytes": self.card.budget_bytes,
                "ms": _rounded(self.card.expected_ms),
            }
        )
        return {
            "sector_size": self.sector_size,
            "device": self.device,
            **card,
            "host_bytes": self.host.peak,
            "available_bytes": self.available_bytes,
            "verdict": "fits" if refusal is None else "does not fit",
        }

    def memory_rows(self) -> list[Section]:
        """Each part of the GPU's memory and when it is held."""
        parts = () if self.card is None else self.card.parts
        return [
            {"gpu_memory": part.name, "held_bytes": part.nbytes, "while": list(part.phases)} for part in parts
        ]

    def sum_rows(self) -> list[Section]:
        """Each sum of points: where the points are, how it is cut, what it is expected to take."""
        return [] if self.card is None else list(_sum_rows(self.card))


def _sum_rows(plan: CardPlan) -> Iterator[Section]:
    for section in plan.sections:
        kinds = ["bits"] * (section.selected is not None) + ["full"]
        for kind, (times, cost) in zip(kinds, section.costs(plan.facts), strict=True):
            is_msm = kind == "full"
            yield {
                "sum": section.section,
                "scalars": kind,
                "points": section.full if is_msm else section.points,
                "points_at_a_time": section.slice_points or None,
                "windows": section.msm.windows if is_msm else None,
                "bits": section.msm.c if is_msm else 1,
                "windows_a_pass": section.msm.windows_a_pass if is_msm else None,
                "rounds": cost.rounds * times,
                "additions": cost.additions * times,
                "ms": _rounded(cost.total_ms * times),
            }


def _costs(speed: Speed) -> Section:
    """What plans are chosen by, measured on one card and scaled to this one."""
    throughput_here, pace_here = throughput(speed), pace(speed)
    costs: Section = {"throughput_of_an_h200": _rounded(throughput_here)}
    ns = {
        "digit_sort": SORT_NS,
        "digit_staged_sort": STAGED_SORT_NS,
        "digit_list": LIST_NS,
        "bucket_scan": SCAN_NS,
    }
    for degree, group in COSTS.items():
        ns |= {f"g{degree}_addition": group.random_ns, f"g{degree}_addition_of_neighbours": group.in_order_ns}
        costs[f"g{degree}_round_ms"] = round(group.round_ms / pace_here, 3)
    return costs | {f"{name}_ns": round(cost / throughput_here, 3) for name, cost in ns.items()}


def _rounded(ms: float) -> float:
    return round(ms, 2)


def explain(
    shape: CircuitShape, *, device: str = "auto", threads: int | None = None, vram_limit: int | None = None
) -> Explanation:
    """The plans for a proof of that shape. Raises DeviceError for a device that cannot be had."""
    return explained(shape, choose(device, threads), vram_limit)


def explain_all(
    kind: Kind, *, device: str = "auto", threads: int | None = None, vram_limit: int | None = None
) -> list[Explanation]:
    """Those of every sector size that networks use."""
    choice = choose(device, threads)
    return [
        explained(shape, choice, vram_limit) for shape in kind.shapes() if is_published(shape.parameter_stem)
    ]


def explained(shape: CircuitShape, choice: Choice, vram_limit: int | None) -> Explanation:
    """The same where the device was chosen."""
    circuit = circuit_of(shape)
    counts, available = point_counts(circuit), available_memory()
    if choice.card is None:
        require_gpu_for_limit(choice, vram_limit)
        host = MemoryPlan.of(choice.host, counts)
        name, card, mapped = choice.host.name, None, counts.file_bytes
    else:
        host = MemoryPlan.beside_a_gpu(counts)
        name, card, mapped = choice.card.label, _card_plan(choice.card, circuit, vram_limit), 0
    return Explanation(
        kind=shape.kind,
        sector_size=shape.name,
        device=name,
        host=host,
        available_bytes=available,
        mapped_bytes=mapped,
        card=card,
    )


def _card_plan(card: Card, circuit: Circuit, vram_limit: int | None) -> CardPlan:
    from cuzk.kernels.device.cuda import CudaDevice

    with CudaDevice(card.uuid, memory_limit=vram_limit) as opened:
        facts = CardFacts.of(card, opened.free_memory())
    return CardPlan.of(facts, point_counts(circuit), full_counts(circuit), synthesis_layout(circuit).nbytes)
