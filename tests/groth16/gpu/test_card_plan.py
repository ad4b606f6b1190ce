"""Plans of a card's memory, for invented cards: what fits, what is cut, what is refused."""

from __future__ import annotations

import pytest

from cuzk.errors import ResourceError
from cuzk.groth16.gpu.card_plan import PHASES, CardFacts, CardPlan, Part
from cuzk.groth16.parameters.params_file import SECTIONS, PointCounts
from cuzk.groth16.qap import FullCounts
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.gpu.sum_plan import msm_cost
from cuzk.kernels.gpu.sum_schedule import decoder_bytes, msm_layout
from cuzk.proofs.places import ROOM_BYTES

GIB = 1 << 30
SMALL = PointCounts(ic=40, h=4_194_303, l=2_685_673, a=2_674_948, b=685_522)  # of 2 KiB
SMALL_FULL = FullCounts(l=43_806, a=43_000, b=30_000)
LARGE = PointCounts(ic=328, h=134_217_727, l=130_169_893, a=129_753_620, b=33_112_282)  # of 32 GiB
LARGE_FULL = FullCounts(l=1_699_102, a=1_500_000, b=1_500_000)
WINDOW = PointCounts(ic=25_840, h=134_217_727, l=126_902_376, a=96_205_645, b=91_925_767)  # of 32 GiB
WINDOW_FULL = FullCounts(l=126_902_376, a=96_205_645, b=91_925_767)
SYNTHESIS = 64 << 20


def card(free_gib: float, multiprocessors: int = 132) -> CardFacts:
    return CardFacts(
        multiprocessors=multiprocessors,
        clock_mhz=1980,
        threads_per_multiprocessor=2048,
        free_bytes=int(free_gib * GIB),
    )


def small(free_gib: float) -> CardPlan:
    return CardPlan.of(card(free_gib), SMALL, SMALL_FULL, SYNTHESIS)


def large(free_gib: float) -> CardPlan:
    return CardPlan.of(card(free_gib), LARGE, LARGE_FULL, SYNTHESIS)


@pytest.mark.parametrize("free_gib", [24, 140])
def test_a_sparing_plan_takes_less_memory_for_hardly_more_time(free_gib: float) -> None:
    fastest = large(free_gib)
    sparing = CardPlan.sparing(card(free_gib), LARGE, LARGE_FULL, SYNTHESIS)
    assert sparing.facts == fastest.facts and sparing.fits
    assert sparing.peak_bytes <= fastest.peak_bytes
    assert sparing.expected_ms <= 1.02 * fastest.expected_ms + 20
    assert sparing.streamed_bytes == fastest.streamed_bytes
    again = CardPlan.of(card(sparing.peak_bytes / GIB + 0.5), LARGE, LARGE_FULL, SYNTHESIS)
    assert again.peak_bytes <= sparing.peak_bytes + GIB // 2  # who has just that memory plans the same


@pytest.mark.parametrize("free_gib", [16, 24, 48])
def test_a_sparing_plan_counts_what_its_points_take_while_they_come(free_gib: float) -> None:
    """Who has just that memory, and such points, has a plan."""

    def computed(section: str, largest: int, multiprocessors: int) -> int:
        return GIB // 4 + 200 * largest // multiprocessors

    sparing = CardPlan.sparing(card(free_gib), LARGE, LARGE_FULL, SYNTHESIS, computed)
    assert sparing.fits and sparing.streamed_bytes
    for one in sparing.sections:
        passing = one.slice_points is not None
        assert one.reader_bytes == (computed(one.section, one.at_once, 132) if passing else 0)
    again = card((sparing.peak_bytes + sparing.facts.reserve_bytes) / GIB)
    assert CardPlan.of(again, LARGE, LARGE_FULL, SYNTHESIS, computed).fits


def test_two_large_circuits_fit_a_large_card_by_sparing_plans_and_not_by_the_fastest() -> None:
    assert 2 * large(140).peak_bytes > 140 * GIB
    sparing = CardPlan.sparing(card(140), LARGE, LARGE_FULL, SYNTHESIS)
    assert 2 * (sparing.peak_bytes + sparing.facts.reserve_bytes) < 140 * GIB


def test_a_small_circuit_leaves_most_of_a_card_for_some_milliseconds() -> None:
    """WinningPoSt for 32 GiB, in the room that is kept for it beside a large circuit."""
    counts = PointCounts(ic=133, h=524_287, l=375_210, a=284_329, b=272_185)
    full = FullCounts(l=375_210, a=284_329, b=272_185)
    plan = CardPlan.sparing(card(24), counts, full, SYNTHESIS)
    assert plan.peak_bytes + plan.facts.reserve_bytes <= ROOM_BYTES


def test_a_sparing_plan_of_what_fits_nowhere_says_so() -> None:
    assert not CardPlan.sparing(card(1), LARGE, LARGE_FULL, SYNTHESIS).fits


@pytest.mark.parametrize("free_gib", [3, 4, 6, 8, 12, 16, 24, 80, 140])
def test_a_plan_that_fits_keeps_to_its_budget_and_one_that_does_not_says_so(free_gib: float) -> None:
    plan = small(free_gib)
    assert plan.budget_bytes + plan.facts.reserve_bytes == plan.facts.free_bytes
    for phase in PHASES:
        assert plan.bytes_in(phase) == sum(part.nbytes for part in plan.parts if phase in part.phases)
    if plan.fits:
        assert plan.peak_bytes <= plan.budget_bytes
        plan.require("cuda:0")
    else:
        with pytest.raises(ResourceError, match="of the GPU's memory") as raised:
            plan.require("cuda:0")
        assert raised.value.where is not None and raised.value.where.startswith("cuda:0, the plan: points")
        for part in plan.parts:
            assert part.name in raised.value.where


