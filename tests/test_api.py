"""Whole sectors proven and verified, to the byte of upstream's proofs, as programs do it."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import cuzk
from cuzk.api import Source
from cuzk.errors import DeviceError, InputError, ParameterError, ProofError, UsageError
from cuzk.events import Event, Notice, StageDone
from cuzk.groth16.parameters.development import MARK_SUFFIX, mark_content
from cuzk.groth16.parameters.verifying_key import read_verifying_key
from cuzk.groth16.proof import split_proofs
from cuzk.groth16.verify import Verifier
from cuzk.sector.porep.c1_reader import read_c1
from cuzk.sector.porep.public_inputs import public_inputs
from tests.cli.running import run

POREP = Path(__file__).parent / "vectors" / "porep"
VECTORS = json.loads((POREP / "vectors.json").read_text())
CASES = {case["file"]: case for case in VECTORS["cases"]}
UPSTREAM = {
    file: bytes.fromhex(case["proof_r13_s17"]) for file, case in CASES.items() if "proof_r13_s17" in case
}
C1 = POREP / "2k-random.json"
FIXED = (13, 17)


def notices(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def holds(c1: Path, proof: bytes) -> bool:
    """Under upstream's own verifying key."""
    verifier = Verifier(read_verifying_key(POREP / "2k.vk"))
    [partition] = split_proofs(proof)
    return verifier.verify_partition(public_inputs(read_c1(c1).statement, 0), partition)


@pytest.mark.parametrize("suffix", [".params", ".vk"])
def test_the_parameters_are_upstreams_to_the_byte(sector_params: Path, suffix: str) -> None:
    [path] = sector_params.glob(f"*{suffix}")
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    assert path.stem == CASES[C1.name]["parameter_id"]
    assert digest.hexdigest() == VECTORS["params_2k"][f"{suffix[1:]}_sha256"]


@pytest.mark.parametrize(
    ("file", "given"),
    [
        ("2k-zero.json", str),
        ("2k-synthetic.json", lambda path: gzip.compress(Path(path).read_bytes())),
    ],
)
def test_a_proof_is_upstreams_to_the_byte(
    file: str, given: Any, sector_params: Path, home_of_old: Path
) -> None:
    result = cuzk.prove(given(POREP / file), params=sector_params, insecure_rs=FIXED)
    assert result.proof.hex() == UPSTREAM[file].hex()
    assert (result.status, result.partitions) == ("COMPLETED", (0,))
    took = result.timings
    assert 0 < took.synth_ms + took.gpu_ms <= took.total_ms <= result.wall_ms


def test_one_lane_gives_the_same_proof(sector_params: Path, home_of_old: Path) -> None:
    events: list[Event] = []
    result = cuzk.prove(
        C1, params=sector_params, insecure_rs=FIXED, device="cpu:scalar", threads=2, on_event=events.append
    )
    assert result.proof == UPSTREAM[C1.name]
    assert any("INSECURE" in text for text in notices(events))
    assert not any("first use" in text for text in notices(events))


