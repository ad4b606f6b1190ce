"""Requests as Curio fills them in, from vectors of all kinds."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from cuzk.server import proving_pb2 as pb
from tests.sector.other_vectors import document

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
C1 = VECTORS / "porep" / "2k-random.json"
KINDS = {"snap": pb.SNAP_DEALS_UPDATE, "window": pb.WINDOW_POST_PARTITION, "winning": pb.WINNING_POST}


def porep_request(data: bytes | None = None, **fields: Any) -> pb.SubmitProofRequest:
    """Of the sector in C1."""
    said = {
        "request_id": "porep-1000-7",
        "proof_kind": pb.POREP_SEAL_COMMIT,
        "sector_size": 2048,
        "registered_proof": 5,
        "priority": pb.NORMAL,
        "sector_number": 7,
        "miner_id": 1000,
    }
    data = C1.read_bytes() if data is None else data
    return pb.SubmitProofRequest(vanilla_proof=data, **{**said, **fields})


def pieces_request(name: str, **fields: Any) -> pb.SubmitProofRequest:
    """Of a vector of another kind: "snap-2k"."""
    said = document(name)
    given: dict[str, Any] = {
        "request_id": name,
        "proof_kind": KINDS[said["kind"]],
        "sector_size": said["sector_size"],
        "registered_proof": said["registered_proof"] or 0,
        "vanilla_proofs": [base64.b64decode(piece) for piece in said["vanilla_proofs"]],
        "miner_id": said["miner_id"],
        "partition_index": said.get("partition_index", 0),
    }
    for hexed in ("randomness", "comm_r_old", "comm_r_new", "comm_d_new"):
        given[hexed] = bytes.fromhex(said.get(hexed, ""))
    return pb.SubmitProofRequest(**{**given, **fields})


def spoilt_c1() -> bytes:
    """C1 with one byte of one label changed."""
    wrapper = json.loads(C1.read_bytes())
    inner = json.loads(base64.b64decode(wrapper["Phase1Out"]))
    proof = inner["vanilla_proofs"]["StackedDrg2KiBV1"][0][0]
    proof["replica_column_proofs"]["c_x"]["column"]["rows"][0][3] ^= 1
    wrapper["Phase1Out"] = base64.b64encode(json.dumps(inner).encode()).decode()
    return json.dumps(wrapper).encode()