def test_points_and_vectors_take_what_their_coordinates_and_rows_take() -> None:
    held = {part.name: part.nbytes for part in large(140).parts}
    for name, _ in SECTIONS:
        assert held[f"points of {name}"] == LARGE.of(name) * (192 if name == "b_g2" else 96)
    assert held["rows of A and B"] == 2 * 32 * (1 << 27)


def test_more_memory_never_makes_a_slower_plan() -> None:
    for plan_of, sizes in ((small, (3, 4, 5, 6, 8, 12, 16)), (large, (70, 80, 100, 120, 140))):
        times = [plan.expected_ms for plan in map(plan_of, sizes) if plan.fits]
        assert len(times) >= 4
        for faster, slower in zip(times[1:], times, strict=False):
            assert faster <= 1.02 * slower  # sums that differ by a hundredth count as equal


def test_a_little_less_memory_than_the_fastest_plan_takes_means_another_not_refusal() -> None:
    roomy = small(140)
    assert len(roomy.of_section("h").msm.passes) == 1
    tight = small((roomy.peak_bytes + roomy.facts.reserve_bytes - 1) / GIB)
    assert tight.fits and tight.peak_bytes < roomy.peak_bytes
    assert [len(small(size).of_section("h").msm.passes) > 1 for size in (8, 6, 4)] == [True] * 3
    exact = small((roomy.peak_bytes + roomy.facts.reserve_bytes) / GIB)
    assert exact.of_section("h") == roomy.of_section("h")


def test_sections_are_streamed_only_where_they_must_and_h_first() -> None:
    assert [section.slice_points for section in large(140).sections] == [None] * 5
    streamed = [
        {section.section for section in large(size).sections if section.slice_points}
        for size in (80, 64, 48, 24, 16)
    ]
    assert streamed[0] == set() and streamed[1] == {"h"}
    for fewer, more in zip(streamed, streamed[1:], strict=False):
        assert fewer <= more
    assert len(streamed[-1]) == 5 and large(16).fits


def test_a_card_that_is_too_small_even_for_slices_is_refused() -> None:
    plan = large(12)
    assert not plan.fits
    with pytest.raises(ResourceError, match=r"11\.6 GiB can be used"):
        plan.require("cuda:0")


def test_points_that_all_meet_numbers_are_on_a_card_once() -> None:
    plan = CardPlan.of(card(139), WINDOW, WINDOW_FULL, 16 * GIB)
    assert plan.fits and plan.streamed_bytes == 0
    held = {part.name: part.nbytes for part in plan.parts}
    assert held["points of full scalars"] == 0
    for section in plan.sections:
        assert section.msm.n == section.points == WINDOW.of(section.section)


@pytest.mark.parametrize("free_gib", [64, 48])
def test_numbers_of_a_streamed_section_meet_its_slices(free_gib: float) -> None:
    plan = CardPlan.of(card(free_gib), WINDOW, WINDOW_FULL, 16 * GIB)
    assert plan.fits
    held = {part.name: part.nbytes for part in plan.parts}
    streamed = [section for section in plan.sections if section.slice_points]
    for section in streamed:
        n, form = section.slice_points, FQ2_GPU if section.section == "b_g2" else FQ_GPU
        assert n is not None and section.msm.n == n
        points, bits = 2 * n * (192 if form is FQ2_GPU else 96), 0 if section.section == "h" else n
        assert held[f"points of {section.section}"] == points + 32 * n + bits + decoder_bytes(form, n)
        assert {times for times, _ in section.costs(plan.facts)} == {section.slices}
    assert streamed


def test_a_streamed_section_holds_two_slices_and_all_of_its_points_pass() -> None:
    plan, passing = large(24), 0
    held = {part.name: part.nbytes for part in plan.parts}
    for section in plan.sections:
        if section.slice_points:
            size, form = (192, FQ2_GPU) if section.section == "b_g2" else (96, FQ_GPU)
            n = section.slice_points
            scalars = 32 * n if section.section == "h" else n
            assert held[f"points of {section.section}"] == 2 * n * size + scalars + decoder_bytes(form, n)
            assert section.slices * n >= section.points > (section.slices - 1) * n
            passing += section.points * size
            assert [times for times, _ in section.costs(plan.facts)][0] == section.slices
            assert len(section.costs(plan.facts)) == 1 or section.costs(plan.facts)[1][0] == 1
    assert plan.streamed_bytes == passing > 0 == large(140).streamed_bytes


def test_the_sum_over_h_is_as_the_cost_model_and_its_layout_have_it() -> None:
    plan = small(140)
    h = plan.of_section("h")
    assert h.costs(plan.facts) == [(1, msm_cost(FQ_GPU, h.msm, plan.facts))]
    assert h.msm.n == SMALL.h
    workspace = msm_layout(FQ_GPU, h.msm, plan.facts.multiprocessors).nbytes
    assert Part(name="working memory", nbytes=workspace) in plan.parts  # the other sums need less


def test_sums_and_the_third_vector_of_a_quotient_share_the_largest_of_their_memories() -> None:
    plan = small(140)
    for section in plan.sections:
        assert plan.workspace_bytes >= section.workspace_bytes(plan.facts.multiprocessors)
    assert plan.workspace_bytes >= 32 << plan.domain_log2


def test_a_card_with_less_than_the_reserve_has_no_budget() -> None:
    plan = small(0.1)
    assert plan.budget_bytes == 0 and not plan.fits
