"""Challenges, replica ids and public inputs against upstream's, for every version and feature."""

from hashlib import sha256

import pytest

from cuzk.sector.porep.challenges import challenges, synthetic_candidates, synthetic_choices
from cuzk.sector.porep.inputs import Statement
from cuzk.sector.porep.public_inputs import public_inputs
from cuzk.sector.porep.registered_proof import registered_proof
from cuzk.sector.porep.replica_id import prover_id, replica_id
from tests.sector.porep.documents import CASES, MADE_UP, VECTORS

GENERATED = VECTORS["public_inputs"]


def statement(values, registered):
    hashes = {name: bytes.fromhex(values[name]) for name in ("replica_id", "comm_d", "comm_r", "seed")}
    return Statement(registered_proof=registered, **hashes)


def registered_of(case):
    return MADE_UP.get(case["file"]) or registered_proof(case["registered_proof"])


@pytest.mark.parametrize("name", GENERATED["registered_proofs"])
def test_public_inputs_of_all_partitions_have_upstreams_digest(name):
    expected, registered = GENERATED["registered_proofs"][name], registered_proof(name)
    rows = [public_inputs(statement(GENERATED, registered), k) for k in range(registered.partitions)]
    assert len(rows) == expected["partitions"]
    assert {len(partition) for partition in rows} == {3 + 18 * registered.shape.challenges}
    assert sha256(b"".join(partition.tobytes() for partition in rows)).hexdigest() == expected["list_digest"]


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case["file"])
def test_public_inputs_of_real_sectors_are_upstreams(case):
    rows = public_inputs(statement(case, registered_of(case)), 0)
    assert [row.tobytes().hex() for row in rows] == case["partitions"][0]["public_inputs"]


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case["file"])
def test_replica_ids_are_upstreams(case):
    ticket, comm_d = bytes.fromhex(case["ticket"]), bytes.fromhex(case["comm_d"])
    porep_id = registered_of(case).porep_id
    number, miner = case["sector_number"], case["miner"]
    assert case["replica_id"] == (
        replica_id(miner=miner, sector_number=number, ticket=ticket, comm_d=comm_d, porep_id=porep_id).hex()
    )


def test_a_sector_sealed_with_an_all_zero_ticket_has_the_replica_id_and_challenges_of_lotus_bench():
    registered = registered_proof("StackedDrg2KiBV1_1")
    comm_d = bytes.fromhex("fc7e928296e516faade986b28f92d44a4f24b935485223376a799027bc18f833")
    replica = replica_id(
        miner=1000, sector_number=1, ticket=bytes(32), comm_d=comm_d, porep_id=registered.porep_id
    )
    assert replica.hex() == "2940faa406e4c6cbad015e2b08e76fd9e3b0e5b852cea7f8174c02ba33039a01"
    given = Statement(
        registered_proof=registered, replica_id=replica, comm_d=comm_d, comm_r=bytes(32), seed=bytes(32)
    )
    assert challenges(given, 0) == [39, 13]


@pytest.mark.parametrize(
    "miner, start", [(0, "00"), (127, "7f"), (128, "8001"), (1000, "e807"), (2**64 - 1, "ff" * 9 + "01")]
)
def test_prover_ids_are_leb128_padded_to_32_bytes(miner, start):
    assert prover_id(miner).hex() == start.ljust(64, "0")


def test_synthetic_candidates_and_choices_are_upstreams():
    nodes, count = 1 << 10, 21
    replica, comm_r = (value.to_bytes(32, "little") for value in (55, 101))
    candidates = synthetic_candidates(range(count), replica, comm_r, nodes)
    assert candidates == [
        *(178, 297, 869, 211, 875, 477, 94, 781, 124, 332, 856),
        *(801, 176, 692, 429, 691, 290, 204, 986, 210, 973),
    ]
    chosen = synthetic_choices(range(10), replica, b"\x01" * 32, count)
    assert [candidates[i] for i in chosen] == [176, 781, 801, 986, 290, 211, 692, 856, 986, 332]


def test_non_interactive_challenges_follow_comm_r_and_not_the_seed():
    registered = registered_proof("StackedDrg8MiBV1_2_Feat_NonInteractivePoRep")
    one, other_seed, other_comm_r = (
        Statement(
            registered_proof=registered, replica_id=bytes(32), comm_d=bytes(32), comm_r=comm_r, seed=seed
        )
        for comm_r, seed in ((b"\1" * 32, b"\1" * 32), (b"\1" * 32, b"\2" * 32), (b"\2" * 32, b"\1" * 32))
    )
    assert challenges(one, 12) == challenges(other_seed, 12) != challenges(other_comm_r, 12)
    tag = b"filecoin.io|PoRep|1|NonInteractive|1"
    drawn = sha256(tag + bytes(32) + b"\1" * 32 + (25).to_bytes(4, "little")).digest()
    assert challenges(one, 12)[1] == int.from_bytes(drawn, "little") % (2**18 - 1) + 1
