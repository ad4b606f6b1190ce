"""What a proof will take of a GPU's memory, and how its sums are cut to fit: worked out before the start.

Everything is known from counts and from a few facts of the card, so that a plan can be shown for a circuit
whose parameters are not here, and tested without a card. `target_gpu` allocates what stands here.

Memory     a *part* lies on the card from the moment it is needed to the end of the process, most of them, or
           during one phase: while points are checked at a file's first use, or while a proof is computed
Sections   *resident*: all points stay; or *streamed*: in slices, two at a time, one used and one on its way
Choice     nothing streamed, if that fits; else sections one by one, the longest sum first, since it hides
           most of its transfer. Then the MSM over h gets what is left: windows and passes by `sum_plan`
Reserve    what the driver takes beside arrays: code, stacks of all threads that a card can hold at once
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cuzk.errors import ResourceError
from cuzk.groth16.parameters import SECTIONS, PointCounts, SectionName
from cuzk.groth16.qap import FullCounts
from cuzk.kernels.card_speed import Speed
from cuzk.kernels.device.cuda_card import Card
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.ntt_schedule import Schedule, quotient_ms, quotient_works, table_bytes
from cuzk.kernels.sum_plan import (
    SumCost,
    least_msm_plan,
    msm_cost,
    msm_plan,
    msm_plan_within,
    selected_cost,
)
from cuzk.kernels.sum_schedule import (
    Form,
    GpuPlan,
    SelectedPlan,
    msm_layout,
    points_bytes,
    selected_layout,
    selected_plan,
)
from cuzk.units import format_size

Phase = Literal["checking", "proving"]
PHASES: tuple[Phase, ...] = ("checking", "proving")

_SCALAR_BYTES = 32
_CODE_BYTES = 128 << 20  # kernels, and what is lost between allocations
_LEAST_SLICE_LOG2, _MOST_SLICE_LOG2 = 18, 24
STACK_BYTES = 1 << 10
"""A thread's at most, of all kernels."""
_STREAMING_ORDER: tuple[SectionName, ...] = ("h", "l", "a", "b_g1", "b_g2")


