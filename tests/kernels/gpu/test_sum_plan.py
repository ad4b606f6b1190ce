"""Costs of sums on a GPU beside what was measured, and the plans that are chosen by them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.gpu.card_speed import MEASURED_ON, MeasuredSpeed
from cuzk.kernels.gpu.ntt_schedule import Schedule, quotient_ms, quotient_works, table_bytes
from cuzk.kernels.gpu.sum_plan import (
    bucket_rounds,
    least_msm_plan,
    msm_cost,
    msm_plan,
    msm_plan_within,
    selected_cost,
)
from cuzk.kernels.gpu.sum_schedule import msm_layout, selected_plan

RESULTS = Path(__file__).resolve().parents[3] / "bench" / "results" / "h200"
FORMS = {"G1": FQ_GPU, "G2": FQ2_GPU}
LAPTOP = MeasuredSpeed(multiprocessors=20, clock_mhz=1200)


def measured(part: str) -> list[dict[str, Any]]:
    return [case for case in json.loads((RESULTS / "gpu_msm.json").read_text()) if case["part"] == part]


def six_transforms() -> list[tuple[int, dict[str, Any]]]:
    """With log2 of their size."""
    cases = json.loads((RESULTS / "gpu_ntt.json").read_text())
    found = [
        (int(case["n"].split()[0].removeprefix("2^")), case)
        for case in cases
        if case["what"] == "six transforms, ms"
    ]
    assert len(found) >= 5
    return found


def test_the_cost_of_every_measured_msm_is_close_to_its_time() -> None:
    cases = [
        case
        for case in measured("msm")
        if case["scalars"] == "random" and case["note"] in ("", "simple sort")
    ]
    assert len(cases) >= 10
    for case in cases:
        form = FORMS[case["group"]]
        plan = msm_plan(form, case["n"], windows=case["windows"], windows_a_pass=case["a_pass"])
        if case["note"] == "simple sort":
            plan = replace(plan, bin_bits=None)
        assert msm_cost(form, plan, MEASURED_ON).total_ms == pytest.approx(case["ms"], rel=0.1), case


def test_the_cost_of_every_measured_sum_over_bits_is_close_to_its_time() -> None:
    cases = [case for case in measured("selected") if case["variant"] == "{}"]
    assert len(cases) >= 5
    for case in cases:
        cost = selected_cost(FQ_GPU, selected_plan(FQ_GPU, case["n"]), MEASURED_ON)
        assert cost.total_ms == pytest.approx(case["ms"], rel=0.1), case


def test_the_cost_of_the_six_transforms_is_close_to_their_time() -> None:
    for log2, case in six_transforms():
        assert quotient_ms(log2, MEASURED_ON) == pytest.approx(case["median"], rel=0.1), case


@pytest.mark.parametrize(("log2", "windows", "rounds"), [(18, 17, 6), (20, 15, 6), (22, 15, 7)])
def test_rounds_are_those_that_uniform_scalars_took(log2: int, windows: int, rounds: int) -> None:
    """The stages of bench/results, where all windows have the same bits."""
    assert bucket_rounds(msm_plan(FQ_GPU, 1 << log2, windows=windows)) == rounds


def test_no_points_and_one_point_have_plans() -> None:
    for n in (0, 1, 2):
        cost = msm_cost(FQ_GPU, msm_plan(FQ_GPU, n), MEASURED_ON)
        assert cost.rounds >= 1 and cost.total_ms > 0


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("speed", [MEASURED_ON, LAPTOP])
def test_fewer_and_wider_windows_suit_more_points(form: Any, speed: MeasuredSpeed) -> None:
    windows = [msm_plan(form, 1 << k, speed).windows for k in range(16, 28)]
    assert windows == sorted(windows, reverse=True) and windows[0] > windows[-1]


def test_a_slower_card_takes_as_much_longer_as_it_is_slower() -> None:
    half = MeasuredSpeed(MEASURED_ON.multiprocessors // 2, MEASURED_ON.clock_mhz)
    plan = msm_plan(FQ_GPU, 1 << 22)
    fast, slow = (msm_cost(FQ_GPU, plan, speed) for speed in (MEASURED_ON, half))
    assert slow.additions_ms == pytest.approx(2 * fast.additions_ms)
    assert slow.latency_ms == fast.latency_ms and slow.additions == fast.additions


def test_plans_keep_to_the_memory_that_there_is_and_take_no_longer_where_there_is_more() -> None:
    n, before = (1 << 27) - 1, float("inf")
    for size in range(16, 129, 8):
        plan = msm_plan_within(FQ_GPU, n, MEASURED_ON, size << 30)
        assert plan is not None
        assert msm_layout(FQ_GPU, plan, MEASURED_ON.multiprocessors).nbytes <= size << 30
        assert sum(end - first for first, end in plan.passes) == plan.windows
        took = msm_cost(FQ_GPU, plan, MEASURED_ON).total_ms
        assert took <= 1.011 * before  # costs that differ by a hundredth count as equal
        before = min(took, before)


def test_where_not_even_the_least_plan_fits_there_is_none() -> None:
    n = 1 << 20
    least = msm_layout(FQ_GPU, least_msm_plan(FQ_GPU, n, MEASURED_ON), MEASURED_ON.multiprocessors).nbytes
    assert msm_plan_within(FQ_GPU, n, MEASURED_ON, least) is not None
    assert msm_plan_within(FQ_GPU, n, MEASURED_ON, least - 1) is None


def test_tables_of_a_quotient_are_what_was_measured_or_less() -> None:
    """Measured were those of plain transforms, too."""
    for log2, case in six_transforms():
        planned = table_bytes(quotient_works(Schedule(log2))) / 1e6
        assert 0.5 * case["tables_mb"] < planned < case["tables_mb"]
