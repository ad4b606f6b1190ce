"""Many sectors through an engine on the card: upstream's proofs in every mode of the lock, kernels timed."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

import cuzk
from cuzk.engine.events import What
from cuzk.engine.jobs import Priority
from cuzk.events import Event, Notice
from cuzk.groth16.gpu.target import release
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.sector.claim import WINNING
from cuzk.timeline.analyze import analyze
from cuzk.timeline.read import parse_log
from cuzk.timeline.record import Timeline
from tests.gpu.upstream import POREP, UPSTREAM


@pytest.mark.parametrize("gpu_lock", ["narrow", "coarse", "none"])
def test_sectors_proven_at_once_give_upstreams_proofs(params: Path, gpu_lock: Any) -> None:
    log = io.BytesIO()
    settings = cuzk.EngineSettings(gpu_lock=gpu_lock)
    with cuzk.Engine(devices=["cuda:0"], params=params, settings=settings, recorder=Timeline(log)) as engine:
        jobs = [
            (file, engine.submit(POREP / file, insecure_rs=(13, 17), request_id=f"{file} {k}"))
            for k in range(4)
            for file in UPSTREAM
        ]
        for file, job in jobs:
            result = job.wait()
            assert result is not None and result.require_proof().hex() == UPSTREAM[file]
        [device] = engine.status().devices
        assert (device.wrong_proofs, device.strikes, device.set_aside) == (0, 0, None)
        assert device.memory.used <= device.memory.total
    report = analyze(parse_log(io.TextIOWrapper(io.BytesIO(log.getvalue())), name="log"))
    [figures] = report.runs[0].devices
    assert figures.calls == len(jobs)
    print(gpu_lock, f"busy {figures.busy.total} ms, kernels {figures.kernel_ms}, lock {figures.lock_ms}")
    assert figures.kernel_ms is not None and 0 < figures.kernel_ms <= figures.busy.total


def test_the_card_is_given_back_when_the_engine_ends(params: Path) -> None:
    def free() -> int:
        with CudaDevice("cuda:0") as card:
            return card.free_memory()

    release()
    before = free()
    with cuzk.Engine(devices=["cuda:0"], params=params) as engine:
        job = engine.submit(POREP / next(iter(UPSTREAM)))
        result = job.wait()
        assert result is not None and result.require_proof()
        assert free() < before
    assert free() >= before - (64 << 20)


def test_a_cancelled_job_leaves_the_card_usable(params: Path) -> None:
    with cuzk.Engine(devices=["cuda:0"], params=params) as engine:
        for k in range(20):
            job = engine.submit(POREP / "2k-random.json", request_id=f"cancelled {k}")
            assert job.wait(0.01 * k) is not None or job.cancel()
        good = engine.submit(POREP / "2k-random.json", insecure_rs=(13, 17)).wait()
        assert good is not None and good.require_proof().hex() == UPSTREAM["2k-random.json"]


def test_a_synthetic_sector_is_proven_under_parameters_that_never_leave_the_card(device: CudaDevice) -> None:
    """Every proof is verified before it is handed out."""
    sector = cuzk.synthesize(2048)
    with cuzk.Engine(devices=[device.name], synthetic=True) as engine:
        jobs = [engine.submit(sector, request_id=str(k)) for k in range(3)]
        results = [job.wait() for job in jobs]
    assert len({result.require_proof() for result in results if result is not None}) == 3


def test_an_urgent_proof_of_another_circuit_comes_in_between_two_kernels(device: CudaDevice) -> None:
    """Both circuits are on the card at once; meanwhile ends at most what was on its way out."""
    log = io.BytesIO()
    sector, election = cuzk.synthesize(2048), cuzk.synthesize(2048, kind=WINNING)
    with cuzk.Engine(devices=[device.name], synthetic=True, recorder=Timeline(log)) as engine:
        for source in (sector, election):
            result = engine.submit(source, request_id="first").wait()
            assert result is not None and result.require_proof()
        events = engine.events()
        jobs = [engine.submit(sector, request_id=f"usual {k}") for k in range(40)]
        assert jobs[4].wait() is not None
        urgent = engine.submit(election, request_id="urgent", priority=Priority.CRITICAL).wait()
        assert urgent is not None and urgent.require_proof()
        for job in jobs:
            result = job.wait()
            assert result is not None and result.require_proof()
        assert len(engine.status().devices[0].opened) == 2
    assert [event.what for event in events if event.what in (What.OPENED, What.CANNOT_OPEN)] == []
    [run] = parse_log(io.TextIOWrapper(io.BytesIO(log.getvalue())), name="log").runs
    names = [(event.name, event.job) for event in run]
    begin, end = names.index(("GPU_QUEUE", "urgent")), names.index(("GPU_END", "urgent"))
    meanwhile = [job for name, job in names[begin:end] if name == "GPU_END"]
    waited_ms = run[end].offset_ms - run[begin].offset_ms
    print(f"urgent: {waited_ms} ms from the queue to the end of its call, meanwhile {len(meanwhile)} others")
    assert len(meanwhile) <= 2  # one that computes, one that is in its last steps on the host


def test_a_card_that_lacks_memory_goes_on_with_a_smaller_plan_and_says_so(params: Path) -> None:
    heard: list[Event] = []
    with cuzk.Engine(devices=["cuda:0"], params=params, on_event=heard.append) as engine:
        first = engine.submit(POREP / "2k-random.json", insecure_rs=(13, 17), request_id="1").wait()
        assert first is not None and first.require_proof().hex() == UPSTREAM["2k-random.json"]
        used = engine.status().devices[0].memory.used
        assert engine.evict(2048, timeout_s=60)
        with CudaDevice("cuda:0") as other:
            other.allocate(other.free_memory() - used * 7 // 8, np.uint8)
            second = engine.submit(POREP / "2k-random.json", insecure_rs=(13, 17), request_id="2").wait()
            assert second is not None and second.require_proof().hex() == UPSTREAM["2k-random.json"]
    told = [event.text for event in heard if isinstance(event, Notice) and event.level == "warning"]
    assert any("free that it may take" in text or "opened again with at most" in text for text in told), told
