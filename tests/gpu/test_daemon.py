"""The daemon on a card: proofs of every kind at once, as Curio asks for them."""

from __future__ import annotations

import asyncio
import io
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)
if any(find_spec(name) is None for name in ("aiohttp", "grpc", "prometheus_client")):
    pytest.skip(
        "the server's libraries are not installed: pip install 'cuzk[server]'", allow_module_level=True
    )

import cuzk
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.server.observation import Observation
from cuzk.timeline.record import Timeline
from tests.server.real import LONG_S, serving
from tests.server.requests import pieces_request, porep_request

CIRCUITS = {"porep-2k", "snap-2k", "wpost-2k", "winning-2k"}


def test_proofs_of_every_kind_at_once_come_back_verified(device: CudaDevice, tmp_path: Path) -> None:
    """Under parameters made in the card's memory; an engine hands out nothing that does not verify."""
    submits = [
        submit
        for k in range(3)
        for submit in (
            porep_request(request_id=f"porep {k}"),
            pieces_request("snap-2k", request_id=f"snap {k}"),
            pieces_request("window-2k", request_id=f"window {k}"),
            pieces_request("winning-2k", request_id=f"winning {k}"),
        )
    ]

    async def scenario() -> None:
        observation = Observation(Timeline(io.BytesIO()))
        engine = cuzk.Engine(devices=["cuda:0"], synthetic=True, recorder=observation.recorder)
        async with serving(engine, tmp_path, observation=observation) as (_, caller):
            answers = await asyncio.gather(*(caller.prove(one, timeout=LONG_S) for one in submits))
            for submit, answer in zip(submits, answers, strict=True):
                result = answer.result
                assert (result.status, result.job_id) == (1, submit.request_id), result.error_message
                assert len(result.proof) == 192 and result.gpu_compute_ms > 0
            status = await caller.call("GetStatus")
            assert (status.total_proofs_completed, status.total_proofs_failed) == (len(submits), 0)
            assert {srs.circuit_id for srs in status.loaded_srs} <= CIRCUITS
            text = (await caller.call("GetMetrics")).prometheus_text
            assert 'cuzk_proofs_completed{proof_kind="winning_post"} 3' in text

    asyncio.run(scenario())
