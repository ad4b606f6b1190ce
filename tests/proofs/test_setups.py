"""Setups of an engine: made once for each kind and size, found by whoever comes later."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any

import pytest

from cuzk.events import ignore
from cuzk.proofs.kinds import POREP, Kind, kind_named
from cuzk.proofs.setups import Setups
from cuzk.sector.claim import CircuitShape

KIB = 1 << 10
WINNING = kind_named("winning-post")


@dataclass(frozen=True)
class Made:
    kind: str


class Slow(Setups):
    """Makes a PoRep's setup when the test says so, others at once."""

    def __init__(self) -> None:
        super().__init__({}, {}, ignore)
        self.begun, self.go_on, self.made = threading.Event(), threading.Event(), list[str]()

    def _new(self, shape: CircuitShape) -> Any:
        if shape.kind == POREP.name:
            self.begun.set()
            assert self.go_on.wait(30)
        self.made.append(shape.kind)
        return Made(shape.kind)


def test_a_setup_that_is_there_is_had_while_another_kinds_is_made() -> None:
    setups = Slow()
    porep, winning = (kind.shape(2 * KIB) for kind in (POREP, WINNING))
    found: Any = setups.of(winning)
    assert found == Made(WINNING.name)
    making = [threading.Thread(target=setups.of, args=(porep,)) for _ in range(2)]
    for thread in making:
        thread.start()
    assert setups.begun.wait(30)
    found = setups.of(winning)
    assert found == Made(WINNING.name) and setups.made == [WINNING.name]
    setups.go_on.set()
    for thread in making:
        thread.join()
    assert setups.made == [WINNING.name, POREP.name]


@pytest.mark.usefixtures("no_garbage_collection")
def test_nothing_is_kept_after_the_end_not_even_what_was_being_made() -> None:
    setups, held = Slow(), list[weakref.ref[Any]]()

    def make(kind: Kind) -> None:
        held.append(weakref.ref(setups.of(kind.shape(2 * KIB))))

    make(WINNING)
    assert held[0]() is not None
    making = threading.Thread(target=make, args=(POREP,))
    making.start()
    assert setups.begun.wait(30)
    setups.let_go()
    setups.go_on.set()
    making.join()
    assert [one() for one in held] == [None, None]
