"""Every kind of proof through the same commands and functions; a window proof from end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import cuzk
from cuzk.engine.jobs import Priority
from cuzk.errors import InputError, ProofError, UsageError
from cuzk.groth16.parameters.manifest import all_entries, entry_of, is_published
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.proofs.kinds import KINDS, Kind, circuit_of, kind_named, setup_name
from cuzk.proofs.sources import check_input, read_input
from cuzk.sector.pieces import SideInputs
from tests.cli.running import run
from tests.sector.other_vectors import EXPECT, OTHER, document, pieces_of

LIST, ENVELOPE = OTHER / "window-2k.vanilla.json", OTHER / "window-2k.json"
UPSTREAM = EXPECT["vectors"]["window-2k"]["proof"]["bytes"]
FIXED = (13, 17)
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
#: Every kind's name, the names that Curio's tool has for it, and the priority of its contract.
CONTRACT = {
    "porep-c2": (("porep", "porep-c2", "seal-commit"), Priority.NORMAL),
    "snap-update": (("snap", "snap-deals", "update"), Priority.NORMAL),
    "window-post": (("wpost", "window-post", "windowpost"), Priority.HIGH),
    "winning-post": (("winning", "winning-post", "winningpost"), Priority.CRITICAL),
}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def done(*arguments: object) -> Any:
    """What a command that succeeds prints as JSON."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# ---- names ----


def test_kinds_have_the_names_and_priorities_of_the_contract() -> None:
    assert {kind.name: kind.priority for kind in KINDS} == {name: p for name, (_, p) in CONTRACT.items()}
    for name, (names, _) in CONTRACT.items():
        for written in (name, *names, *map(str.upper, names)):
            assert kind_named(written).name == name


def test_no_two_kinds_share_a_name_and_an_unknown_one_is_a_mistake_of_usage() -> None:
    names = [name for kind in KINDS for name in kind.names]
    assert len(names) == len(set(names))
    with pytest.raises(UsageError, match="no kind of proof 'sealing' .*porep, snap, wpost, winning"):
        kind_named("sealing")


@each_kind
def test_the_five_sizes_that_networks_use_have_published_parameters(kind: Kind) -> None:
    published = [shape for shape in kind.shapes() if is_published(shape.parameter_stem)]
    assert [shape.sector_bytes for shape in published] == [2 * KIB, 8 * MIB, 512 * MIB, 32 * GIB, 64 * GIB]
    for shape in published:
        entry = entry_of(f"{shape.parameter_stem}.params")
        assert entry is not None and entry.sector_bytes == shape.sector_bytes


def test_every_published_file_but_those_of_a_retired_circuit_is_of_some_kind() -> None:
    stems = {shape.parameter_stem for kind in KINDS for shape in kind.shapes()}
    others = {entry.name.rpartition(".")[0] for entry in all_entries()} - stems
    assert all("empty-sector-update-poseidon" in name or name.endswith("inner-product") for name in others), (
        others
    )


def test_parameters_in_use_are_named_by_the_short_name_and_the_size() -> None:
    names = [setup_name(kind.shape(32 * GIB)) for kind in KINDS]
    assert sorted(names) == ["porep-32GiB", "snap-32GiB", "winning-32GiB", "wpost-32GiB"]


@each_kind
def test_a_size_without_circuit_is_refused(kind: Kind) -> None:
    with pytest.raises(
        UsageError, match=rf"--sector-size: there is no {kind.names[0]} proof of 8KiB .*32GiB"
    ):
        kind.shape(8 * KIB)


# ---- commands ----


@pytest.mark.parametrize(
    ("kind", "constraints", "inputs"),
    [("porep", 2687961, 40), ("snap", 1705044, 5), ("wpost", 21889, 23), ("winning", 90883, 133)],
)
def test_circuit_info_has_the_counts_of_each_kind(kind: str, constraints: int, inputs: int) -> None:
    facts = done("circuit", "info", "--kind", kind, "--sector-size", "2KiB")
    circuit = facts["circuit"]
    assert (circuit["constraints_with_dummies"], circuit["inputs"]) == (constraints, inputs)
    assert facts["parameters"]["name"] == kind_named(kind).shape(2 * KIB).parameter_stem


