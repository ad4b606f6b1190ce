"""Plans of proofs as --explain and --plan show them, on invented cards and on the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cuzk
from cuzk.errors import ResourceError, UsageError
from cuzk.groth16.qap import full_counts, point_counts
from cuzk.kernels.device import cuda
from cuzk.kernels.device.choose import Choice
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_card import describe
from cuzk.proofs.kinds import circuit_of
from cuzk.reports import plan
from cuzk.reports.plan import Explanation, explained
from cuzk.sector.porep.shape import porep_shape
from tests.cli.running import run
from tests.kernels.device.fake_cuda import FakeDriver, card

GIB = 1 << 30
C1 = Path(__file__).parents[1] / "vectors" / "porep" / "2k-random.json"


def on_a_card(
    monkeypatch: pytest.MonkeyPatch, *, limit: int | None = None, taken: int = 0, **changes: Any
) -> Explanation:
    """Of a 2 KiB sector; the card is given back."""
    facts = {"memory_bytes": 140 * GIB, "MULTIPROCESSOR_COUNT": 132, **changes}
    driver = FakeDriver(card(**facts), taken=taken)
    monkeypatch.setattr(cuda, "CudaDevice", lambda name, **given: CudaDevice(name, api=driver, **given))
    choice = Choice(host=CpuDevice(threads=2), card=describe(driver, 0))
    explanation = explained(porep_shape(2048), choice, limit)
    assert driver.held == {}
    return explanation


def test_a_card_is_explained_part_by_part_and_sum_by_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    explanation = on_a_card(monkeypatch, taken=GIB)
    assert explanation.refusal() is None and explanation.device == "cuda:0"
    facts = explanation.facts()
    assert facts["plan"]["verdict"] == "fits"
    memory = facts["gpu_memory"]
    assert memory["free_bytes"] == 139 * GIB == memory["budget_bytes"] + memory["reserve_bytes"]
    parts = explanation.memory_rows()
    assert sum(part["held_bytes"] for part in parts if "proving" in part["while"]) == memory["proving_bytes"]
    assert memory["peak_bytes"] == max(memory["proving_bytes"], memory["checking_bytes"])
    sums = explanation.sum_rows()
    assert [(row["sum"], row["scalars"]) for row in sums] == [
        ("h", "full"),
        *((name, kind) for name in ("l", "a", "b_g1", "b_g2") for kind in ("bits", "full")),
    ]
    circuit = circuit_of(porep_shape(2048))
    counts, full = point_counts(circuit), full_counts(circuit)
    for row in sums:
        name, is_msm = row["sum"], row["scalars"] == "full" and row["sum"] != "h"
        assert row["points"] == (full.of(name) if is_msm else counts.of(name))
        assert row["points_at_a_time"] is None and row["ms"] > 0
    assert facts["gpu_costs"]["g1_addition_ns"] == 0.298
    json.dumps([facts, parts, sums])


def test_a_slower_card_is_expected_to_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, slow = on_a_card(monkeypatch), on_a_card(monkeypatch, MULTIPROCESSOR_COUNT=33)
    assert slow.facts()["expected"]["both_ms"] > 2 * fast.facts()["expected"]["both_ms"]
    assert slow.facts()["gpu_costs"]["throughput_of_an_h200"] == 0.25


def test_a_limit_makes_passes_and_a_smaller_one_is_refused_with_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = on_a_card(monkeypatch, limit=3 * GIB).card
    assert plan is not None and plan.fits and len(plan.of_section("h").msm.passes) > 1
    assert plan.peak_bytes + plan.facts.reserve_bytes <= 3 * GIB
    refused = on_a_card(monkeypatch, limit=GIB)
    assert refused.facts()["plan"]["fits"] is False and refused.summary()["verdict"] == "does not fit"
    error = refused.refusal()
    assert isinstance(error, ResourceError) and "the plan: points of h" in str(error.where)


def test_a_limit_of_a_gpu_is_refused_where_none_is_used() -> None:
    choice = Choice(host=CpuDevice(threads=1))
    with pytest.raises(UsageError, match="mean nothing to cpu"):
        explained(porep_shape(2048), choice, GIB)
    with pytest.raises(UsageError, match="mean nothing to cpu"):
        cuzk.prove(C1, device="cpu", vram_limit=GIB)


def test_explain_shows_the_plan_and_proves_nothing(own_home: Path) -> None:
    result = run("prove", str(C1), "--explain", "--device", "cpu")
    assert result.exit_code == 0 and "verdict:" in result.stdout and "Proof Result" not in result.stdout
    facts = json.loads(run("prove", str(C1), "--explain", "--device", "cpu", "--json").stdout)
    assert facts["plan"]["sector_size"] == "2KiB" and facts["sums"] == facts["parts"] == []
    host = facts["host_memory"]
    assert host["peak_bytes"] == host["process_bytes"] + host["witness_bytes"] + max(
        host["transforms_bytes"], host["sums_bytes"]
    )
    published = json.loads((C1.parent / "vectors.json").read_text())["params_2k"]
    assert host["mapped_parameters_bytes"] == published["params_bytes"]


def test_a_plan_that_does_not_fit_is_shown_and_ends_with_1(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "available_memory", lambda: 1 << 20)
    result = run("doctor", "--plan", "--sector-size", "2KiB", "--device", "cpu")
    assert result.exit_code == 1
    assert "available: 1 MiB" in " ".join(result.stdout.split()) and "1 MiB are available" in result.stderr
    answer = run("doctor", "--plan", "--sector-size", "2KiB", "--device", "cpu", "--json")
    assert answer.exit_code == 1 and json.loads(answer.stdout)["plan"]["fits"] is False


def test_without_a_size_the_plan_has_a_line_for_each_that_networks_use(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [porep_shape(2048), porep_shape(8 << 20)]  # larger circuits take seconds to build
    monkeypatch.setattr(plan, "is_published", {shape.parameter_stem for shape in small}.__contains__)
    rows = json.loads(run("doctor", "--plan", "--device", "cpu", "--json").stdout)
    assert [row["sector_size"] for row in rows] == ["2KiB", "8MiB"]
    table = run("doctor", "--plan", "--device", "cpu").stdout.splitlines()
    assert table[0].split()[:3] == ["sector", "size", "device"] and len(table) == 3


@pytest.mark.parametrize(
    "option", [("--vram-limit", "16GiB"), ("--sector-size", "2KiB"), ("--kind", "snap"), ("--kind", "porep")]
)
def test_options_of_a_plan_without_a_plan_are_a_mistake_of_usage(
    option: tuple[str, str], own_home: Path
) -> None:
    result = run("doctor", *option)
    assert result.exit_code == 2 and "add --plan" in result.stderr
