"""A sector proven over gRPC as Curio asks for it, on the CPU: every part of the daemon is the real one."""

from __future__ import annotations

import asyncio
import base64
import json
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

POREP = Path(__file__).resolve().parents[1] / "vectors" / "porep"
C1 = POREP / "2k-random.json"
LONG_S = 600.0


def request_of(data: bytes, **fields: object) -> pb.SubmitProofRequest:
    """As Curio fills it in for a sector of 2 KiB."""
    said = {
        "request_id": "porep-1000-7",
        "proof_kind": pb.POREP_SEAL_COMMIT,
        "sector_size": 2048,
        "registered_proof": 5,
        "priority": pb.NORMAL,
        "sector_number": 7,
        "miner_id": 1000,
    }
    return pb.SubmitProofRequest(vanilla_proof=data, **{**said, **fields})


def spoilt(data: bytes) -> bytes:
    """The same Commit 1 output with one byte of one label changed."""
    wrapper = json.loads(data)
    inner = json.loads(base64.b64decode(wrapper["Phase1Out"]))
    [[proof]] = [partition[:1] for partition in inner["vanilla_proofs"]["StackedDrg2KiBV1"][:1]]
    proof["replica_column_proofs"]["c_x"]["column"]["rows"][0][3] ^= 1
    wrapper["Phase1Out"] = base64.b64encode(json.dumps(inner).encode()).decode()
    return json.dumps(wrapper).encode()


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
            answer = await caller.prove(request_of(data), timeout=LONG_S)
            assert (answer.result.status, answer.result.job_id) == (1, "porep-1000-7")
            assert (await caller.prove(request_of(data))).result.proof == answer.result.proof
            bad = [
                (request_of(data, miner_id=1001), "replica_id is not that of miner 1001"),
                (request_of(data, sector_size=4096), "sector_size is 4096"),
                (request_of(data[:-100]), "porep-1000-7: the file is not whole JSON"),
                (request_of(spoilt(data)), "partition 0, challenge 0"),
                (request_of(b""), "vanilla_proof is empty"),
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