@each_kind
def test_a_synthetic_file_of_each_kind_is_read_and_passes_every_check(kind: Kind, own_home: Path) -> None:
    out = own_home / "made.json"
    done("sector", "synthesize", "--kind", kind.names[0], "--sector-size", "2KiB", "--out", out)
    facts = done("sector", "inspect", out)
    assert facts["parameters"]["name"] == kind.shape(2 * KIB).parameter_stem
    again = own_home / "again.json"
    done("sector", "synthesize", "--kind", kind.name, "--sector-size", "2KiB", "--out", again)
    assert again.read_bytes() == out.read_bytes()
    other = own_home / "other.json"
    done("sector", "synthesize", "--kind", kind.name, "--sector-size", "2KiB", "--seed", "1", "--out", other)
    assert other.read_bytes() != out.read_bytes()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("snap-2k", "snap-update", marks=pytest.mark.slow),
        ("window-2k", "window-post"),
        ("winning-2k", "winning-post"),
    ],
)
def test_an_envelope_is_recognised_and_digested_as_upstream_does(name: str, kind: str) -> None:
    [part] = EXPECT["vectors"][name]["parts"]
    facts = done("circuit", "digest", OTHER / f"{name}.json", "--check", "--device", "cpu")
    assert read_input(OTHER / f"{name}.json").shape.kind == kind
    assert facts["circuit"]["r1cs_digest"] == part["r1cs_digest"]
    partition = facts["partition_0"]
    for digest in ("inputs_digest", "aux_digest", "a_digest", "b_digest", "c_digest"):
        assert partition[digest] == part[digest], digest
    assert partition["unsatisfied"] is None


def test_plans_are_of_the_kind_that_is_asked_for(own_home: Path) -> None:
    plan = done("doctor", "--plan", "--kind", "winning", "--sector-size", "32GiB", "--device", "cpu")["plan"]
    assert (plan["kind"], plan["sector_size"], plan["fits"]) == ("winning-post", "32GiB", True)


def test_what_nobody_published_for_a_kind_is_generated_for_that_kind(own_home: Path) -> None:
    result = run("params", "fetch", "--kind", "wpost", "--sector-size", "4KiB", "--out", own_home)
    assert result.exit_code == 1
    assert "`cuzk params generate --kind wpost --sector-size 4KiB --insecure-dev`" in result.stderr


# ---- what is given ----


def beside(**changes: Any) -> SideInputs:
    """What belongs to the list of window-2k."""
    randomness = bytes.fromhex(document("window-2k")["randomness"])
    said: dict[str, Any] = {"kind": "wpost", "registered_proof": 10, "randomness": randomness}
    return SideInputs(**{**said, **changes})


def test_a_list_with_what_belongs_to_it_is_the_same_input_as_the_envelope() -> None:
    listed, whole = read_input(LIST, beside()), read_input(ENVELOPE)
    assert (listed.public_inputs(0) == whole.public_inputs(0)).all()
    assert (listed.shape, listed.partition_count) == (whole.shape, 1)
    sized = read_input(LIST.read_bytes(), beside(registered_proof=None, sector_size=2 * KIB))
    assert (sized.public_inputs(0) == whole.public_inputs(0)).all()
    assert read_input(pieces_of("window-2k")).shape == read_input(whole).shape == whole.shape


