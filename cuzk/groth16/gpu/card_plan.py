"""What a proof will take of a GPU's memory, and how its sums are cut to fit: worked out before the start.

Everything is known from counts and from a few facts of the card, so that a plan can be shown for a circuit
whose parameters are not here, and tested without a card. `target` allocates what stands here.

Memory     a *part* lies on the card from the moment it is needed to the end of the process, most of them, or
           during one phase: while points are checked at a file's first use, or while a proof is computed
Sharing    sums and transforms come one after another in one stream: they share one working memory
Sections   *resident*: all points stay; or *streamed*: in slices, two at a time, one used and one on its way
Choice     nothing streamed, if that fits; else sections one by one, the longest sum first, since it hides
           most of its transfer. Then the MSM over h gets what is left: windows and passes by `sum_plan`
Reserve    what the driver takes beside arrays: code, stacks of all threads that a card can hold at once
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from cuzk.errors import ResourceError
from cuzk.groth16.parameters.params_file import SECTIONS, PointCounts, SectionName
from cuzk.groth16.qap import FullCounts
from cuzk.kernels.device.cuda_card import Card
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.gpu.card_speed import Speed
from cuzk.kernels.gpu.ntt_schedule import Schedule, quotient_ms, quotient_works, table_bytes
from cuzk.kernels.gpu.sum_plan import (
    SumCost,
    least_msm_plan,
    msm_cost,
    msm_plan_within,
    selected_cost,
)
from cuzk.kernels.gpu.sum_schedule import (
    Form,
    GpuPlan,
    SelectedPlan,
    decoder_bytes,
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
_SLICES = tuple(1 << log2 for log2 in range(24, 18, -1))  # points of a streamed section at a time
_SPARING_LOSS, _SPARING_LOSS_MS = 0.02, 20  # of small circuits: the rest of a proof takes more
STACK_BYTES = 1 << 10
"""A thread's at most, of all kernels."""
_STREAMING_ORDER: tuple[SectionName, ...] = ("h", "l", "a", "b_g1", "b_g2")


#: Of a section, for so many points at a time, on a card of so many multiprocessors: the memory that bringing
#: them takes beside their rows.
ReaderBytes = Callable[[SectionName, int, int], int]


def form_of(section: SectionName) -> Form:
    return FQ2_GPU if section == "b_g2" else FQ_GPU


