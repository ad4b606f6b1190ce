"""Points on their way to a card, over a stand-in driver: what is told; disks, files and memory that fail."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)


from cuzk.circuit.builder import Circuit
from cuzk.errors import ParameterError, ResourceError
from cuzk.events import Event, Notice, OnEvent, StageAdvanced, StageDone, StageStarted
from cuzk.groth16.gpu.points_on_card import PointsOfFile
from cuzk.groth16.gpu.target import GpuTarget, resident
from cuzk.groth16.parameters.params_file import SECTIONS, SectionName, open_parameters
from cuzk.groth16.prove import begin_proof
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_card import describe
from cuzk.kernels.gpu import points as points_module
from cuzk.kernels.gpu import sum_schedule
from tests.groth16.gpu.played_target import proven_idly, streamed, target_on
from tests.groth16.parameters.test_watched_file import fail_at
from tests.kernels.device.fake_cuda import FakeDriver
from tests.toy_circuit import toy_values


def test_the_bytes_of_the_points_are_counted_while_they_are_loaded(
    driver: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    target, events = target_on(driver, toy_params), list[Event]()
    target.prepare(events.append)
    target.opened(toy)
    target.loaded()
    counts = open_parameters(toy_params).counts
    total = 96 * (counts.h + counts.l + counts.a + counts.b) + 192 * counts.b
    started, *advanced, done = events
    assert started == StageStarted(name="load points", total=total, unit="bytes")
    assert isinstance(done, StageDone) and done.name == "load points"
    counted = [event.done for event in advanced if isinstance(event, StageAdvanced)]
    assert len(counted) == len(advanced) >= len(SECTIONS)
    assert counted == sorted(counted) and counted[-1] == total
    target.close()


def test_a_bad_point_is_named_where_the_points_are_needed(
    driver: FakeDriver, toy: Circuit, toy_params: Path, tmp_path: Path
) -> None:
    spoilt = bytearray(toy_params.read_bytes())
    spoilt[-192] |= 0x80  # the last point of b_g2
    path = tmp_path / "spoilt.params"
    path.write_bytes(spoilt)
    target = target_on(driver, path)
    target.prepare()
    target.opened(toy)
    last = open_parameters(path).counts.b - 1
    with pytest.raises(ParameterError, match=rf"b_g2\[{last}\].*flag bits") as raised:
        target.rows(toy, None)
    assert raised.value.where == f"{path}: b_g2[{last}]"
    target.close()
    assert driver.held == {}


def test_less_memory_than_it_may_take_is_told(driver: FakeDriver, toy: Circuit, toy_params: Path) -> None:
    heard: list[Any] = []
    points = PointsOfFile(open_parameters(toy_params))
    for limit, notices in ((1 << 50, 1), (None, 0)):
        heard.clear()
        target = GpuTarget(
            CpuDevice(threads=2), "cuda:0", lambda: CudaDevice("cuda:0", api=driver), points, limit
        )
        target.prepare(heard.append)
        target.opened(toy)
        target.loaded()
        told = [event.text for event in heard if isinstance(event, Notice)]
        assert len(told) == notices
        assert all("of 1024 TiB free that it may take: all points fit" in text for text in told)
        target.close()


def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (points_module, sum_schedule):
        monkeypatch.setattr(module, "DECODED_AT_ONCE", 16)


def at_the_start_of_loading(work: Callable[[], object]) -> OnEvent:
    """Does something when the plan has been made and the first points are about to be read."""
    return lambda event: work() if isinstance(event, StageStarted) else None


def copy_of(params: Path, folder: Path) -> Path:
    path = folder / "copy.params"
    path.write_bytes(params.read_bytes())
    return path


def test_a_failing_disk_is_named_with_the_byte_and_the_card_given_back(
    driver: FakeDriver, toy: Circuit, toy_params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_chunks(monkeypatch)
    target, place = target_on(driver, toy_params), open_parameters(toy_params).first_byte("a", 100)
    fail_at(monkeypatch, place)
    target.prepare()
    target.opened(toy)
    with pytest.raises(ResourceError, match="Input/output error") as raised:
        target.loaded()
    assert raised.value.where == f"{toy_params}, byte {place:,}"
    target.close()
    assert driver.held == {}


@pytest.mark.parametrize("sections", [[], ["a"]], ids=["resident", "passing"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: os.truncate(path, path.stat().st_size // 2), "was cut|changed or replaced"),
        (lambda path: copy_of(path, path.parent / "other").rename(path), "changed or replaced"),
        (Path.unlink, "the file is missing"),
    ],
    ids=["cut", "replaced", "removed"],
)
def test_a_file_that_changes_while_it_is_loaded_is_an_error_and_the_card_given_back(
    change: Callable[[Path], Any],
    said: str,
    sections: list[SectionName],
    driver: FakeDriver,
    toy: Circuit,
    toy_params: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streamed(monkeypatch, sections, 64)
    (tmp_path / "other").mkdir()
    path = copy_of(toy_params, tmp_path)
    target = target_on(driver, path)
    if not sections:
        target.prepare(at_the_start_of_loading(lambda: change(path)))
    target.prepare()
    target.opened(toy)
    with pytest.raises(ParameterError, match=said) as raised:
        target.loaded()
        change(path)
        proven_idly(target, toy)
    assert str(path) in str(raised.value.where)
    target.close()
    assert driver.held == {}


def test_memory_that_somebody_takes_between_plan_and_use_is_an_error_with_numbers(
    driver: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    def shrink() -> None:
        driver.taken = (8 << 30) - driver.used_bytes - 1000

    target = target_on(driver, toy_params)
    target.prepare(at_the_start_of_loading(shrink))
    target.opened(toy)
    with pytest.raises(ResourceError, match=r"too little free memory: asked for .* has 1000 B of 8 GiB free"):
        target.loaded()
    assert not target.is_usable
    target.close()
    assert driver.held == {}


def test_an_interrupted_load_ends_at_once_and_leaves_nothing_on_the_card(
    driver: FakeDriver, toy: Circuit, toy_params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_chunks(monkeypatch)
    started, read, preadv = threading.Event(), list[int](), os.preadv

    def slow(descriptor: int, buffers: Any, offset: int) -> int:
        read.append(offset)
        started.set()
        assert target._closing.wait(60)
        time.sleep(0.1)  # in which whoever loads has long heard of it
        return preadv(descriptor, buffers, offset)

    parameters = open_parameters(toy_params)
    target = target_on(driver, toy_params)
    monkeypatch.setattr(os, "preadv", slow)
    monkeypatch.setattr(GpuTarget, "on_card", lambda *_: target)
    with (
        pytest.raises(KeyboardInterrupt),
        resident(target.host, describe(driver, 0), parameters) as held,
    ):
        held.prepare()
        held.opened(toy)
        started.wait()
        raise KeyboardInterrupt
    assert driver.held == {}
    assert len(read) <= 2 * 6, "of 107 chunks; those that were under way were waited for"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("cuzk")]


@pytest.mark.parametrize("section", ["h", "a"])
def test_an_interrupted_pass_waits_for_no_more_points(
    section: SectionName,
    driver: FakeDriver,
    toy: Circuit,
    toy_params: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streamed(monkeypatch, [section], 64)
    small_chunks(monkeypatch)
    target = target_on(driver, toy_params)
    target.prepare()
    target.opened(toy)
    told: list[tuple[int, int]] = []

    def interrupt(done: int, total: int) -> None:
        told.append((done, total))
        raise KeyboardInterrupt

    assignment = target.assign(toy, toy_values(1, 2))
    h = target.quotient(target.rows(toy, assignment), lambda done, total: None)
    with pytest.raises(KeyboardInterrupt):
        if section == "h":
            target.sum_of_h(h, interrupt)
        target.sum_over(section, toy, assignment)(interrupt)
    assert told == [(64, open_parameters(toy_params).counts.of(section))]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("cuzk slices")]
    target.close()
    assert driver.held == {}


def test_a_pass_tells_how_many_points_have_passed_and_what_the_card_took(
    driver: FakeDriver, toy: Circuit, toy_params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed(monkeypatch, ["h", "l"], 100)
    target, events = target_on(driver, toy_params), list[Event]()
    target.prepare()
    target.opened(toy)
    begin_proof(
        target, open_parameters(toy_params), toy, target.assign(toy, toy_values(1, 2)), on_event=events.append
    )
    passed = [(event.name, event.done, event.total) for event in events if isinstance(event, StageAdvanced)]
    assert passed == [
        *(("transforms", done, 6) for done in range(1, 7)),
        *(("sum h", done, 511) for done in (100, 200, 300, 400, 500, 511)),
        *(("sum l", done, 313) for done in (100, 200, 300, 313)),
    ]
    spans, stages = 0.25, target.stages_ms()  # of the stand-in's clock, each
    assert list(stages) == [
        "witness", "rows", *(f"transform {k}" for k in range(6)),
        "sum a", "sum b_g1", "sum b_g2", "sum h", "sum l",
    ]  # fmt: skip
    assert stages["sum h"] == 6 * spans and stages["sum l"] == 4 * spans
    assert stages["sum a"] == spans
    assert target.computed_ms() == sum(stages.values())
    target.close()