@pytest.mark.parametrize(
    ("source", "given", "error", "message"),
    [
        (LIST, None, UsageError, "does not say what it proves .add --kind"),
        (LIST, SideInputs(randomness=bytes(32)), UsageError, "does not say what it proves"),
        (LIST, beside(kind="sealing"), UsageError, "no kind of proof 'sealing'"),
        (
            LIST,
            beside(registered_proof=None),
            UsageError,
            "which sector size this is .add .* or --sector-size",
        ),
        (LIST, beside(registered_proof=15), UsageError, "--registered-proof: .* 15 is none of wpost"),
        (LIST, beside(registered_proof=None, sector_size=3072), UsageError, "--sector-size: .* of 3KiB"),
        (LIST, beside(registered_proof=11), InputError, "piece 0: .* where .* are expected|levels"),
        (LIST, beside(randomness=b""), UsageError, "does not say its randomness .add --randomness HEX"),
        (LIST, beside(kind="winning", registered_proof=0), InputError, "2 pieces where one can be proven"),
        (
            LIST,
            beside(kind="porep", registered_proof=None, sector_size=2048),
            UsageError,
            "no input of kind porep .give the output of Commit 1",
        ),
        (ENVELOPE, SideInputs(kind="winning"), UsageError, "this is a wpost input"),
        (ENVELOPE, beside(), UsageError, "says itself what it proves"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    source: Path, given: SideInputs | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_input(source, given)


def test_the_kind_may_be_said_of_an_input_that_says_it_too() -> None:
    assert read_input(ENVELOPE, SideInputs(kind="wpost")).shape.kind == "window-post"


def test_only_a_commit_1_output_can_be_checked_for_its_miner() -> None:
    result = run("sector", "inspect", ENVELOPE, "--miner", 1000)
    assert result.exit_code == 2 and "does not depend on the miner" in result.stderr


def test_other_randomness_is_found_before_anything_is_proven() -> None:
    given = read_input(LIST, beside(randomness=bytes(32)))
    with pytest.raises(InputError, match="challenge 0, R path"):
        check_input(given, CpuDevice())


# ---- a window proof ----


@pytest.fixture(scope="module")
def params(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of window proofs at 2 KiB and upstream's trapdoors; known to be good."""
    folder = tmp_path_factory.mktemp("window")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        done(
            "params", "generate", "--kind", "wpost", "--sector-size", "2KiB", "--insecure-dev",
            "--trapdoors", "2,3,5,7,11", "--out", folder / "parameters", "--device", "cpu",
        )  # fmt: skip
    return folder / "parameters"


@pytest.fixture
def home(own_home: Path, params: Path) -> Path:
    shutil.copytree(params.parent / "cache" / "cuzk", own_home / "cache" / "cuzk")
    return own_home


def test_a_bare_list_is_proven_to_upstreams_byte_by_the_command(params: Path, home: Path) -> None:
    options = [
        "--kind",
        "wpost",
        "--registered-proof",
        10,
        "--randomness",
        document("window-2k")["randomness"],
    ]
    proven = done(
        "prove", LIST, *options, "--params", params, "--device", "cpu", "--insecure-rs", "13,17",
        "--out", home / "proof",
    )  # fmt: skip
    assert proven["proof"] == UPSTREAM
    assert proven["job_id"] == cuzk.prove(ENVELOPE, params=params, device="cpu").job_id
    assert run("verify", LIST, home / "proof", *options, "--params", params).exit_code == 0
    [file] = done("params", "list", "--params", params, "--kind", "wpost")
    assert (file["kind"], file["sector_size"], file["origin"]) == ("window-post", "2KiB", "development")
    assert done("params", "list", "--params", params, "--kind", "winning") == []


def test_a_proof_holds_for_its_own_sectors_only(params: Path, home: Path) -> None:
    assert cuzk.verify(ENVELOPE, bytes.fromhex(UPSTREAM), params=params).partitions == 1
    with pytest.raises(ProofError, match="does not hold"):
        cuzk.verify(OTHER / "window-2k-v1-p1.json", bytes.fromhex(UPSTREAM), params=params)


def test_an_engine_proves_each_kind_with_its_own_priority(params: Path, home: Path) -> None:
    with cuzk.Engine(params=params, devices=["cpu"]) as engine:
        window = engine.submit(pieces_of("window-2k"), insecure_rs=FIXED)
        listed = engine.submit(LIST, beside=beside(), insecure_rs=FIXED, priority=Priority.LOW)
        assert (window.priority, listed.priority) == (Priority.HIGH, Priority.LOW)
        assert listed.id == window.id  # the same work, however it came
        result = window.wait()
        assert result is not None and result.require_proof().hex() == UPSTREAM
        assert [[setup.name for setup in device.opened] for device in engine.status().devices] == [
            ["wpost-2KiB"]
        ]
        assert engine.preload(2 * KIB, kind="wpost") is False
        assert engine.evict(2 * KIB, kind="wpost") is True


def test_bench_proves_a_list(params: Path, home: Path) -> None:
    facts = done(
        "bench", "single", "-t", "wpost", "--vanilla", LIST, "--registered-proof", 10,
        "--randomness", document("window-2k")["randomness"], "--params", params, "--device", "cpu",
    )  # fmt: skip
    assert (facts["type"], facts["completed"]) == ("wpost", 1)
    assert cuzk.verify(ENVELOPE, bytes.fromhex(facts["proof"]), params=params).partitions == 1


def test_circuits_of_different_kinds_are_different_and_kept_apart() -> None:
    window, winning = (circuit_of(kind_named(name).shape(2 * KIB)) for name in ("wpost", "winning"))
    assert window.num_aux != winning.num_aux
    assert (window.name, winning.name) == ("window-post 2KiB", "winning-post 2KiB")
