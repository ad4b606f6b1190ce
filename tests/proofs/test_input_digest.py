"""Digests of inputs: equal for what is equal, however it lies in memory, and else different."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cuzk.kernels.device.cpu import CpuDevice
from cuzk.proofs import input_digest as module
from cuzk.proofs.input_digest import input_digest

HOST = CpuDevice(threads=3)
PIECE = 64


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE_BYTES", PIECE)


@dataclass(frozen=True)
class Given:
    origin: str
    name: str
    rows: Any
    parts: tuple[Any, ...] = ()


def rows(count: int) -> np.ndarray[Any, Any]:
    return np.arange(8 * count, dtype=np.uint8).reshape(count, 8)


def digest(value: Any) -> str:
    return input_digest(value, HOST)[0]


def test_where_an_input_came_from_and_how_its_arrays_lie_in_memory_change_nothing() -> None:
    straight, transposed = rows(20), np.asfortranarray(rows(20))
    one, other = Given("a file", "x", straight), Given("elsewhere", "x", transposed)
    assert input_digest(one, HOST) == input_digest(other, CpuDevice(threads=1))
    assert input_digest(one, HOST)[1] == 160


@pytest.mark.parametrize("at", [0, PIECE - 1, PIECE, 2 * PIECE - 1, 2 * PIECE, 159])
def test_every_byte_counts(at: int) -> None:
    changed = rows(20)
    changed.reshape(-1)[at] ^= 1
    assert digest(Given("", "x", changed)) != digest(Given("", "x", rows(20)))


def test_what_differs_in_form_alone_differs() -> None:
    flat, empty = rows(16).reshape(-1), np.zeros(0, np.uint8)
    values = [
        flat,
        flat.reshape(2, 64),
        flat.view(np.uint64),
        (flat[:64], flat[64:]),
        (flat[:32], flat[32:]),
        ((flat[:64],), flat[64:]),
        (flat, empty),
        (flat,),
        (empty, flat),
    ]
    inputs = [Given("", "x", value) for value in values] + [Given("", "y", flat), Given("", "x", flat, (1,))]
    assert len({digest(value) for value in inputs}) == len(inputs)


def test_pieces_that_change_places_are_noticed() -> None:
    swapped = np.roll(rows(16).reshape(-1), PIECE)
    assert digest((swapped,)) != digest((rows(16).reshape(-1),))
