"""A sector proven over gRPC as Curio asks for it, on the CPU: every part of the daemon is the real one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest

import cuzk
from cuzk.server import proving_pb2 as pb
from cuzk.server.address import Address
from cuzk.server.daemon import Daemon, DaemonSettings
from cuzk.server.intake import read_request
from cuzk.server.sectors import SectorProver
from tests.server.hall import Caller, channel_to, refused, until
from tests.server.requests import C1, porep_request, spoilt_c1

LONG_S = 600.0


@pytest.mark.slow
def test_a_sector_is_proven_over_grpc_as_curio_asks_for_it(
    sector_params: Path, home_of_old: Path, tmp_path: Path
) -> None:
    data = C1.read_bytes()

    async def scenario() -> bytes:
        engine = cuzk.Engine(params=sector_params, devices=["cpu"])
        settings = DaemonSettings(
            listen=Address(path=tmp_path / "cuzk.sock"), preload=["porep-2k"], journal=tmp_path / "journal"
        )
        daemon = Daemon(settings, SectorProver(engine), read_request)
        task = asyncio.create_task(daemon.run())
        await until(lambda: daemon.bound != [])
        async with channel_to(f"unix:{tmp_path / 'cuzk.sock'}") as channel:
            caller = Caller(channel)
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
        daemon.end()
        assert await asyncio.wait_for(task, LONG_S)
        proof: bytes = answer.result.proof
        return proof

    proof = asyncio.run(scenario())
    assert len(proof) == 192
    assert cuzk.verify(C1, proof, params=sector_params).partitions == 1
