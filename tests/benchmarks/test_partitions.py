"""The stages of partitions: whose clock they are by, and what is left of the whole."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cuzk.benchmarks import partitions
from cuzk.benchmarks.partitions import PartitionBench
from cuzk.events import OnEvent, stage
from cuzk.groth16.proof import Proof

CARD_MS = {"witness": 20.0, "rows": 10.0, "A on the coset": 30.0, "sum l": 5.0, "sum h": 500.0}


def bench(*partitions: dict[str, float]) -> PartitionBench:
    return PartitionBench(
        kind="porep-c2",
        sector_size="32GiB",
        seed=0,
        device="cuda:0",
        setup={},
        partitions=partitions,
        proving_s=1.0,
        peak_host={},
        proof=b"\1\2",
    )


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Of a partition for which a card took CARD_MS, and the host no time that counts."""
    proof = Proof(a=bytes(48), b=bytes(96), c=bytes(48))

    def compute_partition(*given: Any) -> Callable[[], Proof]:
        on_event: OnEvent = given[-1]
        for name in ("pre-pass", "witness", "rows", "transforms", "sum h", "finish", "verify"):
            with stage(on_event, name):
                pass
        return lambda: proof

    monkeypatch.setattr(partitions, "compute_partition", compute_partition)
    target: Any = SimpleNamespace(host=None, stages_ms=lambda: CARD_MS)
    given: Any = SimpleNamespace(check_partition=lambda k, host: None)
    nothing: Any = None
    found, seconds = partitions._prove_one(target, nothing, nothing, given, 0)
    assert found is proof
    return seconds


def test_stages_come_in_their_order_and_the_cards_are_by_its_own_clock(stages: dict[str, float]) -> None:
    assert list(stages) == ["check", "pre-pass", *CARD_MS, "finish", "verify", "rest", "whole"]
    assert {name: stages[name] * 1000 for name in CARD_MS} == pytest.approx(CARD_MS)
    parts = sum(seconds for name, seconds in stages.items() if name not in ("rest", "whole"))
    assert stages["rest"] == pytest.approx(stages["whole"] - parts)
    clocks = {name: clock for name, clock, _, _ in bench(stages).stage_table()}
    assert {name for name, clock in clocks.items() if clock == "card"} == set(CARD_MS)


def test_the_first_partition_stands_apart_from_the_median_of_the_others() -> None:
    runs = [{"witness": first, "whole": 2 * first} for first in (9.0, 1.0, 5.0, 2.0)]
    assert bench(*runs).stage_table() == [("witness", "card", 9.0, 2.0), ("whole", "host", 18.0, 4.0)]
    assert bench(runs[0]).stage_table() == [("witness", "card", 9.0, 9.0), ("whole", "host", 18.0, 18.0)]
    assert bench(*runs).facts()["proof"] == "0102"
