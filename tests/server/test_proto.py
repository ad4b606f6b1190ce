"""What is checked in beside proving.proto is what it says, and that is the contract."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cuzk.server import proving_pb2 as pb

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "cuzk" / "server"

#: Number, name, type of every field that existing clients know; repeated ones with a star.
FIELDS = {
    "SubmitProofRequest": "1 request_id string, 2 proof_kind ProofKind, 3 sector_size uint64, "
    "4 registered_proof uint64, 5 priority Priority, 10 vanilla_proof bytes, 11 vanilla_proofs bytes*, "
    "20 sector_number uint64, 21 miner_id uint64, 22 randomness bytes, 23 partition_index uint32, "
    "30 comm_r_old bytes, 31 comm_r_new bytes, 32 comm_d_new bytes",
    "SubmitProofResponse": "1 job_id string, 2 queue_position uint32, 3 assigned_gpu string",
    "AwaitProofRequest": "1 job_id string, 2 timeout_ms uint64",
    "AwaitProofResponse": "1 job_id string, 2 status Status, 3 proof bytes, 4 error_message string, "
    "10 queue_wait_ms uint64, 11 srs_load_ms uint64, 12 synthesis_ms uint64, 13 gpu_compute_ms uint64, "
    "14 total_ms uint64",
    "ProveRequest": "1 submit SubmitProofRequest",
    "ProveResponse": "1 result AwaitProofResponse",
    "CancelProofRequest": "1 job_id string",
    "CancelProofResponse": "1 was_running bool",
    "GetStatusRequest": "",
    "GetStatusResponse": "1 gpus GPUStatus*, 2 loaded_srs SRSStatus*, 3 queues QueueStatus*, "
    "4 total_proofs_completed uint64, 5 total_proofs_failed uint64, 6 uptime_seconds uint64, "
    "7 pinned_memory_bytes uint64, 8 pinned_memory_limit_bytes uint64",
    "GPUStatus": "1 ordinal uint32, 2 name string, 3 vram_total_bytes uint64, 4 vram_free_bytes uint64, "
    "5 current_job_id string, 6 current_proof_kind string",
    "SRSStatus": "1 circuit_id string, 2 tier Tier, 3 size_bytes uint64, 4 ref_count uint32",
    "QueueStatus": "1 proof_kind string, 2 pending uint32, 3 in_progress uint32",
    "PreloadSrsRequest": "1 circuit_id string",
    "PreloadSrsResponse": "1 already_loaded bool, 2 load_time_ms uint64",
    "EvictSrsRequest": "1 circuit_id string",
    "EvictSrsResponse": "1 was_loaded bool, 2 freed_bytes uint64",
    "GetMetricsRequest": "",
    "GetMetricsResponse": "1 prometheus_text string",
}
ENUMS = {
    "ProofKind": "PROOF_KIND_UNSPECIFIED=0 POREP_SEAL_COMMIT=1 SNAP_DEALS_UPDATE=2"
    " WINDOW_POST_PARTITION=3 WINNING_POST=4",
    "Priority": "PRIORITY_UNSPECIFIED=0 LOW=1 NORMAL=2 HIGH=3 CRITICAL=4",
    "Status": "UNKNOWN=0 COMPLETED=1 FAILED=2 CANCELLED=3 TIMEOUT=4",
    "Tier": "HOT=0 WARM=1 COLD=2",
}
METHODS = """SubmitProof SubmitProofRequest SubmitProofResponse
AwaitProof AwaitProofRequest AwaitProofResponse
Prove ProveRequest ProveResponse
CancelProof CancelProofRequest CancelProofResponse
GetStatus GetStatusRequest GetStatusResponse
GetMetrics GetMetricsRequest GetMetricsResponse
PreloadSRS PreloadSrsRequest PreloadSrsResponse
EvictSRS EvictSrsRequest EvictSrsResponse"""
_TYPES = {4: "uint64", 8: "bool", 9: "string", 12: "bytes", 13: "uint32"}


def described(field: object) -> str:
    named = field.message_type or field.enum_type  # type: ignore[attr-defined]
    kind = named.name if named is not None else _TYPES[field.type]  # type: ignore[attr-defined]
    star = "*" if field.default_value == [] else ""  # type: ignore[attr-defined]  # in every release
    return f"{field.number} {field.name} {kind}{star}"  # type: ignore[attr-defined]


def declared(types: Path) -> list[str]:
    """Classes and fields, without what compilers of other releases write otherwise."""
    return re.findall(r"^(?: *class \w+| *\w+: (?!_)\S+)", types.read_text(encoding="utf-8"), re.MULTILINE)


def test_messages_have_the_contracts_fields() -> None:
    found = {
        name: ", ".join(map(described, message.fields))
        for name, message in pb.DESCRIPTOR.message_types_by_name.items()
    }
    assert found == FIELDS
    assert pb.DESCRIPTOR.package == "cuzk.v1"


def test_enums_have_the_contracts_values() -> None:
    nested = [enum for message in pb.DESCRIPTOR.message_types_by_name.values() for enum in message.enum_types]
    found = {
        enum.name: " ".join(f"{value.name}={value.number}" for value in enum.values)
        for enum in [*pb.DESCRIPTOR.enum_types_by_name.values(), *nested]
    }
    assert found == ENUMS


def test_the_service_has_the_contracts_methods() -> None:
    [service] = pb.DESCRIPTOR.services_by_name.values()
    assert service.full_name == "cuzk.v1.ProvingEngine"
    methods = [f"{one.name} {one.input_type.name} {one.output_type.name}" for one in service.methods]
    assert "\n".join(methods) == METHODS


def test_what_is_checked_in_is_what_the_compiler_makes_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools is not installed")
    (tmp_path / "cuzk/server").mkdir(parents=True)
    command = [sys.executable, "-m", "cuzk.server.generate", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=60)
    made = tmp_path / "cuzk/server"
    assert (made / "proving.desc").read_bytes() == (SERVER / "proving.desc").read_bytes()
    assert declared(made / "proving_pb2.pyi") == declared(SERVER / "proving_pb2.pyi")
