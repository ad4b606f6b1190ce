"""A setup's place on a device: plans that leave room for others, and smaller ones when memory runs out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from cuzk.engine.seam import Needs
from cuzk.errors import DiskError, ParameterError, ResourceError
from cuzk.events import Event, Notice
from cuzk.proofs.places import Place

GIB = 1 << 30
NO_MEMORY = ResourceError("the GPU has no memory left for this", where="cuda:0")


@dataclass(eq=False)
class Card:
    """Has so much memory; targets fail at a step when they may take more."""

    free: int
    step: str = "loaded"
    error: Exception = NO_MEMORY
    tried: list[int | None] = field(default_factory=list)
    open_now: int = 0

    def target(self, most: int | None) -> Any:
        self.tried.append(most)
        self.open_now += 1
        return Target(self, most)


@dataclass(eq=False)
class Target:
    card: Card
    most: int | None

    def prepare(self, on_event: object) -> None:
        self._at("prepare")

    def opened(self, circuit: object) -> None:
        self._at("opened")

    def loaded(self) -> None:
        self._at("loaded")

    def ready(self, circuit: object) -> None:
        self._at("ready")

    def close(self) -> None:
        self.card.open_now -= 1

    def _at(self, step: str) -> None:
        if step == self.card.step and (self.most or 0) > self.card.free:
            raise self.card.error


def place(card: Card, heard: list[Event], needs: int = 64 * GIB) -> Place:
    return Place(
        "porep-32GiB on cuda:0",
        object(),  # type: ignore[arg-type]
        Needs(device=needs, host=0),
        card.target,
        lambda target, on_event: None,
        heard.append,
    )


def test_a_card_that_runs_out_of_memory_is_opened_with_less_and_that_is_said() -> None:
    card, heard = Card(free=50 * GIB), list[Event]()
    target: Any = place(card, heard).open()
    assert card.tried == [64 * GIB, 56 * GIB, 49 * GIB] and target.most == 49 * GIB
    assert card.open_now == 1
    assert [(type(event), getattr(event, "level", "")) for event in heard] == [(Notice, "warning")] * 2
    assert "porep-32GiB on cuda:0 is opened again with at most 49 GiB" in str(heard[1])
    assert "no memory left" in str(heard[1])


def test_a_proof_that_found_no_memory_makes_the_next_target_smaller() -> None:
    card, heard = Card(free=100 * GIB), list[Event]()
    mine = place(card, heard)
    mine.open()
    assert mine.ran_short(NO_MEMORY)
    mine.open()
    assert card.tried == [64 * GIB, 56 * GIB] and len(heard) == 1


def test_after_a_few_times_the_error_is_raised_and_nothing_stays_open() -> None:
    card = Card(free=0)
    with pytest.raises(ResourceError, match="no memory left"):
        place(card, []).open()
    assert len(card.tried) == 5 and card.open_now == 0


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({"step": "opened"}, 64 * GIB),  # no plan does with what there is: another would not either
        ({"error": ParameterError("the point is not on the curve")}, 64 * GIB),
        ({"error": DiskError("the file cannot be read: Input/output error")}, 64 * GIB),
        ({"free": -1}, 0),  # the CPU, whose memory is not planned like that
    ],
)
def test_what_less_memory_would_not_mend_is_raised_at_once(changes: dict[str, Any], needs: int) -> None:
    card = Card(**{"free": 0, **changes})
    with pytest.raises((ResourceError, ParameterError)):
        place(card, [], needs).open()
    assert len(card.tried) == 1 and card.open_now == 0
