"""Parameters that vanish under a daemon that uses them: it says so, and goes on when they are back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import cuzk
from cuzk.server import proving_pb2 as pb
from cuzk.server.client import Client
from tests.server.processes import READY, served
from tests.server.requests import VECTORS, porep_request

LONG_S = 900.0  # the first proof on a machine compiles kernels


@pytest.mark.slow
def test_parameters_may_be_deleted_while_a_daemon_runs(
    sector_params: Path, home_of_old: Path, tmp_path: Path
) -> None:
    folder, address = tmp_path / "params", f"unix://{tmp_path / 'cuzk.sock'}"
    folder.mkdir()
    files = [path for path in sector_params.iterdir() if path.is_file()]

    def put_back() -> None:
        for path in files:
            os.link(path, folder / path.name)

    def delete() -> None:
        for path in files:
            (folder / path.name).unlink()

    put_back()
    options = ("--listen", address, "--device", "cpu", "--params", str(folder))
    with served(*options, patience_s=LONG_S) as process, Client(address) as client:
        process.line(READY)

        def prove(request_id: str) -> pb.AwaitProofResponse:
            return client.prove(porep_request(request_id=request_id))

        def is_proof(answer: pb.AwaitProofResponse) -> bool:
            c1 = VECTORS / "porep" / "2k-random.json"
            return cuzk.verify(c1, answer.proof, params=sector_params).partitions == 1

        assert is_proof(prove("before"))
        delete()
        assert is_proof(prove("opened before"))  # what is open stays readable
        assert client.evict("porep-2k").was_loaded
        answer = prove("without")
        assert answer.status == pb.AwaitProofResponse.FAILED, answer
        assert files[0].name.split(".")[0] in answer.error_message, answer.error_message
        put_back()
        assert is_proof(prove("again"))
        process.signal(signal.SIGTERM)
        assert process.ends() == 0
