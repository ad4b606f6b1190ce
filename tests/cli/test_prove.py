"""`cuzk prove` and `verify` on a real sector: what they print, write and leave behind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import cuzk
from cuzk.api import ProveResult, Timings
from cuzk.errors import ProofError
from cuzk.view.proof import proof_block
from tests.cli.running import run

POREP = Path(__file__).parents[1] / "vectors" / "porep"
CASE = json.loads((POREP / "vectors.json").read_text())["cases"][1]
C1 = str(POREP / CASE["file"])
PROOF = bytes.fromhex(CASE["proof_r13_s17"])
BLOCK = re.compile(
    r"\n=== Proof Result ===\n"
    r"status:    COMPLETED\n"
    r"job_id:    [0-9a-f]{16}\n"
    r"timings:   total=\d+ ms \(queue=0 ms, srs=\d+ ms, synth=\d+ ms, gpu=\d+ ms\)\n"
    r"wall time: \d+ ms\n"
    r"proof:     192 bytes \(hex: ([0-9a-f]{384})\)\n"
    r"written:   (.*)\n"
)


def test_prove_prints_the_result_block_and_writes_the_proof(sector_params: Path, home_of_old: Path) -> None:
    out = home_of_old / "proof.bin"
    out.write_bytes(b"an older proof")
    result = run("prove", C1, "--params", sector_params, "--out", out, "--insecure-rs", "13,0x11", "--check")
    assert result.exit_code == 0, result.stderr
    block = BLOCK.fullmatch(result.stdout)
    assert block is not None, result.stdout
    assert block.groups() == (PROOF.hex(), str(out))
    assert out.read_bytes() == PROOF
    assert [path.name for path in home_of_old.glob("*.bin*")] == ["proof.bin"]
    assert "warning: INSECURE: the randomness of this proof is fixed" in result.stderr
    assert "no network accepts such proofs" in result.stderr
    stages = "read, check, witness, check of the rows, rows, transforms, sum h, sum b_g2, finish, verify"
    for stage in stages.split(", "):
        assert re.search(rf"^{stage}: \d", result.stderr, flags=re.M), stage


def test_verify_says_yes_in_a_line(sector_params: Path, home_of_old: Path) -> None:
    proof = home_of_old / "proof"
    proof.write_bytes(PROOF)
    result = run("verify", C1, proof, "--params", sector_params)
    assert result.exit_code == 0
    assert re.fullmatch(r"verified:  1 partition\(s\) in \d+ ms\n", result.stdout)
    facts = json.loads(run("verify", C1, proof, "--params", sector_params, "--json").stdout)
    assert facts.items() >= {"verified": True, "partitions": 1}.items()


def test_verify_says_no_with_exit_code_3(sector_params: Path, home_of_old: Path) -> None:
    proof = home_of_old / "proof"
    proof.write_bytes(PROOF)
    result = run("verify", POREP / "2k-zero.json", proof, "--params", sector_params)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert "error: the proof does not hold" in result.stderr
    assert "where: partition 0" in result.stderr and "next:" in result.stderr


def test_a_proof_in_the_place_of_the_input_is_called_one(own_home: Path) -> None:
    proof = own_home / "proof.bin"
    proof.write_bytes(PROOF)
    result = run("verify", proof, C1)
    assert result.exit_code == 1
    assert (
        "this looks like a proof" in result.stderr
        and "the order of `cuzk verify` is FILE PROOF" in result.stderr
    )


def test_a_damaged_proof_is_a_bad_proof(sector_params: Path, home_of_old: Path) -> None:
    proof = home_of_old / "proof"
    proof.write_bytes(PROOF[:60] + bytes([PROOF[60] ^ 1]) + PROOF[61:])
    result = run("verify", C1, proof, "--params", sector_params)
    assert result.exit_code == 3
    assert "point B is unreadable" in result.stderr and "where: partition 0" in " ".join(
        result.stderr.split()
    )


@pytest.mark.parametrize("content", [b"", b"no proof", PROOF[:-1], PROOF.hex().encode()[:-1], PROOF + b"\n"])
def test_verify_of_what_is_no_proof_ends_with_1_and_names_the_file(
    content: bytes, sector_params: Path, home_of_old: Path
) -> None:
    proof = home_of_old / "proof.bin"
    proof.write_bytes(content)
    result = run("verify", C1, proof, "--params", sector_params)
    assert result.exit_code == 1
    assert "no sequence of proofs" in result.stderr and "proof.bin" in result.stderr


def test_a_proof_that_fails_its_check_is_never_written(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> ProveResult:
        raise ProofError("the proof does not verify and was thrown away", where="partition 0")

    monkeypatch.setattr(cuzk, "prove", failing, raising=False)
    out = own_home / "proof.bin"
    result = run("prove", C1, "--out", out)
    assert result.exit_code == 3
    assert result.stdout == "" and not out.exists()


def test_a_proof_that_could_not_be_written_is_not_begun(own_home: Path, vectors: Path) -> None:
    c1 = str(vectors / "porep" / "2k-zero.json")
    result = run("prove", c1, "--out", own_home / "none" / "proof.bin")
    assert result.exit_code == 1
    assert "could not be written" in result.stderr


@pytest.mark.parametrize("name", ["c1.json", "folder/../c1.json", "linked.json"])
def test_a_proof_never_replaces_what_it_is_made_from(name: str, own_home: Path) -> None:
    c1, content = own_home / "c1.json", Path(C1).read_bytes()
    c1.write_bytes(content)
    (own_home / "folder").mkdir()
    (own_home / "linked.json").symlink_to(c1)
    result = run("prove", c1, "--out", own_home / name)
    assert result.exit_code == 2
    assert "would overwrite what it is made from" in result.stderr and "name another file" in result.stderr
    assert c1.read_bytes() == content


def test_the_block_of_many_partitions_shows_the_first_half_of_256_bytes() -> None:
    timings = Timings(total_ms=5, queue_ms=0, srs_ms=1, synth_ms=2, gpu_ms=2)
    result = ProveResult(
        status="COMPLETED",
        job_id="0123456789abcdef",
        proof=bytes(range(192)) * 10,
        partitions=tuple(range(10)),
        timings=timings,
        wall_ms=6,
    )
    assert proof_block(result) == (
        "\n=== Proof Result ===\n"
        "status:    COMPLETED\n"
        "job_id:    0123456789abcdef\n"
        "timings:   total=5 ms (queue=0 ms, srs=1 ms, synth=2 ms, gpu=2 ms)\n"
        "wall time: 6 ms\n"
        f"proof:     1920 bytes (hex: {bytes(range(128)).hex()}...)"
    )
