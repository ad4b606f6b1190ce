"""Requests of all kinds, read and checked before they may queue; what makes two of them the same."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.engine.jobs import Priority
from cuzk.errors import InputError
from cuzk.server import proving_pb2 as pb
from cuzk.server.first_bytes import FIRST_BYTES, name_and_kind, prove_request_head
from cuzk.server.intake import digest_of, read_request
from cuzk.server.seam import ProofRequest
from tests.server.requests import pieces_request, porep_request, spoilt_c1


def read(submit: pb.SubmitProofRequest, *, check: bool = True) -> ProofRequest:
    return read_request(pb.ProveRequest(submit=submit).SerializeToString(), check)


@pytest.mark.parametrize(
    ("submit", "kind", "priority", "partitions"),
    [
        (porep_request(), "porep-c2", Priority.NORMAL, 1),
        (porep_request(priority=0), "porep-c2", Priority.NORMAL, 1),
        (porep_request(priority=pb.CRITICAL), "porep-c2", Priority.CRITICAL, 1),
        (porep_request(priority=77), "porep-c2", Priority.NORMAL, 1),
        (porep_request(sector_size=0, registered_proof=0, miner_id=0, sector_number=0), "porep-c2", 2, 1),
        (porep_request(request_id="é" * 512), "porep-c2", Priority.NORMAL, 1),
        (pieces_request("snap-2k"), "snap-update", Priority.NORMAL, 1),
        (pieces_request("snap-2k", sector_size=0), "snap-update", Priority.NORMAL, 1),
        (pieces_request("snap-16k"), "snap-update", Priority.NORMAL, 2),
        (pieces_request("window-2k"), "window-post", Priority.HIGH, 1),
        (pieces_request("window-2k-v1-p1"), "window-post", Priority.HIGH, 1),
        (pieces_request("window-2k", registered_proof=0), "window-post", Priority.HIGH, 1),
        (pieces_request("winning-2k"), "winning-post", Priority.CRITICAL, 1),
        (pieces_request("winning-32k"), "winning-post", Priority.CRITICAL, 1),
    ],
)
def test_every_kind_is_read_as_curio_sends_it(
    submit: pb.SubmitProofRequest, kind: str, priority: int, partitions: int
) -> None:
    found = read(submit)
    assert (found.kind.name, found.priority, found.request_id) == (kind, priority, submit.request_id)
    assert found.source.partition_count == partitions and found.source.shape.kind == kind
    assert found.note == "" and found.digest == digest_of(submit)


def test_another_number_than_the_documents_is_noted_and_no_fault() -> None:
    assert read(porep_request(registered_proof=10)).note == (
        "registered_proof is 10, the Commit 1 output says 5"
    )


@pytest.mark.parametrize(
    ("submit", "says"),
    [
        (porep_request(b""), "vanilla_proof: vanilla_proof is empty"),
        (porep_request(b"{}"), "porep-1000-7"),
        (porep_request(spoilt_c1()), "porep-1000-7, partition 0, challenge 0"),
        (porep_request(miner_id=1001), "replica_id is not that of miner 1001"),
        (porep_request(sector_number=8), "replica_id is not that of miner 1000, sector 8"),
        (porep_request(sector_size=4096), "sector_size is 4096"),
        (pieces_request("snap-2k", vanilla_proofs=[]), "vanilla_proofs is empty"),
        (pieces_request("snap-2k", comm_r_new=b""), "comm_r_new has 0 bytes"),
        (pieces_request("snap-2k", comm_d_new=bytes(32)), "snap-2k"),
        (
            pieces_request("snap-16k", vanilla_proofs=pieces_request("snap-16k").vanilla_proofs[:1]),
            "snap-16k",
        ),
        (pieces_request("window-2k", randomness=bytes(31)), "31 bytes where 32 are expected"),
        (pieces_request("window-2k", randomness=bytes(32)), "window-2k"),
        (pieces_request("winning-2k", vanilla_proofs=[b"junk"]), "winning-2k"),
        (pieces_request("winning-2k", registered_proof=5), "registered proof 5 is none of winning"),
        (pieces_request("winning-2k", sector_size=77), "77"),
        (porep_request(request_id="é" * 512 + "x"), "request_id has 1025 bytes, 1024 are the most"),
        (pb.SubmitProofRequest(), "invalid proof_kind: 0"),
        (pb.SubmitProofRequest(proof_kind=77), "invalid proof_kind: 77"),
    ],
)
def test_what_is_at_fault_is_refused_with_its_place(submit: pb.SubmitProofRequest, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read(submit)
    assert says in str(caught.value)
    assert caught.value.next


def test_what_was_checked_is_not_checked_again() -> None:
    assert read(porep_request(spoilt_c1()), check=False).source.partition_count == 1


def test_what_is_no_message_is_refused() -> None:
    for data in (b"\xff\xff", b"\x0a\xff"):
        with pytest.raises(InputError, match="no ProveRequest"):
            read_request(data, True)
    with pytest.raises(InputError, match="missing submit field"):
        read_request(b"", True)


def test_a_request_crosses_processes() -> None:
    found = read(porep_request(), check=False)
    again = pickle.loads(pickle.dumps(found))
    assert (again.digest, again.kind) == (found.digest, found.kind)
    assert again.source.partitions[0].columns.tobytes() == found.source.partitions[0].columns.tobytes()


_VALUES: dict[str, Any] = {
    "proof_kind": pb.SNAP_DEALS_UPDATE, "sector_size": 1, "registered_proof": 1, "vanilla_proof": b"x",
    "vanilla_proofs": [b"x"], "sector_number": 1, "miner_id": 1, "randomness": b"x", "partition_index": 1,
    "comm_r_old": b"x", "comm_r_new": b"x", "comm_d_new": b"x",
}  # fmt: skip


def test_every_input_makes_another_digest_and_name_and_urgency_do_not() -> None:
    fields = {field.name for field in pb.SubmitProofRequest.DESCRIPTOR.fields}
    assert fields == _VALUES.keys() | {"request_id", "priority"}
    digests = [digest_of(pb.SubmitProofRequest(**{name: value})) for name, value in _VALUES.items()]
    assert len({*digests, digest_of(pb.SubmitProofRequest())}) == len(_VALUES) + 1
    other = pb.SubmitProofRequest(request_id="x", priority=pb.HIGH, miner_id=1)
    assert digest_of(other) == digest_of(pb.SubmitProofRequest(miner_id=1))


@given(st.lists(st.binary(max_size=3), max_size=4), st.lists(st.binary(max_size=3), max_size=4))
def test_pieces_cut_otherwise_are_other_inputs(one: list[bytes], other: list[bytes]) -> None:
    digests = [digest_of(pb.SubmitProofRequest(vanilla_proofs=pieces)) for pieces in (one, other)]
    assert (digests[0] == digests[1]) is (one == other)


@given(st.binary(max_size=300))
def test_a_submit_request_is_wrapped_as_a_prove_request(data: bytes) -> None:
    submit = pb.SubmitProofRequest(vanilla_proof=data)
    raw = submit.SerializeToString()
    assert pb.ProveRequest.FromString(prove_request_head(len(raw)) + raw) == pb.ProveRequest(submit=submit)


@pytest.mark.parametrize("name", ["", "porep-1000-7", "wdpost-1-0-[1 2 3]", "\N{SNOWMAN}" * 300])
@pytest.mark.parametrize("piece", [b"", bytes(10_000)])
def test_the_first_bytes_tell_name_and_kind(name: str, piece: bytes) -> None:
    submit = pb.SubmitProofRequest(
        request_id=name, proof_kind=pb.WINNING_POST, sector_size=1 << 35, vanilla_proofs=[piece]
    )
    first = pb.ProveRequest(submit=submit).SerializeToString()[:FIRST_BYTES]
    assert name_and_kind(first) == (name, pb.WINNING_POST)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\n\x80", b"\xff" * 3000, b"\n\x05\n\xff\xff\xff\xff", b"\x12\x00"]
)
def test_first_bytes_that_are_no_request_tell_nothing(data: bytes) -> None:
    assert name_and_kind(data) in {("", 0)}
