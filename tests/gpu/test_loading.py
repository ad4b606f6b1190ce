"""Points on their way to a real card: what is told; whatever ends a load early gives the card back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

import cuzk
from cuzk.errors import ParameterError, ResourceError
from cuzk.events import Event, OnEvent, StageAdvanced, StageDone, StageStarted, ignore
from cuzk.groth16.gpu.target import release
from cuzk.groth16.parameters.params_file import open_parameters
from cuzk.kernels.device.cuda import CudaDevice
from tests.gpu.upstream import POREP, UPSTREAM
from tests.groth16.parameters.test_watched_file import fail_at

C1 = next(iter(UPSTREAM))
LOADING = "load points"
_LOST = 64 << 20  # bytes that the driver may keep for itself


def prove(params: Path, on_event: OnEvent = ignore, **options: Any) -> str:
    whole = {"device": "cuda:0", "insecure_rs": (13, 17), **options}
    return cuzk.prove(POREP / C1, params=params, on_event=on_event, **whole).proof.hex()


def free_memory() -> int:
    with CudaDevice("cuda:0") as card:
        return card.free_memory()


def file_in(params: Path) -> Path:
    [path] = params.glob("*.params")
    return path


def at_the_start(work: Callable[[], object]) -> OnEvent:
    """Does something when the first points are about to be read."""
    return lambda event: work() if isinstance(event, StageStarted) and event.name == LOADING else None


def test_a_load_tells_how_many_bytes_are_there(params: Path) -> None:
    release()
    events: list[Event] = []
    assert prove(params, events.append) == UPSTREAM[C1]
    counts = open_parameters(file_in(params)).counts
    total = 96 * (counts.h + counts.l + counts.a + counts.b) + 192 * counts.b
    told = [event.done for event in events if isinstance(event, StageAdvanced) and event.name == LOADING]
    assert told == sorted(told) and told[-1] == total and len(told) > 10
    [took] = [event.seconds for event in events if isinstance(event, StageDone) and event.name == LOADING]
    print(f"{total / 1e9:.2f} GB in {took:.3f} s, {total / took / 1e9:.1f} GB/s")


def test_passes_tell_how_many_points_have_passed(params: Path) -> None:
    release()
    events: list[Event] = []
    assert prove(params, events.append, vram_limit=7 << 28) == UPSTREAM[C1]
    told = [event.done for event in events if isinstance(event, StageAdvanced) and event.name == "sum h"]
    assert told == sorted(told) and told[-1] == open_parameters(file_in(params)).counts.h


def test_an_interrupted_load_gives_the_card_back(params: Path) -> None:
    release()
    before = free_memory()

    def interrupt(event: Event) -> None:
        if isinstance(event, StageAdvanced) and event.name == LOADING:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prove(params, interrupt)
    assert free_memory() >= before - _LOST
    assert prove(params) == UPSTREAM[C1]


def test_a_failing_disk_is_named_and_gives_the_card_back(
    params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release()
    before, path = free_memory(), file_in(params)
    place = open_parameters(path).first_byte("l", 1_000_000)
    with monkeypatch.context() as patch:
        fail_at(patch, place)
        with pytest.raises(ResourceError, match="Input/output error") as raised:
            prove(params)
    assert raised.value.where == f"{path}, byte {place:,}"
    assert free_memory() >= before - _LOST
    assert prove(params) == UPSTREAM[C1]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: os.truncate(path, path.stat().st_size // 2),
        lambda path: shutil.copy(path, path.with_suffix(".new")) and path.with_suffix(".new").rename(path),
        Path.unlink,
    ],
    ids=["cut", "replaced", "removed"],
)
def test_a_file_that_changes_while_it_is_loaded_is_an_error(
    change: Callable[[Path], Any], params: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release()
    before, folder = free_memory(), tmp_path / "parameters"
    shutil.copytree(params, folder)
    with pytest.raises(ParameterError, match="was cut|changed or replaced|is missing"):
        prove(folder, at_the_start(lambda: change(file_in(folder))))
    assert free_memory() >= before - _LOST
    assert prove(params) == UPSTREAM[C1]