def test_fresh_proofs_differ_and_hold_and_points_are_checked_at_first_use_only(
    sector_params: Path, own_home: Path
) -> None:
    """The second proof is the command's, which gives what the function gives."""
    events: list[Event] = []
    first = cuzk.prove(C1, params=sector_params, on_event=events.append)
    arguments = ["prove", C1, "--params", sector_params, "--partition", "0", "--json"]
    command = run(*arguments)
    assert command.exit_code == 0, command.stderr
    second = json.loads(command.stdout)

    proofs = {first.proof, bytes.fromhex(second["proof"])}
    assert len(proofs | {UPSTREAM[C1.name]}) == 3
    assert all(holds(C1, proof) for proof in proofs)

    assert second.keys() == {"status", "job_id", "timings_ms", "wall_ms", "partitions", "proof", "out"}
    for name in ("status", "job_id"):
        assert second[name] == getattr(first, name)
    assert (second["partitions"], second["out"]) == ([0], None)
    assert second["timings_ms"].keys() == asdict(first.timings).keys()

    assert any("first use" in text for text in notices(events))
    assert "first use" not in command.stderr
    for said in ("\n".join(notices(events)), command.stderr):
        assert "no network accepts" in said and "INSECURE" not in said
    stages = [event.name for event in events if isinstance(event, StageDone)]
    sums = ["sum h", "sum l", "sum a", "sum b_g1", "sum b_g2"]
    assert stages == [
        "read", "parameters", "circuit", "check", "points on the curve", "points in the subgroup",
        "pre-pass", "witness", "rows", "transforms", *sums, "finish", "verify",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_sector_of_8_mib_is_proven_under_fresh_parameters(compiled: None, own_home: Path) -> None:
    c1 = POREP / "8m-random.json"
    cuzk.generate_parameters(8 << 20, out=own_home / "parameters")
    try:
        result = cuzk.prove(c1)
        assert cuzk.verify(c1, result.proof).partitions == 1
        with pytest.raises(ProofError):
            cuzk.verify(c1, bytes.fromhex(CASES["2k-zero.json"]["proof_r13_s17"]))
    finally:
        for path in (own_home / "parameters").iterdir():
            path.unlink()


# ---- what is refused before any work ----


@pytest.mark.slow
def test_a_synthetic_sector_in_memory_is_proven_and_verified(sector_params: Path, home_of_old: Path) -> None:
    c1 = cuzk.synthesize(2048, seed=9)
    result = cuzk.prove(c1, params=sector_params)
    assert cuzk.verify(c1, result.proof, params=sector_params).partitions == 1
    with pytest.raises(ProofError, match="does not hold"):
        cuzk.verify(cuzk.synthesize(2048, seed=10), result.proof, params=sector_params)


@pytest.mark.parametrize("partitions", [[1], [0, 1], [-1], []])
def test_a_partition_that_is_not_there_is_refused(partitions: list[int], own_home: Path) -> None:
    with pytest.raises(UsageError, match="no partition"):
        cuzk.prove(C1, partitions=partitions)


@pytest.mark.parametrize(
    "rs", [(-1, 0), (0, 52435875175126190479447740508185965837690552500527637822603658699938581184513)]
)
def test_fixed_randomness_outside_the_field_is_refused(rs: tuple[int, int], own_home: Path) -> None:
    with pytest.raises(UsageError, match="R and S"):
        cuzk.prove(C1, insecure_rs=rs)


@pytest.mark.parametrize("device", ["cuda:99", "GPU-8a56a4bc-0184-a5a3-7a8c-000000000000"])
def test_a_gpu_that_is_not_there_is_not_replaced_by_something_else(device: str, own_home: Path) -> None:
    with pytest.raises(DeviceError) as raised:
        cuzk.prove(C1, device=device)
    assert raised.value.where and raised.value.next


def test_missing_parameters_name_the_folders_and_the_commands_that_help(own_home: Path) -> None:
    with pytest.raises(ParameterError, match="is missing") as raised:
        cuzk.prove(C1)
    assert raised.value.where is not None and raised.value.next is not None
    for folder in (own_home / "parameters", "/var/tmp/filecoin-proof-parameters", own_home / "data"):
        assert str(folder) in raised.value.where
    assert "cuzk params fetch --kind porep --sector-size 2KiB" in raised.value.next
    assert "cuzk params generate --kind porep --sector-size 2KiB --insecure-dev" in raised.value.next


# ---- verify ----


@pytest.fixture
def key_folder(own_home: Path) -> Path:
    """A folder of parameters that has the key of upstream's proofs, marked as a development one."""
    stem = CASES[C1.name]["parameter_id"]
    (own_home / f"{stem}.vk").write_bytes((POREP / "2k.vk").read_bytes())
    mark = mark_content(read_verifying_key(POREP / "2k.vk"), None)
    (own_home / f"{stem}{MARK_SUFFIX}").write_bytes(mark)
    return own_home


@pytest.mark.parametrize("file", UPSTREAM)
@pytest.mark.parametrize(
    "written",
    [bytes, lambda proof: proof.hex().encode(), lambda proof: proof.hex().upper().encode() + b"\n"],
    ids=["raw", "hex", "HEX with newline"],
)
def test_upstreams_proofs_hold_however_they_are_written(file: str, written: Any, key_folder: Path) -> None:
    path = key_folder / "proof"
    path.write_bytes(written(UPSTREAM[file]))
    proofs: list[Source] = [path, str(path), path.read_bytes()]
    for proof in proofs:
        assert cuzk.verify(POREP / file, proof, params=key_folder).partitions == 1


def test_a_proof_of_another_sector_does_not_hold(key_folder: Path) -> None:
    with pytest.raises(ProofError, match="does not hold for this sector") as raised:
        cuzk.verify(C1, UPSTREAM["2k-zero.json"], params=key_folder)
    assert raised.value.where == "partition 0"
    assert raised.value.next is not None and str(key_folder) in raised.value.next


@pytest.mark.parametrize("part", [0, 48, 144])
def test_a_point_with_its_sign_turned_does_not_hold(part: int, key_folder: Path) -> None:
    proof = bytearray(UPSTREAM[C1.name])
    proof[part] ^= 0x20
    with pytest.raises(ProofError):
        cuzk.verify(C1, bytes(proof), params=key_folder)


@pytest.mark.parametrize("size", [0, 1, 191, 193])
def test_what_is_no_proof_is_refused_with_its_size(size: int, key_folder: Path) -> None:
    with pytest.raises(InputError, match=f"{size} bytes"):
        cuzk.verify(C1, (UPSTREAM[C1.name] * 2)[:size], params=key_folder)


def test_two_proofs_for_one_partition_are_refused(key_folder: Path) -> None:
    with pytest.raises(InputError, match=r"1 partition\(s\) of 192 bytes, this one has 2"):
        cuzk.verify(C1, UPSTREAM[C1.name] * 2, params=key_folder)


@pytest.mark.parametrize("place", [1, 47, 48 + 95, 191])
def test_a_flipped_bit_is_an_unreadable_point_or_does_not_hold(place: int, key_folder: Path) -> None:
    """Half of all x are on the curve, hardly any of those in the subgroup: mostly the point is unreadable."""
    proof = bytearray(UPSTREAM[C1.name])
    proof[place] ^= 1
    with pytest.raises(ProofError, match=r"point [ABC] is unreadable|does not hold"):
        cuzk.verify(C1, bytes(proof), params=key_folder)


def test_the_front_door_has_all_that_it_promises_and_the_error_to_catch() -> None:
    assert [name for name in cuzk.__all__ if not hasattr(cuzk, name)] == []
    with pytest.raises(cuzk.CuzkError, match="cannot be read"):
        cuzk.prove("nowhere.json")
