"""What a user gives that cannot be proven: one clear message, exit code 1, and nothing half-written."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py_ecc import optimized_bls12_381 as oracle

from cuzk import parameters
from cuzk.groth16.parameters import manifest
from cuzk.groth16.parameters.manifest import ManifestEntry
from cuzk.kernels.modulus import FR
from cuzk.proofs import proving
from tests.cli.running import run
from tests.sector.porep.documents import CASES, POREP, VECTORS, compact, inner, outer, wrapped

ROOT = Path(__file__).resolve().parents[1]
FILE = "2k-random.json"
C1 = POREP / FILE
STEM = CASES[FILE]["parameter_id"]
WHOLE = compact(outer(FILE))


def refused(*arguments: object) -> str:
    """The message of a command that must fail as bad input does: what, where and next, a line each."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert "Traceback" not in result.stderr and "mistake in cuzk" not in result.stderr
    message = result.stderr[result.stderr.index("error: ") :]
    labels = [line.split(":")[0].strip() for line in message.splitlines()]
    assert labels == ["error", "where", "next"], message
    return message


# ---- the Commit 1 output ----


def changed(**values: object) -> bytes:
    """The file with other values in its inner document."""
    return wrapped(inner(FILE) | values)


def with_inner(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = inner(FILE)
    change(document)
    return wrapped(document)


def challenge(document: dict[str, Any], number: int = 0) -> dict[str, Any]:
    [[partition]] = document["vanilla_proofs"].values()
    found: dict[str, Any] = partition[number]
    return found


def flip(document: dict[str, Any], *path: Any) -> None:
    """Flip the lowest bit of the hash at `path` in challenge 1."""
    place = challenge(document, 1)
    for key in path:
        place = place[key]
    place[0] ^= 1


FORMS = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "text": (b"Sealing failed", "not whole JSON"),
    "noise": (bytes(range(256)), "not whole JSON"),
    "truncated": (WHOLE[: len(WHOLE) // 2], "not whole JSON"),
    "truncated gzip": (gzip.compress(WHOLE)[:-100], "gzip file is truncated"),
    "a list": (b"[1, 2]", "Expected `bytes`, got `int`"),
    "an envelope of no kind": (
        b'{"kind": "porep", "sector_size": 2048, "vanilla_proofs": []}',
        "no kind of proof",
    ),
    "Phase1Out no base64": (wrapped({}, Phase1Out="!" * 100), "base64"),
    "Phase1Out a number": (wrapped({}, Phase1Out=7), "Phase1Out"),
    "Phase1Out not JSON": (wrapped({}, Phase1Out=base64.b64encode(b"{").decode()), "Phase1Out"),
    "a missing key": (with_inner(lambda document: document.pop("comm_r")), "comm_r"),
    "a wrong type": (changed(comm_d="00"), "comm_d"),
    "unknown registered_proof": (changed(registered_proof="StackedDrg3KiBV1"), "StackedDrg3KiBV1"),
    "another size's registered_proof": (changed(registered_proof="StackedDrg8MiBV1_1"), "StackedDrg8MiBV1_1"),
    "another SectorSize": (wrapped(inner(FILE), SectorSize=8 << 20), "SectorSize"),
    "an extra partition": (
        with_inner(lambda document: next(iter(document["vanilla_proofs"].values())).append([])),
        "2 partitions where 1",
    ),
    "an extra challenge": (
        with_inner(
            lambda document: next(iter(document["vanilla_proofs"].values()))[0].append(challenge(document))
        ),
        "3 challenges where 2",
    ),
    "comm_d of zeros": (changed(comm_d=[0] * 32), "comm_d is all zeros"),
    "comm_r of zeros": (changed(comm_r=[0] * 32), "comm_r is all zeros"),
    "a seed of zeros": (changed(seed=[0] * 32), "seed is all zeros"),
    "comm_r not below r": (changed(comm_r=list(FR.p.to_bytes(32, "little"))), "comm_r is not below r"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_of_the_wrong_form_is_refused_before_parameters_are_looked_for(
    name: str, own_home: Path
) -> None:
    content, expected = FORMS[name]
    path = own_home / "c1.json"
    path.write_bytes(content)
    begin = time.process_time()
    message = refused("prove", path, "--out", own_home / "proof.bin")
    assert time.process_time() - begin < 1
    assert expected in message and str(path) in message
    assert not (own_home / "proof.bin").exists()


@pytest.mark.parametrize("kind", ["missing", "a folder"])
def test_a_file_that_cannot_be_read_is_named(kind: str, own_home: Path) -> None:
    path = own_home / "c1.json"
    if kind == "a folder":
        path.mkdir()
    assert str(path) in refused("prove", path)


CHALLENGED = "challenge 1"
VALUES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "another seed": (changed(seed=[1] * 32), ("seed",)),
    "another miner": (changed(replica_id=inner("2k-zero.json")["replica_id"]), ("challenge",)),
    "a hash not below r": (
        with_inner(
            lambda document: challenge(document, 1)["encoding_proof"].update(
                parents=[list(FR.p.to_bytes(32, "little"))]
                + challenge(document, 1)["encoding_proof"]["parents"][1:]
            )
        ),
        (CHALLENGED, "not below r"),
    ),
    "comm_r": (
        with_inner(lambda document: document["comm_r"].__setitem__(0, document["comm_r"][0] ^ 1)),
        ("comm_r",),
    ),
    "comm_d": (
        with_inner(lambda document: document["comm_d"].__setitem__(0, document["comm_d"][0] ^ 1)),
        ("comm_d",),
    ),
}
PLACES: dict[str, tuple[Any, ...]] = {
    "a label's parent": ("labeling_proofs", 0, "parents", 5),
    "the encoding": ("encoding_proof", "parents", 0),
    "a column": ("replica_column_proofs", "c_x", "column", "rows", 1),
    "a parent's column": ("replica_column_proofs", "drg_parents", 2, "column", "rows", 0),
}
for name, place in PLACES.items():
    VALUES[name] = (with_inner(lambda document, place=place: flip(document, *place)), (CHALLENGED,))


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_is_wrong_is_refused_with_its_place(
    name: str, sector_params: Path, home_of_old: Path
) -> None:
    content, expected = VALUES[name]
    path = home_of_old / "c1.json"
    path.write_bytes(content)
    message = refused("prove", path, "--params", sector_params, "--out", home_of_old / "proof.bin")
    assert all(text in message for text in (*expected, str(path))), message
    assert not (home_of_old / "proof.bin").exists()


def test_another_miner_is_told_apart_by_its_number(own_home: Path) -> None:
    assert "miner 1001" in refused("sector", "inspect", C1, "--miner", 1001)


# ---- parameters ----


def test_missing_parameters_name_every_folder_and_both_commands(own_home: Path) -> None:
    begin = time.process_time()
    message = refused("prove", C1)
    assert time.process_time() - begin < 1
    for folder in (own_home / "parameters", "/var/tmp/filecoin-proof-parameters", own_home / "data"):
        assert str(folder) in message
    assert "`cuzk params fetch --kind porep --sector-size 2KiB`" in message
    assert "`cuzk params generate --kind porep --sector-size 2KiB --insecure-dev`" in message


def test_a_folder_of_parameters_that_is_not_there_is_named(own_home: Path) -> None:
    assert str(own_home / "none") in refused("prove", C1, "--params", own_home / "none")


@pytest.fixture
def copies(sector_params: Path, own_home: Path) -> Path:
    """A folder with key and mark of `sector_params`, for a `.params` file that is not whole."""
    folder = own_home / "copies"
    folder.mkdir()
    for path in sector_params.iterdir():
        if path.suffix != ".params":
            shutil.copy(path, folder)
    return folder


def sparse(path: Path, original: Path, kept: int, size: int) -> None:
    """The first `kept` bytes of a file, then zeros that take no room."""
    with original.open("rb") as source, path.open("wb") as file:
        file.write(source.read(kept))
        file.truncate(size)


VK_BYTES = (POREP / "2k.vk").stat().st_size
PARAMS_BYTES = VECTORS["params_2k"]["params_bytes"]


@pytest.mark.parametrize(
    ("kept", "size", "expected"),
    [
        (0, 0, "empty"),
        (100, 100, "truncated"),
        (VK_BYTES - 1, VK_BYTES - 1, "truncated"),
        (VK_BYTES + 4, VK_BYTES + 4, "section h should end"),
        (VK_BYTES + 4, PARAMS_BYTES // 3, "section h should end"),
        (VK_BYTES, VK_BYTES + 1000, "980 bytes follow its last point"),
        (0, PARAMS_BYTES, "count of ic points is 0"),
    ],
    ids=str,
)
def test_parameters_that_are_not_whole_are_refused(
    kept: int, size: int, expected: str, copies: Path, sector_params: Path
) -> None:
    path = copies / f"{STEM}.params"
    sparse(path, sector_params / path.name, kept, size)
    message = refused("prove", C1, "--params", copies)
    assert expected in message and str(path) in message


def test_parameters_of_another_circuit_are_refused_before_anything_is_compiled(
    copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole file, of a circuit with as many public inputs, but only two points in every other section."""
    monkeypatch.setattr(proving, "warm_up", lambda *_: pytest.fail("kernels first"))
    path = copies / f"{STEM}.params"
    sections = b"".join((2).to_bytes(4, "big") + bytes(2 * size) for size in (96, 96, 96, 96, 192))
    path.write_bytes((POREP / "2k.vk").read_bytes() + sections)
    message = refused("prove", C1, "--params", copies)
    assert "another circuit: 2 points h, where this one has 4,194,303" in message
    assert str(path) in message


def test_development_parameters_without_their_mark_are_refused(sector_params: Path, own_home: Path) -> None:
    folder = own_home / "unmarked"
    folder.mkdir()
    os.link(sector_params / f"{STEM}.params", folder / f"{STEM}.params")
    message = refused("prove", C1, "--params", folder)
    assert "the manifest contradicts the file" in message and str(folder) in message


def test_a_digest_that_the_manifest_contradicts_is_found_at_first_use(
    sector_params: Path, home_of_old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if these were published parameters, of which one byte somewhere is not as it should be."""
    key_digest = json.loads((sector_params / f"{STEM}.insecure-dev.json").read_text())["verifying_key_digest"]
    digests = {f"{STEM}.vk": key_digest, f"{STEM}.params": "0" * 32}
    entries = {
        name: ManifestEntry(name=name, cid="", digest=digest, sector_bytes=2048)
        for name, digest in digests.items()
    }
    monkeypatch.setattr(manifest, "_entries", lambda: entries)
    for _ in range(2):  # what was found out is remembered, and refused again
        message = refused("prove", C1, "--params", sector_params)
        assert "the manifest contradicts the file" in message and "0" * 32 in message
        assert str(sector_params / f"{STEM}.params") in message


@contextmanager
def patched(path: Path, offset: int, data: bytes) -> Iterator[None]:
    """The file with other bytes at `offset`; afterwards as it was, its time of change included."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        original = file.read(len(data))
        file.seek(offset)
        file.write(data)
    try:
        yield
    finally:
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(original)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def offset_of(section: str, index: int) -> int:
    """Of a point of G1 in the 2 KiB parameters."""
    offset = VK_BYTES
    for name in ("h", "l", "a", "b_g1"):
        offset += 4
        if name == section:
            return offset + 96 * index
        offset += 96 * VECTORS["params_2k"]["points"][name]
    raise AssertionError(section)


def encoded(x: int, y: int) -> bytes:
    return x.to_bytes(48, "big") + y.to_bytes(48, "big")


def test_a_point_off_the_curve_is_named(sector_params: Path, home_of_old: Path) -> None:
    path = sector_params / f"{STEM}.params"
    x, y = (int(c) for c in oracle.normalize(oracle.G1))
    with patched(path, offset_of("h", 4_000_001), encoded(x, y + 1)):
        begin = time.process_time()
        message = refused("prove", C1, "--params", sector_params, "--out", home_of_old / "proof.bin")
        assert time.process_time() - begin < 4  # a fraction of a proof: all sections are decoded, no more
    assert "not on the curve" in message and f"{path}: h[4000001]" in message
    assert not (home_of_old / "proof.bin").exists()


def test_a_point_outside_the_subgroup_is_found(sector_params: Path, own_home: Path) -> None:
    """(0, 2) is on y^2 = x^3 + 4 and of order 3."""
    path = sector_params / f"{STEM}.params"
    with patched(path, offset_of("l", 1_234_567), encoded(0, 2)):
        message = refused("params", "verify", "--sector-size", "2KiB", "--params", sector_params)
    assert "outside the subgroup of order r" in message and f"{path}: l" in message
    record = own_home / "cache" / "cuzk" / "checked-parameters.json"
    assert not record.exists() or str(path) not in record.read_text()


# ---- the machine ----


def cuzk_process(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "cli.py", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


GENERATE = ("params", "generate", "--sector-size", "2KiB", "--insecure-dev", "--out")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_generation_that_is_interrupted_leaves_nothing_behind(
    number: signal.Signals, compiled: None, tmp_path: Path
) -> None:
    folder = tmp_path / "parameters"
    with cuzk_process(*GENERATE, folder) as process:
        deadline = time.monotonic() + 120
        while not any(path.stat().st_size > 1 << 22 for path in folder.glob(".*.tmp")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert out == "" and err.endswith("\ninterrupted\n") and "Traceback" not in err
    assert list(folder.iterdir()) == []


def test_generation_without_room_on_the_disk_is_refused_at_once(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    begin = time.process_time()
    message = refused(*GENERATE, own_home / "parameters")
    assert time.process_time() - begin < 2
    assert "1,000,000 are free" in message and "1,114," in message
    assert list((own_home / "parameters").iterdir()) == []


def test_generation_without_memory_is_refused_with_the_plan_before_anything_is_compiled(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters, "available_memory", lambda: 100 << 20)
    monkeypatch.setattr(parameters, "warm_up", lambda *_: pytest.fail("kernels first"))
    message = refused(*GENERATE, own_home / "parameters")
    assert "generating parameters takes" in message and "100" in message
    for part in ("process", "values", "points"):
        assert part in message
    assert not (own_home / "parameters").exists()


def test_what_a_killed_generation_left_is_removed_by_the_next(compiled: None, tmp_path: Path) -> None:
    """Killed as nobody can catch; the next one is stopped politely when its own file has begun."""
    folder = tmp_path / "parameters"

    def await_(condition: Callable[[list[Path]], bool], process: subprocess.Popen[str]) -> list[Path]:
        deadline = time.monotonic() + 120
        while not condition(found := list(folder.glob(".*.tmp"))):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        return found

    with cuzk_process(*GENERATE, folder) as process:
        left = await_(lambda found: found != [], process)
        process.kill()
    assert list(folder.iterdir()) == left
    with cuzk_process(*GENERATE, folder) as process:
        await_(lambda found: found not in ([], left), process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert list(folder.iterdir()) == []


def test_too_little_memory_for_a_proof_is_refused_with_the_plan(
    sector_params: Path, home_of_old: Path
) -> None:
    def limit_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    arguments = ("prove", C1, "--params", sector_params, "--threads", "2")
    with cuzk_process(*arguments, preexec_fn=limit_memory) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, ""), err
    assert re.search(r"a proof takes [\d.]+ [MG]iB of memory, [\d.]+ [MG]iB are available", err), err
    assert "Traceback" not in err
    for part in ("process", "witness", "transforms", "sums"):
        assert part in err