def of_decoder(section: SectionName, largest: int, multiprocessors: int) -> int:
    """What encodings of a parameter file take while they come in: a `ReaderBytes`."""
    return decoder_bytes(form_of(section), largest)


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
    def speed(self) -> CardFacts:
        """The same of every card of its kind, however full: what plans of sums are kept by."""
        return replace(self, free_bytes=0)

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

    points        of the section; full of them are taken with full scalars, all or a few: `qap.FullCounts`
    slice_points  None: the section is resident; else so many points are on the card at a time, twice
    selected      the sum over bits, of a slice; None for h
    msm           of the full scalars; where all are full of all points, or of a slice
    reader_bytes  of what brings slices to the card
    """

    section: SectionName
    points: int
    full: int
    slice_points: int | None
    selected: SelectedPlan | None
    msm: GpuPlan
    reader_bytes: int

    @property
    def form(self) -> Form:
        return form_of(self.section)

    @property
    def all_full(self) -> bool:
        """Whether the MSM is over all points, or each slice of them."""
        return self.full == self.points

    @property
    def slices(self) -> int:
        return -(-self.points // self.slice_points) if self.slice_points else 1

    @property
    def at_once(self) -> int:
        """Points that a sum has before it."""
        return self.slice_points or self.points

    @property
    def held_bytes(self) -> int:
        """Of points, but those of full scalars; of slices also their scalars or bits, and what comes in."""
        if self.slice_points is None:
            return points_bytes(self.form, self.points)
        at_once = min(self.slice_points, self.points)
        beside = (_SCALAR_BYTES if self.all_full else 0) * at_once
        beside += 0 if self.selected is None else at_once
        return points_bytes(self.form, 2 * at_once) + beside + self.reader_bytes

    @property
    def full_bytes(self) -> int:
        """Of what the sum over full scalars has for itself; where all are full, it has no other points."""
        collected = 0 if self.all_full else points_bytes(self.form, self.full)
        return collected + self.msm.kept_bytes

    def workspace_bytes(self, multiprocessors: int) -> int:
        """For its sums and for its check, which is a sum over bits."""
        checked = selected_layout(self.form, selected_plan(self.form, self.at_once), multiprocessors)
        return max(checked.nbytes, _msm_bytes(self.form, self.msm, multiprocessors))

    def costs(self, speed: Speed) -> list[tuple[int, SumCost]]:
        """Of the sum over bits, if there is one, and of the MSM; each with how often it is computed."""
        msm = msm_cost(self.form, self.msm, speed)
        costs = [(self.slices if self.all_full else 1, msm)]
        if self.selected is not None:
            costs.insert(0, (self.slices, selected_cost(self.form, self.selected, speed)))
        return costs

    def expected_ms(self, speed: Speed) -> float:
        return sum(times * cost.total_ms for times, cost in self.costs(speed))


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPlan:
    """All of a proof on one card.

    synthesis_bytes  of the circuit's variables and tables: `synthesis_plan`
    """

    facts: CardFacts
    domain_log2: int
    synthesis_bytes: int
    sections: tuple[SectionPlan, ...]

    @classmethod
    def of(
        cls,
        facts: CardFacts,
        counts: PointCounts,
        full: FullCounts,
        synthesis_bytes: int,
        reader_bytes: ReaderBytes = of_decoder,
    ) -> CardPlan:
        """The fastest plan that fits with the fewest sections streamed; else the least, for `require`.

        reader_bytes  of the points' source; without it a parameter file's
        """
        plans: list[CardPlan] = []
        for streamed in range(len(_STREAMING_ORDER) + 1):
            for slice_points in _SLICES if streamed else (None,):
                cut = dict.fromkeys(_STREAMING_ORDER[:streamed], slice_points)
                plans.append(cls._cut(facts, counts, full, synthesis_bytes, cut, reader_bytes))
            fitting = [plan for plan in plans if plan.fits]
            if fitting:
                return min(fitting, key=lambda plan: plan.expected_ms)
        return min(plans, key=lambda plan: plan.peak_bytes)

    @classmethod
    def sparing(
        cls,
        facts: CardFacts,
        counts: PointCounts,
        full: FullCounts,
        synthesis_bytes: int,
        reader_bytes: ReaderBytes = of_decoder,
    ) -> CardPlan:
        """The least memory that costs hardly any time against `of`: for a card that circuits share.

        Nothing more is streamed for it: that takes the bus, which is not in the expected time.
        """
        fastest = sparing = cls.of(facts, counts, full, synthesis_bytes, reader_bytes)
        most_ms = fastest.expected_ms + max(_SPARING_LOSS * fastest.expected_ms, _SPARING_LOSS_MS)
        while True:
            within = replace(facts, free_bytes=sparing.peak_bytes + facts.reserve_bytes - 1)
            less = cls.of(within, counts, full, synthesis_bytes, reader_bytes)
            is_slower = less.expected_ms > most_ms or less.streamed_bytes > fastest.streamed_bytes
            if not less.fits or is_slower:
                return replace(sparing, facts=facts)
            sparing = less

    @classmethod
    def _cut(
        cls,
        facts: CardFacts,
        counts: PointCounts,
        full: FullCounts,
        synthesis_bytes: int,
        cut: Mapping[SectionName, int | None],
        reader_bytes: ReaderBytes,
    ) -> CardPlan:
        """With these sections in slices of so many points.

        The MSM over h takes the memory that all else leaves, the others' make do with what it takes.
        """
        read = {
            name: reader_bytes(name, min(most, counts.of(name)), facts.multiprocessors) if most else 0
            for name, _ in SECTIONS
            for most in (cut.get(name),)
        }
        others = tuple(
            _over_variables(facts, counts, full, name, cut.get(name), read[name]) for name, _ in SECTIONS[1:]
        )
        least = _least_msm_plan(FQ_GPU, min(cut.get("h") or counts.h, counts.h), facts.speed)
        h = SectionPlan(
            section="h",
            points=counts.h,
            full=counts.h,
            slice_points=cut.get("h"),
            selected=None,
            msm=least,
            reader_bytes=read["h"],
        )
        plan = cls(
            facts=facts,
            domain_log2=counts.domain_log2,
            synthesis_bytes=synthesis_bytes,
            sections=(h, *others),
        )
        left = plan.budget_bytes - (plan.bytes_in("proving") - plan.workspace_bytes)
        plan = replace(plan, sections=(_faster(h, facts, left), *others))
        room = plan.workspace_bytes
        return replace(plan, sections=tuple(_faster(section, facts, room) for section in plan.sections))

    @property
    def workspace_bytes(self) -> int:
        """One array for all sums, and for the third vector of a quotient."""
        sums = (section.workspace_bytes(self.facts.multiprocessors) for section in self.sections)
        return max(_SCALAR_BYTES << self.domain_log2, *sums)

    @property
    def parts(self) -> list[Part]:
        """All of the card's memory."""
        selected = [section.selected for section in self.sections if section.selected is not None]
        checked = selected_plan(FQ_GPU, max(section.at_once for section in self.sections))
        lists = sum(plan.kept_bytes for plan in selected)
        lists += sum(section.full_bytes for section in self.sections if section.all_full)
        full = sum(section.full_bytes for section in self.sections if not section.all_full)
        return [
            *(Part(name=f"points of {one.section}", nbytes=one.held_bytes) for one in self.sections),
            Part(name="points of full scalars", nbytes=full, phases=("proving",)),
            Part(name="variables and templates", nbytes=self.synthesis_bytes),
            Part(name="rows of A and B", nbytes=2 * _SCALAR_BYTES << self.domain_log2),
            Part(name="tables of transforms", nbytes=_table_bytes(self.domain_log2), phases=("proving",)),
            Part(name="working memory", nbytes=self.workspace_bytes),
            Part(name="lists of sums", nbytes=lists),
            Part(name="random bits", nbytes=2 * checked.n + checked.kept_bytes, phases=("checking",)),
        ]

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
    def streamed_bytes(self) -> int:
        """Over the bus for each proof, beside the sums that it is used in."""
        return sum(points_bytes(one.form, one.points) for one in self.sections if one.slice_points)

    @property
    def transforms_ms(self) -> float:
        return quotient_ms(self.domain_log2, self.facts)

    @property
    def expected_ms(self) -> float:
        """Of quotient and sums, one after another; a bus that is slower than the sums is not in it."""
        return self.transforms_ms + sum(section.expected_ms(self.facts.speed) for section in self.sections)

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


