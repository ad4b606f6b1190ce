"""Points of one file on several cards, over a stand-in driver: read once, copied from card to card."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from concurrent.futures import CancelledError

from cuzk.circuit.builder import Circuit
from cuzk.errors import DeviceFault, ResourceError
from cuzk.events import Event, Notice, OnEvent, StageAdvanced, StageStarted, ignore
from cuzk.groth16.gpu import held_sections
from cuzk.groth16.gpu.held_sections import HeldSections
from cuzk.groth16.gpu.points_on_card import PointsOfFile
from cuzk.groth16.gpu.target import GpuTarget
from cuzk.groth16.parameters import watched_file
from cuzk.groth16.parameters.params_file import SECTIONS, SectionName, open_parameters
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu import points as points_module
from cuzk.kernels.gpu import sum_schedule
from tests.groth16.gpu.played_target import proven_idly, streamed, target_on
from tests.groth16.parameters.test_watched_file import fail_at
from tests.kernels.device.fake_cuda import FakeDriver, card

PATIENCE_S = 60


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (points_module, sum_schedule):
        monkeypatch.setattr(module, "DECODED_AT_ONCE", 16)
    monkeypatch.setattr(held_sections, "COPIED_AT_ONCE", 100)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes the file was asked for, each time."""
    sizes, preadv = list[int](), os.preadv

    def counted(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        sizes.append(len(buffers[0]))
        return preadv(descriptor, buffers, offset)

    monkeypatch.setattr(watched_file.os, "preadv", counted)
    return sizes


@pytest.fixture
def cards(driver: FakeDriver) -> Iterator[FakeDriver]:
    """Four of them; all that the test opens it has to close."""
    of_one = driver.cards[0]
    driver.cards = tuple(card(**{**of_one, "uuid": of_one["uuid"][:-1] + str(k)}) for k in range(4))
    yield driver
    assert driver.held == {}


def targets_on(driver: FakeDriver, params: Path, count: int) -> list[GpuTarget]:
    points, held = PointsOfFile(open_parameters(params)), HeldSections()

    def target(k: int) -> GpuTarget:
        opened = lambda: CudaDevice(f"cuda:{k}", api=driver)  # noqa: E731
        return GpuTarget(CpuDevice(threads=1), f"cuda:{k}", opened, points, shared=held)

    return [target(k) for k in range(count)]


def begun(target: GpuTarget, toy: Circuit, on_event: OnEvent = ignore) -> GpuTarget:
    target.prepare(on_event)
    target.opened(toy)
    return target


def loaded(target: GpuTarget, toy: Circuit) -> GpuTarget:
    begun(target, toy).loaded()
    return target


class HeldUp:
    """A load that stops where it first tells how far it is, until it may go on."""

    def __init__(self) -> None:
        self.is_there, self.goes_on = threading.Event(), threading.Event()

    def hear(self, event: Event) -> None:
        if isinstance(event, StageAdvanced):
            self.is_there.set()
            assert self.goes_on.wait(PATIENCE_S)


def at_the_start_of_loading(work: Callable[[], object]) -> OnEvent:
    return lambda event: work() if isinstance(event, StageStarted) else None


def rows_of(target: GpuTarget) -> dict[str, Any]:
    download = target._device.download
    return {name: [download(axis).tolist() for axis in (on.x, on.y)] for name, on in target._held.items()}


def bytes_of_points(params: Path) -> int:
    counts = open_parameters(params).counts
    return sum(nbytes * counts.of(name) for name, nbytes in SECTIONS)


def test_cards_that_load_together_read_the_file_once(
    cards: FakeDriver, toy: Circuit, toy_params: Path, asked: list[int]
) -> None:
    total, together = bytes_of_points(toy_params), targets_on(cards, toy_params, 4)
    all_start = threading.Barrier(4)
    asked.clear()
    for target in together:
        target.prepare(at_the_start_of_loading(lambda: all_start.wait(PATIENCE_S)))
    for target in together:
        target.opened(toy)
    for target in together:
        target.loaded()
    assert sum(asked) == total
    alone = loaded(target_on(cards, toy_params), toy)
    for target in together:
        assert rows_of(target) == rows_of(alone)
        proven_idly(target, toy)
    for target in (*together, alone):
        target.close()


def test_a_card_that_comes_later_reads_nothing_and_tells_what_it_copies(
    cards: FakeDriver, toy: Circuit, toy_params: Path, asked: list[int]
) -> None:
    first, later = targets_on(cards, toy_params, 2)
    loaded(first, toy)
    asked.clear()
    told: list[Event] = []
    begun(later, toy, told.append).loaded()
    assert asked == []
    assert rows_of(later) == rows_of(first)
    done = [event.done for event in told if isinstance(event, StageAdvanced)]
    assert done == sorted(done) and done[-1] == bytes_of_points(toy_params) and len(done) > len(SECTIONS)
    first.close()
    proven_idly(later, toy)
    later.close()


def test_a_card_gives_a_section_to_one_other_at_a_time(
    cards: FakeDriver, toy: Circuit, toy_params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    giving, at_once, lock = Counter[int](), list[int](), threading.Lock()  # by who holds which section
    copied = held_sections._copied

    def watched(device: CudaDevice, holder: Any, advance: Any) -> Any:
        with lock:
            giving[id(holder)] += 1
            at_once.append(giving[id(holder)])
        try:
            return copied(device, holder, advance)
        finally:
            with lock:
                giving[id(holder)] -= 1

    monkeypatch.setattr(held_sections, "_copied", watched)
    targets = targets_on(cards, toy_params, 4)
    loaded(targets[0], toy)
    second = HeldUp()
    begun(targets[1], toy, second.hear)
    assert second.is_there.wait(PATIENCE_S)  # copies the first section: nobody else may have it meanwhile
    for target in targets[2:]:
        begun(target, toy)
    second.goes_on.set()
    for target in targets:
        target.loaded()
        assert rows_of(target) == rows_of(targets[0])
    assert at_once == [1] * 3 * len(SECTIONS)
    for target in targets:
        target.close()


def test_a_card_that_gives_up_leaves_the_loading_to_another(
    cards: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    given_up, goes_on = targets_on(cards, toy_params, 2)
    half_way = threading.Event()

    def stop_there(event: Event) -> None:
        if isinstance(event, StageAdvanced):
            half_way.set()
            assert given_up._closing.wait(PATIENCE_S)

    begun(given_up, toy, stop_there)
    assert half_way.wait(PATIENCE_S)
    begun(goes_on, toy)
    given_up.close()
    with pytest.raises(CancelledError, match="given up"):
        given_up.loaded()
    goes_on.loaded()
    alone = loaded(target_on(cards, toy_params), toy)
    assert rows_of(goes_on) == rows_of(alone)
    for target in (goes_on, alone):
        target.close()


def test_a_card_that_waits_for_another_can_be_closed(
    cards: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    loads, waits = targets_on(cards, toy_params, 2)
    half_way = HeldUp()
    begun(loads, toy, half_way.hear)
    assert half_way.is_there.wait(PATIENCE_S)
    begun(waits, toy).close()
    with pytest.raises(CancelledError, match="given up"):
        waits.loaded()
    half_way.goes_on.set()
    loads.loaded()
    loads.close()


def test_closing_waits_for_those_who_copy_and_later_cards_load_anew(
    cards: FakeDriver, toy: Circuit, toy_params: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    total, (goes, copies, comes) = bytes_of_points(toy_params), targets_on(cards, toy_params, 3)
    alone = rows_of(loaded(goes, toy))
    under_way, go_on = threading.Event(), threading.Event()
    copied = held_sections._copied

    def held_up(*of_copy: Any) -> Any:
        under_way.set()
        assert go_on.wait(PATIENCE_S)
        return copied(*of_copy)

    monkeypatch.setattr(held_sections, "_copied", held_up)
    begun(copies, toy)
    assert under_way.wait(PATIENCE_S)
    closing = threading.Thread(target=goes.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive(), "the memory that is copied was freed"
    go_on.set()
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    copies.loaded()  # the first section copied, the others read
    assert rows_of(copies) == alone
    copies.close()
    asked.clear()
    loaded(comes, toy)
    assert sum(asked) == total and rows_of(comes) == alone
    comes.close()


def test_nothing_is_copied_from_a_card_that_failed(
    cards: FakeDriver, toy: Circuit, toy_params: Path, asked: list[int]
) -> None:
    total, (failed, other) = bytes_of_points(toy_params), targets_on(cards, toy_params, 2)
    loaded(failed, toy)
    failed._device._context.fault = DeviceFault("an NVLink broke", where="cuda:0", next="look")
    asked.clear()
    loaded(other, toy)
    assert sum(asked) == total and cards.calls["cuMemcpyPeerAsync"] == 0
    other.close()
    failed._device._context.fault = None  # the stand-in wants its memory back
    failed.close()


@pytest.mark.parametrize("good", [0, 5], ids=["at once", "later"])
def test_a_card_that_gets_something_else_than_was_sent_loads_itself_and_says_so(
    good: int,
    cards: FakeDriver,
    toy: Circuit,
    toy_params: Path,
    asked: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once for all sections: copies from that card are not tried again."""
    total, (first, other) = bytes_of_points(toy_params), targets_on(cards, toy_params, 2)
    right = rows_of(loaded(first, toy))
    asked.clear()
    copied = CudaDevice.copy_from

    def broken(device: CudaDevice, holder: CudaDevice, sent: Any, into: Any, **rest: Any) -> None:
        if cards.calls["cuMemcpyPeerAsync"] < good:
            copied(device, holder, sent, into, **rest)
        else:
            device.clear(into)

    monkeypatch.setattr(CudaDevice, "copy_from", broken)
    told: list[Event] = []
    begun(other, toy, told.append).loaded()
    assert rows_of(other) == right
    assert sum(asked) == total
    [notice] = [event for event in told if isinstance(event, Notice)]
    assert notice.level == "warning"
    assert "what cuda:1 copies from cuda:0 is not what was sent: it loads its points itself" in notice.text
    done = [event.done for event in told if isinstance(event, StageAdvanced)]
    assert done == sorted(done) and done[-1] == total
    for target in (first, other):
        target.close()


def test_what_a_card_gave_that_fails_meanwhile_is_thrown_away(
    cards: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    """In the middle of a section that another copies, whose progress goes on all the same."""
    failed, other = targets_on(cards, toy_params, 2)
    right = rows_of(loaded(failed, toy))
    told: list[int] = []

    def fail_then(event: Event) -> None:
        if isinstance(event, StageAdvanced):
            told.append(event.done)
            if len(told) == 1:
                points = failed._held["h"]
                failed._device.clear(points.x)
                failed._device.clear(points.y)
                failed._device._context.fault = DeviceFault("its memory broke", where="cuda:0", next="look")

    begun(other, toy, fail_then).loaded()
    assert rows_of(other) == right
    assert told == sorted(told) and told[-1] == bytes_of_points(toy_params)
    proven_idly(other, toy)
    other.close()
    failed._device._context.fault = None  # the stand-in wants its memory back
    failed.close()
    [stream] = cards.held.values()  # of the card that failed, which gave nothing back
    assert stream == "cuStreamDestroy"
    cards.held.clear()


def test_a_copy_that_fails_is_the_error_of_the_card_that_copies_and_leaves_nothing(
    cards: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    first, other = targets_on(cards, toy_params, 2)
    loaded(first, toy)
    cards.fail("cuMemcpyPeerAsync", "INVALID_VALUE", at=3)
    with pytest.raises(Exception, match="cuMemcpyPeerAsync") as raised:
        loaded(other, toy)
    assert raised.value.where == "cuda:1"  # type: ignore[attr-defined]
    other.close()
    proven_idly(first, toy)
    first.close()


def test_a_disk_that_fails_is_named_to_every_card(
    cards: FakeDriver, toy: Circuit, toy_params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = open_parameters(toy_params).first_byte("a", 100)
    fail_at(monkeypatch, place)
    targets = [begun(target, toy) for target in targets_on(cards, toy_params, 2)]
    for target in targets:
        with pytest.raises(ResourceError, match="Input/output error") as raised:
            target.loaded()
        assert raised.value.where == f"{toy_params}, byte {place:,}"
    for target in targets:
        target.close()


def test_sections_that_pass_over_one_card_are_read_and_the_others_copied(
    cards: FakeDriver, toy: Circuit, toy_params: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    passing: list[SectionName] = ["a", "b_g2"]
    streamed(monkeypatch, passing, 64)
    sizes, counts = dict(SECTIONS), open_parameters(toy_params).counts
    total, targets = bytes_of_points(toy_params), targets_on(cards, toy_params, 2)
    asked.clear()
    for target in targets:
        loaded(target, toy)
    assert sum(asked) == total - sum(sizes[name] * counts.of(name) for name in passing)
    for target in targets:
        proven_idly(target, toy)
        target.close()
