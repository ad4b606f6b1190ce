"""What is to be seen of a real card: the readings of its driver, and an efficiency that its log confirms."""

from __future__ import annotations

import io
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)
if find_spec("pynvml") is None or find_spec("prometheus_client") is None:
    pytest.skip(
        "the server's libraries are not installed: pip install 'cuzk[server]'", allow_module_level=True
    )

import cuzk
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.server.card_readings import CardReadings
from cuzk.server.gpu_time import GpuTimes
from cuzk.server.observation import Observation
from cuzk.timeline.analyze import analyze
from cuzk.timeline.read import parse_log
from cuzk.timeline.record import Timeline
from tests.gpu.upstream import POREP, UPSTREAM


def test_the_driver_tells_of_the_card_that_the_engine_computes_on(device: CudaDevice) -> None:
    with cuzk.Engine(devices=["cuda:0"]) as engine:
        cards = CardReadings(engine.cards)
        cards.start()
        end = time.monotonic() + 30
        while not cards.latest():
            assert time.monotonic() < end and cards.is_alive(), "the driver did not answer"
            time.sleep(0.05)
        reading = cards.latest()["cuda:0"]
        cards.close()
    print(reading)
    assert reading.name == device.card.name
    assert reading.memory_total_bytes is not None and reading.memory_total_bytes > 1 << 30
    assert reading.temperature_c is None or 10 < reading.temperature_c < 110


def test_efficiency_is_that_of_the_log_of_the_same_proofs(params: Path) -> None:
    log = io.BytesIO()
    observation = Observation(Timeline(log))
    with cuzk.Engine(devices=["cuda:0"], params=params, recorder=observation.recorder) as engine:
        observation.begin(engine)
        jobs = [engine.submit(POREP / file, request_id=f"{file} {k}") for k in range(4) for file in UPSTREAM]
        for job in jobs:
            result = job.wait()
            assert result is not None and result.proof is not None, result
        sight = observation.look()
        observation.close()
    [figures] = analyze(parse_log(io.TextIOWrapper(io.BytesIO(log.getvalue())), name="log")).runs[0].devices
    assert figures.kernel_ms is not None
    assert abs(sight.kernel_ms[0] - figures.kernel_ms) <= len(jobs)  # whole milliseconds, cut off by each
    shown = GpuTimes(sight.recent).of(0, 600_000, has_clock=True)
    assert shown is not None and shown.efficiency_percent is not None
    print(f"kernels {sight.kernel_ms[0]} ms, {shown.efficiency_percent} % of {shown.total_ms} ms")
    assert abs(shown.parts_ms["kernels"] - figures.kernel_ms) <= len(jobs)
