"""Whole sectors proven on the card, to the byte of upstream's proofs; bad points; too little memory."""

from __future__ import annotations

import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

import cuzk
from cuzk.errors import ParameterError, ResourceError
from cuzk.events import Event, Notice, StageDone
from cuzk.groth16.gpu.points_on_card import PointsOfFile
from cuzk.groth16.gpu.target import GpuTarget, _kept, release
from cuzk.groth16.parameters.params_file import SECTIONS, ParameterFile, open_parameters
from cuzk.kernels.curve import G1
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.modulus import FQ, FR
from cuzk.proofs.kinds import circuit_of
from cuzk.reports.plan import explain
from cuzk.sector.porep.shape import porep_shape
from tests.gpu.upstream import POREP, UPSTREAM

C1 = "2k-random.json"


def prove(params: Path, file: str = C1, device: str = "cuda:0", events: list[Event] | None = None) -> str:
    said = [] if events is None else events
    result = cuzk.prove(
        POREP / file, params=params, device=device, insecure_rs=(13, 17), on_event=said.append
    )
    return result.proof.hex()


@pytest.mark.parametrize("file", UPSTREAM)
def test_a_proof_is_upstreams_to_the_byte(params: Path, file: str) -> None:
    assert prove(params, file) == UPSTREAM[file]


def test_auto_takes_the_card_and_says_so(params: Path) -> None:
    events: list[Event] = []
    assert prove(params, device="auto", events=events) == UPSTREAM[C1]
    assert any("computing on cuda:0" in event.text for event in events if isinstance(event, Notice))


def test_the_card_goes_by_all_its_names(params: Path, device: CudaDevice) -> None:
    for name in (device.card.pci_id, device.card.uuid, f"GPU-{device.card.uuid}"):
        assert prove(params, device=name) == UPSTREAM[C1]


def test_the_points_stay_on_the_card_from_proof_to_proof(params: Path) -> None:
    release()
    seconds, stages = [], []
    for _ in range(3):
        events: list[Event] = []
        begin = time.perf_counter()
        assert prove(params, events=events) == UPSTREAM[C1]
        seconds.append(time.perf_counter() - begin)
        stages.append({event.name: event.seconds for event in events if isinstance(event, StageDone)})
    print([f"{1e3 * one:.0f} ms" for one in seconds], stages[-1])
    assert min(seconds[1:]) < seconds[0]


def test_fresh_proofs_differ_and_hold(params: Path) -> None:
    proofs = [cuzk.prove(POREP / C1, params=params, device="cuda:0").proof for _ in range(2)]
    assert proofs[0] != proofs[1]
    for proof in proofs:
        assert cuzk.verify(POREP / C1, proof, params=params).partitions == 1


def test_rows_that_are_checked_change_no_byte(params: Path) -> None:
    events: list[Event] = []
    proof = cuzk.prove(
        POREP / C1, params=params, device="cuda:0", insecure_rs=(13, 17), check=True, on_event=events.append
    )
    assert proof.proof.hex() == UPSTREAM[C1]
    [took] = [
        event.seconds
        for event in events
        if isinstance(event, StageDone) and event.name == "check of the rows"
    ]
    print(f"check of the rows: {1e3 * took:.1f} ms")


# ---- points that must not pass ----


