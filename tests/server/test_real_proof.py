"""A sector proven over gRPC as Curio asks for it, on the CPU: every part of the daemon is the real one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest

import cuzk
from cuzk.server import proving_pb2 as pb
from tests.server.hall import refused
from tests.server.real import LONG_S, serving
from tests.server.requests import C1, VECTORS, pieces_request, porep_request, spoilt_c1


@pytest.mark.slow
def test_a_sector_is_proven_over_grpc_as_curio_asks_for_it(
    sector_params: Path, home_of_old: Path, tmp_path: Path
) -> None:
    data = C1.read_bytes()

    async def scenario() -> bytes:
        engine = cuzk.Engine(params=sector_params, devices=["cpu"])
        async with serving(engine, tmp_path, preload=["porep-2k"]) as (_, caller):
            answer = await caller.prove(porep_request(data), timeout=LONG_S)
            assert (answer.result.status, answer.result.job_id) == (1, "porep-1000-7")
            assert (await caller.prove(porep_request(data))).result.proof == answer.result.proof
            bad = [
                (porep_request(data, miner_id=1001), "replica_id is not that of miner 1001"),
                (porep_request(data, sector_size=4096), "sector_size is 4096"),
                (porep_request(data[:-100]), "porep-1000-7: the file is not whole JSON"),
                (porep_request(spoilt_c1()), "partition 0, challenge 0"),
                (porep_request(b""), "vanilla_proof is empty"),
            ]
            for submit, says in bad:
                code, text = await refused(caller.prove(submit, timeout=LONG_S))
                assert code is grpc.StatusCode.INVALID_ARGUMENT and says in text, text
            other = pb.SubmitProofRequest(proof_kind=pb.PROOF_KIND_UNSPECIFIED)
            assert (await refused(caller.prove(other)))[0] is grpc.StatusCode.INVALID_ARGUMENT
            status = await caller.call("GetStatus")
            assert [srs.circuit_id for srs in status.loaded_srs] == ["porep-2k"]
            proof: bytes = answer.result.proof
            return proof

    proof = asyncio.run(scenario())
    assert len(proof) == 192
    assert cuzk.verify(C1, proof, params=sector_params).partitions == 1


@pytest.mark.slow
def test_a_winning_proof_of_spacetime_is_proven_over_grpc_as_curio_asks_for_it(
    compiled: None, own_home: Path
) -> None:
    params = own_home / "parameters"
    cuzk.generate_parameters(2048, kind="winning", trapdoors=(2, 3, 5, 7, 11), out=params)

    async def scenario() -> bytes:
        engine = cuzk.Engine(params=params, devices=["cpu"])
        async with serving(engine, own_home) as (_, caller):
            submit = pieces_request("winning-2k")
            result = (await caller.prove(submit, timeout=LONG_S)).result
            assert result.status == 1, result.error_message
            other = pieces_request("winning-2k", randomness=bytes(32))
            code, text = await refused(caller.prove(other, timeout=LONG_S))
            assert code is grpc.StatusCode.INVALID_ARGUMENT and "winning-2k" in text
            proof: bytes = result.proof
            return proof

    proof = asyncio.run(scenario())
    assert len(proof) == 192
    assert cuzk.verify(VECTORS / "other" / "winning-2k.json", proof, params=params).partitions == 1