def _over_variables(
    facts: CardFacts,
    counts: PointCounts,
    full: FullCounts,
    name: SectionName,
    slice_points: int | None,
    reader_bytes: int,
) -> SectionPlan:
    """Of l, a or b: bits, and full scalars, whose points are collected if they are few; its least plan."""
    points, form = counts.of(name), form_of(name)
    at_once, all_full = min(slice_points or points, points), full.of(name) == points
    return SectionPlan(
        section=name,
        points=points,
        full=full.of(name),
        slice_points=slice_points,
        selected=selected_plan(form, at_once),
        msm=_least_msm_plan(form, at_once if all_full else full.of(name), facts.speed),
        reader_bytes=reader_bytes,
    )


def _faster(section: SectionPlan, facts: CardFacts, most_bytes: int) -> SectionPlan:
    """With the fastest MSM in so much working memory; where that does not do, as it is."""
    plan = _msm_plan_within(section.form, section.msm.n, facts.speed, most_bytes)
    return section if plan is None else replace(section, msm=plan)


@lru_cache(maxsize=256)
def _least_msm_plan(form: Form, n: int, speed: CardFacts) -> GpuPlan:
    """Asked again for every cut of the other sections: 30 ms each."""
    return least_msm_plan(form, n, speed)


@lru_cache(maxsize=1024)
def _msm_plan_within(form: Form, n: int, speed: CardFacts, most_bytes: int) -> GpuPlan | None:
    return msm_plan_within(form, n, speed, most_bytes)


@lru_cache(maxsize=1024)
def _msm_bytes(form: Form, plan: GpuPlan, multiprocessors: int) -> int:
    return msm_layout(form, plan, multiprocessors).nbytes


@lru_cache(maxsize=2)
def _table_bytes(log2: int) -> int:
    return table_bytes(quotient_works(Schedule(log2)))
