"""What the benchmarks share: measuring, checking, the JSON beside the table, the tables of the docs."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import gpu_engine, gpu_tables, gpu_urgent, many_cards, runner, tables
from bench.peers import Peer
from bench.runner import Case, Inside, main, measure
from cuzk.engine.settings import Settings
from cuzk.timeline.analyze import analyze
from cuzk.timeline.read import parse_log

PEER = Peer(name="slow", source="a slow machine", times={100: "3 s"})


def case(**changes: Any) -> Case:
    facts: dict[str, Any] = {
        "name": "sum",
        "device": "cpu",
        "n": 100,
        "prepare": lambda: list(range(100)),
        "run": sum,
        "check": lambda total: total == 4950,
        "items": 100,
        "unit": "numbers",
    }
    return Case(**{**facts, **changes})


def run_main(monkeypatch: pytest.MonkeyPatch, cases: list[Case], *options: str) -> int:
    def yield_cases(_: Any) -> Iterator[Case]:
        yield from cases

    monkeypatch.setattr(sys, "argv", ["bench", "--runs", "3", *options])
    with pytest.raises(SystemExit) as ended:
        main("sums", yield_cases)
    return int(ended.value.code or 0)


def test_results_that_are_missing_are_named_in_one_line(tmp_path: Path) -> None:
    for name in ("gpu_field", "gpu_curve", "gpu_ntt"):
        (tmp_path / f"{name}.json").touch()
    with pytest.raises(SystemExit, match=r"lacks gpu_msm.json, gpu_sector.json: python -m bench.NAME --out"):
        gpu_tables.blocks(tmp_path)


def test_what_run_gets_is_made_anew_before_every_run() -> None:
    given: list[list[int]] = []

    def run(numbers: list[int]) -> int:
        given.append(numbers)
        return sum(numbers)

    result = measure(case(run=run), warm_up=2, runs=5)
    assert result.correct and result.runs == 5
    assert len({id(numbers) for numbers in given}) == 7


def test_without_a_warm_up_the_first_timed_run_is_checked() -> None:
    assert not measure(case(check=lambda total: total == 1), warm_up=0, runs=1).correct


def test_median_and_tenths_are_in_order_and_the_rate_follows_the_median() -> None:
    result = measure(case(limit=1e30), warm_up=1, runs=9)
    assert result.p10_s <= result.median_s <= result.p90_s
    assert result.rate == 100 / result.median_s
    assert result.limit_share == result.rate / 1e30


def test_stages_are_medians_and_memory_is_the_most() -> None:
    runs = iter([(9.0, 1), (1.0, 10), (5.0, 30), (2.0, 20)])

    def inside(_: Any) -> Inside:
        seconds, peak = next(runs)
        return Inside(stages={"read": seconds}, peak_bytes=peak)

    result = measure(case(inside=inside), warm_up=0, runs=4)
    assert result.stages_s == {"read": 3.5}
    assert result.peak_bytes == 30


def test_a_wrong_result_is_shown_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, [case(), case(check=lambda _: False)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("ok") and lines[2].endswith("WRONG")


def test_json_holds_the_facts_of_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run_main(monkeypatch, [case(peer=PEER)], "--json", str(tmp_path / "sums.json")) == 0
    report = json.loads((tmp_path / "sums.json").read_text())
    assert {"cpu", "cpus", "python", "numba", "commit", "tree", "warm_up"} <= set(report)
    (result,) = report["results"]
    assert (result["case"], result["n"], result["runs"], result["unit"]) == ("sum", 100, 3, "numbers/s")
    assert result["peer"]["source"] == "a slow machine"


def test_a_table_of_the_docs_has_a_row_a_case_and_no_empty_columns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_main(monkeypatch, [case(peer=PEER), case(name="sum again")], "--json", str(tmp_path / "sums.json"))
    text = tables.table(json.loads((tmp_path / "sums.json").read_text()))
    heads, _, first, second, *_ = text.splitlines()
    assert heads == "| case | device | n | median | p10-p90 | CPU | rate | peer |"
    assert first.startswith("| sum | cpu | 100 |") and first.endswith("| slow 3 s |")
    assert second.startswith("| sum again |") and second.endswith("|  |")
    assert "slow: a slow machine." in text and "2 warm-up + 3 runs" in text


def test_only_what_stands_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured:ntt:begin -->\nold\n<!-- measured:ntt:end -->\nafter\n")
    tables.replace_block(page, "ntt", "new \\1")
    assert (
        page.read_text() == "before\n<!-- measured:ntt:begin -->\nnew \\1\n<!-- measured:ntt:end -->\nafter\n"
    )


def test_every_subject_has_its_place_in_the_docs() -> None:
    performance = (runner.ROOT / "docs/performance.md").read_text()
    assert all(f"<!-- measured:{name}:begin -->" in performance for name in tables.SUBJECTS)
    assert "<!-- measured:highlights:begin -->" in (runner.ROOT / "README.md").read_text()


def test_the_gpus_tables_are_those_of_the_results_in_the_repository() -> None:
    """To renew them: python -m bench.gpu_tables"""
    performance = gpu_tables.PAGE.read_text(encoding="utf-8")
    for name, content in gpu_tables.blocks(gpu_tables.KEPT).items():
        assert f"<!-- measured:{name}:begin -->\n{content}\n<!-- measured:{name}:end -->" in performance


def engine_run(cards: int, lock: str, proof_s: float) -> dict[str, Any]:
    """What a run tells: partitions of 800 ms, beside which the host takes 20 ms."""
    means = {"waiting for its lock": 700.0, "on the device": 800.0, "both, and the host's part": 1520.0}
    partitions = 10 * 5 * cards
    return {
        "cards": cards,
        "lock": lock,
        "count": 5 * cards,
        "concurrency": 3 * cards,
        "partitions": 10,
        "proof_s": proof_s,
        "kernels_s": 8.0 / cards,
        "wall_ms": {"median": 24_000.0},
        "stages_ms": {name: {"total": mean * partitions} for name, mean in means.items()},
        "kernels": {
            f"cuda:{k}": {"efficiency_percent": 99.5 - k, "partition_ms": 800.0} for k in range(cards)
        },
        "process": {"cpu_s": 20.0, "peak_bytes": (10 + 3 * cards) << 30},
        "peak_bytes": {"host memory": 1 << 30, **{f"cuda:{k}": 70 << 30 for k in range(cards)}},
    }


def test_waits_of_urgent_proofs_are_told_from_the_queue_to_the_lock() -> None:
    log = io.StringIO(
        "TIMELINE,90,GPU_START,usual,worker=0,partition=0,device=0\n"
        "TIMELINE,100,GPU_QUEUE,urgent,partition=0\n"
        "TIMELINE,101,GPU_PICKUP,urgent,worker=1,partition=0,device=0\n"
        "TIMELINE,102,GPU_START,urgent,worker=1,partition=0,device=0\n"
        "TIMELINE,103,LOCK_WAIT,urgent,worker=1,partition=0,device=0\n"
        "TIMELINE,110,GPU_END,usual,worker=0,partition=0,device=0\n"
        "TIMELINE,130,LOCK_START,urgent,worker=1,partition=0,device=0\n"
        "TIMELINE,180,LOCK_END,urgent,worker=1,partition=0,device=0\n"
        "TIMELINE,181,GPU_END,urgent,worker=1,partition=0,device=0\n"
    )
    [run] = analyze(parse_log(log, name="log")).runs
    fact = gpu_urgent.urgent_fact(run, "urgent", 90.4)
    assert fact == {
        "wall_ms": 90.4,
        "waits_ms": 30,
        "waits_for_the_lock_ms": 27,
        "computes_ms": 50,
        "ended_before": 1,
    }
    table = gpu_urgent.urgent_table({"urgent": {"alone": [fact], "among": [fact, {**fact, "waits_ms": 50}]}})
    assert table.splitlines()[2:] == [
        "| alone | 1 | 30 ms, 30 | 50 ms, 50 | 90 ms, 90 | 1 |",
        "| among PoRep partitions | 2 | 40 ms, 50 | 50 ms, 50 | 90 ms, 90 | 2 |",
    ]


def test_runs_of_an_engine_are_held_against_what_was_wanted() -> None:
    runs = [engine_run(1, "narrow", 8.2), engine_run(1, "coarse", 8.5), engine_run(2, "narrow", 4.3)]
    assert gpu_engine.verdicts(runs) == [
        "reached: kernels run 99.5 % after the first partition, wanted 99.0 %",
        "reached: a proof takes +2.5% against its kernels, wanted 3%",
        "reached: the narrow lock gains 30 ms a partition, its host part takes 20 ms",
        "MISSED: 2 cards prove 1.91 times as fast, wanted 1.95",
        "reached: of 2 cards each runs 98.5 %, wanted 97.0 %",
        "reached: the host takes 3.00 GiB a card more, wanted 4",
    ]
    table = gpu_engine.engine_table({"runs": runs}).splitlines()
    assert table[2] == (
        "| 1, narrow | 5, 3 at once | 8.20 s | 8.00 s | +2.5% | 99.5 % | 20 ms | 24.0 s | 70 GiB |"
    )
    assert "| 99.5 %, 98.5 % |" in table[4]


def test_sectors_alone_are_held_against_the_kernels_of_the_busiest_card() -> None:
    alone = [
        {"cards": 4, "partitions": 8, "rounds": 2, "wall_ms": [1750.0, 1760.0, 1900.0]},
        {"cards": 4, "partitions": 10, "rounds": 3, "wall_ms": [2880.0, 2880.0, 2880.0]},
    ]
    facts = {"runs": [engine_run(1, "narrow", 8.2)], "alone": alone}
    assert gpu_engine.alone_table(facts).splitlines()[2:] == [
        "| 4 | 8 | 1.76 s (1.75 to 1.90) | 1.60 s | +10.0% |",
        "| 4 | 10 | 2.88 s (2.88 to 2.88) | 2.40 s | +20.0% |",
    ]
    assert gpu_engine.verdicts_alone(facts) == [
        "reached: 8 partitions on 4 cards take 1.10 times the kernels of 2, wanted 1.10",
        "MISSED: 10 partitions on 4 cards take 1.20 times the kernels of 3, wanted 1.10",
    ]


@pytest.mark.parametrize(("cards", "expected"), [(1, []), (2, [2]), (3, [2, 3]), (4, [2, 4]), (8, [2, 4, 8])])
def test_several_cards_are_measured_in_powers_of_two_and_all(cards: int, expected: list[int]) -> None:
    assert gpu_engine.card_numbers(cards) == expected


def test_made_up_cards_prove_everything_and_are_idle_for_some_of_the_time() -> None:
    load = many_cards.Load(kernels=0.035, prepare=0.002, end=0.001, check=0.002, share=0.5)
    facts = many_cards.measured(2, load, Settings(), sectors=3, switch_s=None)
    assert 0 < facts.least_ran <= facts.ran < 1 < facts.alone
    assert 0 < facts.pause <= facts.longest_pause
    assert many_cards.share_of_time([(0.0, 1.0), (1.5, 2.0), (3.0, 4.5)]) == 3.0 / 4.5