def outside_the_subgroup() -> bytes:
    """A point of G1's curve that r does not kill."""
    x = 0
    while True:
        x += 1
        square = (x**3 + 4) % FQ.p
        y = pow(square, (FQ.p + 1) // 4, FQ.p)
        if y * y % FQ.p == square and not has_order_r((x, y)):
            return x.to_bytes(48, "big") + y.to_bytes(48, "big")


def has_order_r(point: Any) -> bool:
    return G1.multiply(FR.p - 1, point) == G1.negate(point)


@pytest.fixture
def spoilt(params: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the parameters, to be spoilt, that was never used before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(params, tmp_path / "parameters")
    return tmp_path / "parameters"


def offset_of(parameters: ParameterFile, section: str, index: int) -> int:
    """Where a point lies in its file."""
    at = parameters.counts.key_bytes
    for name, size in SECTIONS:
        at += 4
        if name == section:
            return at + size * index
        at += size * parameters.counts.of(name)
    raise AssertionError(section)


def test_bad_points_are_named_and_good_ones_prove_afterwards(spoilt: Path) -> None:
    [path] = spoilt.glob("*.params")
    parameters = open_parameters(path)
    off_the_curve, stranger = b"\x01" * 96, outside_the_subgroup()
    cases = [
        ("h", parameters.counts.h - 1, off_the_curve, "is not on the curve", True),
        ("b_g1", 12345, b"\x40" + bytes(95), "is the identity", True),
        ("l", 0, FQ.p.to_bytes(48, "big") + bytes(48), "not below the field modulus", True),
        ("a", 4711, stranger, "outside the subgroup", False),
        ("h", 99, stranger, "outside the subgroup", False),
    ]
    for section, index, bad, reason, is_named in cases:
        with path.open("r+b") as file:
            at = offset_of(parameters, section, index)
            file.seek(at)
            good = file.read(len(bad))
            file.seek(at)
            file.write(bad)
        with pytest.raises(ParameterError, match=reason) as raised:
            prove(spoilt)
        place = f"{path}: {section}" + (f"[{index}]" if is_named else "")
        assert raised.value.where == place
        with path.open("r+b") as file:
            file.seek(at)
            file.write(good)
    events: list[Event] = []
    assert prove(spoilt, events=events) == UPSTREAM[C1]
    assert any("first use" in event.text for event in events if isinstance(event, Notice))
    events = []
    assert prove(spoilt, events=events) == UPSTREAM[C1]
    assert not any("first use" in event.text for event in events if isinstance(event, Notice))


# ---- too little memory ----


@pytest.fixture
def parameters(params: Path) -> ParameterFile:
    [path] = params.glob("*.params")
    return open_parameters(path)


@pytest.mark.parametrize("limit", [64 << 20, 1 << 30])
def test_too_little_memory_is_told_with_the_plan_and_nothing_is_left_on_the_card(
    parameters: ParameterFile, params: Path, limit: int
) -> None:
    release()
    cards: list[CudaDevice] = []

    def small() -> CudaDevice:
        cards.append(CudaDevice("cuda:0", memory_limit=limit))
        return cards[-1]

    target = GpuTarget(CpuDevice(), "cuda:0", small, PointsOfFile(parameters))
    target.prepare()
    with pytest.raises(ResourceError, match="of the GPU's memory") as raised:
        target.opened(circuit_of(porep_shape(2048)))
    assert "the plan: points of h" in str(raised.value)
    with pytest.raises(ResourceError):
        target.rows(circuit_of(porep_shape(2048)), None)
    target.close()
    assert [card.memory.used_bytes for card in cards] == [0]
    assert prove(params) == UPSTREAM[C1]


def test_memory_that_runs_out_midway_goes_back(
    parameters: ParameterFile, params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another process takes what was free when the plan was made."""
    release()
    card = CudaDevice("cuda:0")
    points = PointsOfFile(parameters)
    target = GpuTarget(CpuDevice(), "cuda:0", lambda: card, points)
    monkeypatch.setattr(card.memory, "limit_bytes", 1 << 30)
    monkeypatch.setattr(card, "free_memory", lambda: 8 << 30)
    target.prepare()
    target.opened(circuit_of(porep_shape(2048)))
    with pytest.raises(ResourceError, match="budget of GPU memory"):
        target.rows(circuit_of(porep_shape(2048)), None)
    target.close()
    assert card.memory.used_bytes == 0
    assert prove(params) == UPSTREAM[C1]


@pytest.mark.parametrize("vram_limit", [6 << 30, 3 << 30, 2 << 30, 7 << 28])
def test_less_memory_means_passes_and_slices_and_the_same_proof(params: Path, vram_limit: int) -> None:
    release()
    explained = explain(porep_shape(2048), device="cuda:0", vram_limit=vram_limit).card
    proof = cuzk.prove(
        POREP / C1, params=params, device="cuda:0", vram_limit=vram_limit, insecure_rs=(13, 17)
    ).proof
    assert proof.hex() == UPSTREAM[C1]
    target = _kept.target
    assert target is not None
    plan = target._planned.result()
    assert explained is not None and plan.sections == explained.sections
    streamed = [section.section for section in plan.sections if section.slice_points]
    print(f"{vram_limit >> 20} MiB: {len(plan.of_section('h').msm.passes)} passes, streamed {streamed}")
    assert streamed or len(plan.of_section("h").msm.passes) > 1
    assert target._device.memory.peak_bytes <= vram_limit - plan.facts.reserve_bytes
    release()


def test_the_card_holds_what_its_plan_says_and_the_driver_no_more_than_the_reserve(params: Path) -> None:
    release()
    for _ in range(2):
        assert prove(params) == UPSTREAM[C1]
    target = _kept.target
    assert target is not None
    plan, memory = target._planned.result(), target._device.memory
    assert memory.peak_bytes == memory.used_bytes == plan.bytes_in("proving")
    free, _ = memory.free_and_total()
    beside = plan.facts.free_bytes - free - memory.used_bytes
    print(f"beside arrays the driver took {beside >> 20} MiB of {plan.facts.reserve_bytes >> 20} reserved")
    assert beside <= plan.facts.reserve_bytes
    explanation = explain(porep_shape(2048), device="cuda:0")
    assert explanation.card is not None and explanation.card.sections == plan.sections
    release()
