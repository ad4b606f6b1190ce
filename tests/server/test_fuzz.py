"""Requests that a generator spoilt: refused as the client's fault, or provable. `fuzz` takes longer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest

from cuzk.errors import InputError
from cuzk.server import proving_pb2 as pb
from cuzk.server.contract import SERVICE
from cuzk.server.intake import read_request
from tests.server.fakes import FakeProver
from tests.server.fuzz import Findings, fuzz, numbers_for
from tests.server.hall import SOON_S, refused, running
from tests.server.mutations import good_requests, mutant
from tests.server.requests import porep_request


def test_spoilt_requests_are_refused_or_provable(compiled: None) -> None:
    found = Findings()
    fuzz(7, numbers_for(3.0), found)
    assert found.wrong == []
    assert found.refused.total() > found.accepted > 0 or found.inputs < 50


@pytest.mark.slow
def test_spoilt_requests_are_refused_or_provable_for_a_minute(compiled: None) -> None:
    found = Findings()
    fuzz(8, numbers_for(60.0), found)
    assert found.wrong == [] and found.refused.total() > found.accepted > 0


def test_the_same_number_is_the_same_request() -> None:
    good = good_requests()
    assert [mutant(Random(f"1-{k}"), good) for k in range(40)] == [
        mutant(Random(f"1-{k}"), good) for k in range(40)
    ]


def test_a_proof_that_would_not_verify_would_be_found(
    compiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the check lets through is judged by the circuit's own rows."""
    from tests.server import fuzz as module

    def unchecked(data: bytes, check: bool) -> Any:
        return read_request(data, False)

    monkeypatch.setattr(module, "read_request", unchecked)
    found = Findings()
    fuzz(7, iter(range(40)), found)
    assert any("does not hold" in text for text in found.wrong)


def test_spoilt_requests_are_invalid_arguments_over_grpc_and_the_daemon_lives(
    compiled: None, tmp_path: Path
) -> None:
    def is_refused(data: bytes) -> bool:
        try:
            read_request(data, True)
        except InputError:
            return True
        return False

    good = good_requests()
    made = [mutant(Random(f"9-{k}"), good) for k in range(80)]
    bad = [data for data in made if is_refused(data)]
    assert len(bad) > 40

    async def scenario() -> None:
        async with running(FakeProver(), read=read_request, folder=tmp_path) as (daemon, caller):
            prove = caller.channel.unary_unary(f"/{SERVICE}/Prove")
            for data in bad:
                code, text = await refused(prove(data, timeout=SOON_S))
                assert code is grpc.StatusCode.INVALID_ARGUMENT and text
            assert daemon.book.rejected == len(bad)
            whole = pb.ProveRequest(submit=porep_request()).SerializeToString()
            assert (await asyncio.to_thread(read_request, whole, True)).request_id == "porep-1000-7"
            assert (await caller.call("GetStatus")).total_proofs_failed == 0

    asyncio.run(scenario())