def form_of(section: SectionName) -> Form:
    return FQ2_GPU if section == "b_g2" else FQ_GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What of a card decides a plan.

    free_bytes  that arrays and driver may take: what is free, or less if the user says so
    """

    multiprocessors: int
    clock_mhz: int
    threads_per_multiprocessor: int
    free_bytes: int

    @classmethod
    def of(cls, card: Card, free_bytes: int) -> CardFacts:
        return cls(
            multiprocessors=card.multiprocessors,
            clock_mhz=card.clock_mhz,
            threads_per_multiprocessor=card.threads_per_multiprocessor,
            free_bytes=free_bytes,
        )

    @property
    def reserve_bytes(self) -> int:
        return _CODE_BYTES + STACK_BYTES * self.threads_per_multiprocessor * self.multiprocessors


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some memory of the card, by purpose."""

    name: str
    nbytes: int
    phases: tuple[Phase, ...] = PHASES


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPlan:
    """How one section's sum is computed.

    points        of the section; full of them meet full scalars
    slice_points  None: the section is resident; else so many points are on the card at a time, twice
    selected      the sum over bits, of a slice; None for h
    msm           of the full scalars; for h of all its points, or of a slice
    """

    section: SectionName
    points: int
    full: int
    slice_points: int | None
    selected: SelectedPlan | None
    msm: GpuPlan

    @property
    def form(self) -> Form:
        return form_of(self.section)

    @property
    def slices(self) -> int:
        return -(-self.points // self.slice_points) if self.slice_points else 1

    def parts(self, multiprocessors: int) -> Iterator[Part]:
        """Its memory."""
        at_once = self.slice_points or self.points
        held = 2 * at_once if self.slice_points else at_once
        yield Part(name=f"points of {self.section}", nbytes=points_bytes(self.form, held))
        workspace = msm_layout(self.form, self.msm, multiprocessors).nbytes + self.msm.kept_bytes
        if self.selected is None:
            yield Part(name="sum over h", nbytes=workspace, phases=("proving",))
            checked = selected_plan(self.form, at_once)
            checking = selected_layout(self.form, checked, multiprocessors).nbytes + checked.kept_bytes
            yield Part(name="check of h", nbytes=checking + 2 * at_once, phases=("checking",))
            return
        bits = selected_layout(self.form, self.selected, multiprocessors).nbytes
        bits += self.selected.kept_bytes
        yield Part(name=f"bits of {self.section}", nbytes=bits)
        full = workspace + points_bytes(self.form, self.full)
        yield Part(name=f"full scalars of {self.section}", nbytes=full, phases=("proving",))

    def costs(self, speed: Speed) -> list[SumCost]:
        """Of the sum over bits, if there is one, and of the MSM; of one slice."""
        bits = [] if self.selected is None else [selected_cost(self.form, self.selected, speed)]
        return [*bits, msm_cost(self.form, self.msm, speed)]

    def expected_ms(self, speed: Speed) -> float:
        return self.slices * sum(cost.total_ms for cost in self.costs(speed))


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPlan:
    """All of a proof on one card."""

    facts: CardFacts
    domain_log2: int
    sections: tuple[SectionPlan, ...]
    parts: tuple[Part, ...]

    @classmethod
    def of(
        cls,
        facts: CardFacts,
        counts: PointCounts,
        full: FullCounts,
        synthesis_bytes: int,
        *,
        can_stream: bool = False,
    ) -> CardPlan:
        """The fastest plan that fits; where none does, the least one, which `require` refuses.

        synthesis_bytes  of the circuit's variables and tables: `synthesis_plan`
        can_stream       whether sections may be streamed
        """
        most = len(_STREAMING_ORDER) if can_stream else 0
        for streamed in range(most + 1):
            plan = cls._with(facts, counts, full, synthesis_bytes, _STREAMING_ORDER[:streamed])
            if plan.fits:
                break
        return plan

    @classmethod
    def _with(
        cls,
        facts: CardFacts,
        counts: PointCounts,
        full: FullCounts,
        synthesis_bytes: int,
        streamed: Sequence[SectionName],
    ) -> CardPlan:
        """These sections streamed, in the largest slices that fit; the least slices where none do."""
        for slice_log2 in range(_MOST_SLICE_LOG2, _LEAST_SLICE_LOG2 - 1, -1):
            slice_points = 1 << slice_log2
            others = tuple(
                _over_variables(facts, counts, full, name, slice_points if name in streamed else None)
                for name, _ in SECTIONS[1:]
            )
            all_else = cls._assembled(facts, counts, synthesis_bytes, others)
            h = _over_h(counts, all_else, slice_points if "h" in streamed else None)
            plan = cls._assembled(facts, counts, synthesis_bytes, (h, *others))
            if plan.fits or not streamed:
                break
        return plan

    @classmethod
    def _assembled(
        cls, facts: CardFacts, counts: PointCounts, synthesis_bytes: int, sections: tuple[SectionPlan, ...]
    ) -> CardPlan:
        parts = (
            *(part for section in sections for part in section.parts(facts.multiprocessors)),
            Part(name="variables and templates", nbytes=synthesis_bytes),
            *_of_transforms(counts),
        )
        return cls(facts=facts, domain_log2=counts.domain_log2, sections=sections, parts=parts)

    def of_section(self, name: SectionName) -> SectionPlan:
        return next(section for section in self.sections if section.section == name)

    def bytes_in(self, phase: Phase) -> int:
        return sum(part.nbytes for part in self.parts if phase in part.phases)

    @property
    def peak_bytes(self) -> int:
        """Of all arrays."""
        return max(self.bytes_in(phase) for phase in PHASES)

    @property
    def budget_bytes(self) -> int:
        """What arrays may take."""
        return max(0, self.facts.free_bytes - self.facts.reserve_bytes)

    @property
    def fits(self) -> bool:
        return self.peak_bytes <= self.budget_bytes

    @property
    def transforms_ms(self) -> float:
        return quotient_ms(self.domain_log2, self.facts)

    @property
    def expected_ms(self) -> float:
        """Of quotient and sums, one after another."""
        return self.transforms_ms + sum(section.expected_ms(self.facts) for section in self.sections)

    def __str__(self) -> str:
        return ", ".join(f"{part.name} {format_size(part.nbytes)}" for part in self.parts)

    def require(self, name: str) -> None:
        """Raises ResourceError with the plan when it does not fit the card of that name."""
        if not self.fits:
            raise ResourceError(
                f"a proof takes at least {format_size(self.peak_bytes)} of the GPU's memory,"
                f" {format_size(self.budget_bytes)} can be used",
                where=f"{name}, the plan: {self}",
                next="end other programs on the GPU, raise --vram-limit, use a card with more memory,"
                " or --device cpu",
            )


def _of_transforms(counts: PointCounts) -> Iterator[Part]:
    vector = _SCALAR_BYTES << counts.domain_log2
    yield Part(name="rows of A and B", nbytes=2 * vector)
    yield Part(name="their product", nbytes=vector, phases=("proving",))
    tables = table_bytes(quotient_works(Schedule(counts.domain_log2)))
    yield Part(name="tables of transforms", nbytes=tables, phases=("proving",))


def _over_variables(
    facts: CardFacts, counts: PointCounts, full: FullCounts, name: SectionName, slice_points: int | None
) -> SectionPlan:
    """Of l, a or b: bits, and few full scalars, whose points are collected once."""
    points, form = counts.of(name), form_of(name)
    if slice_points is not None and slice_points >= points:
        slice_points = None
    return SectionPlan(
        section=name,
        points=points,
        full=full.of(name),
        slice_points=slice_points,
        selected=selected_plan(form, slice_points or points),
        msm=msm_plan(form, full.of(name), facts),
    )


def _over_h(counts: PointCounts, all_else: CardPlan, slice_points: int | None) -> SectionPlan:
    """Over full scalars alone, with the memory that all else leaves."""
    if slice_points is not None and slice_points >= counts.h:
        slice_points = None
    held = 2 * slice_points if slice_points else counts.h
    facts = all_else.facts
    left = all_else.budget_bytes - all_else.bytes_in("proving") - points_bytes(FQ_GPU, held)
    n = slice_points or counts.h
    plan = msm_plan_within(FQ_GPU, n, facts, left) or least_msm_plan(FQ_GPU, n, facts)
    return SectionPlan(
        section="h", points=counts.h, full=counts.h, slice_points=slice_points, selected=None, msm=plan
    )
