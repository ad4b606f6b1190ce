"""The commands as a user meets them: help, exit codes, messages, and what goes to which stream."""

from __future__ import annotations

import errno
import json
import re
import resource
import shlex
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import cuzk
from cuzk import cli
from cuzk.cli import options
from cuzk.errors import DeviceError, InputError, ProofError, UsageError
from cuzk.sector.c1 import read_c1

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, arguments)


def failing(error: BaseException, *flags: str) -> Result:
    """What a user sees when a command of the same root class meets `error`."""

    @click.group(cls=cli.Cli)
    def root() -> None:
        pass

    @root.command()
    @options.debug_option
    @options.json_option
    def work(as_json: bool) -> None:
        raise error

    return CliRunner().invoke(root, ["work", *flags])


def all_commands(group: click.Group = cli.main, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    for name, command in group.commands.items():
        inner = (*path, name)
        found += all_commands(command, inner) if isinstance(command, click.Group) else [inner]
    return found


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout and "\n\n  " in result.stdout


def test_help_takes_at_most_three_tenths_of_a_second() -> None:
    seconds = []  # of CPU time, so that a busy machine does not count
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "cli.py", "--help"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) <= 0.3


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (InputError("x"), 1),
        (DeviceError("x"), 1),
        (UsageError("x"), 2),
        (ProofError("x"), 3),
        (MemoryError(), 1),
        (OSError(errno.ENOSPC, "No space left on device", "/data/p"), 1),
        (PermissionError(errno.EACCES, "Permission denied", "/data/p"), 1),
        (ZeroDivisionError("division by zero"), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_ends_with_the_code_of_its_kind_and_no_traceback(
    error: BaseException, exit_code: int
) -> None:
    result = failing(error)
    assert result.exit_code == exit_code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.strip()


def test_an_error_says_what_where_and_what_next() -> None:
    error = InputError(
        "column does not hash to comm_c", where="partition 3, challenge 17", next="run C1 again"
    )
    assert failing(error).stderr == (
        "error: column does not hash to comm_c\n  where: partition 3, challenge 17\n  next:  run C1 again\n"
    )


def test_a_full_disk_is_named_with_its_file() -> None:
    stderr = failing(OSError(errno.ENOSPC, "No space left on device", "/data/p")).stderr
    assert "the disk is full" in stderr and "/data/p" in stderr and "free some space" in stderr


def test_a_mistake_of_ours_is_owned_up_to() -> None:
    stderr = failing(ZeroDivisionError("division by zero")).stderr
    assert "mistake in cuzk" in stderr and "ZeroDivisionError" in stderr and "--debug" in stderr


def test_debug_shows_the_traceback() -> None:
    assert "Traceback (most recent call last)" in failing(InputError("x"), "--debug").stderr


def test_json_gets_the_error_as_json_and_nothing_else_on_stdout() -> None:
    result = failing(InputError("x", where="y", next="z"), "--json")
    assert json.loads(result.stdout) == {"error": {"what": "x", "where": "y", "next": "z"}}
    assert "error: x" in result.stderr


def test_a_python_warning_becomes_a_plain_line() -> None:
    @click.group(cls=cli.Cli)
    def root() -> None:
        pass

    @root.command()
    def work() -> None:
        warnings.warn("the cache is read-only", UserWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = CliRunner().invoke(root, ["work"])
    assert result.stderr == "warning: the cache is read-only\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["prove"],
        ["prove", "c1.json", "--insecure-rs", "13"],
        ["prove", "c1.json", "--insecure-rs", "13,x"],
        ["prove", "c1.json", "--insecure-rs", "13,-1"],
        ["prove", "c1.json", "--threads", "0"],
        ["prove", "c1.json", "--partition", "-1"],
        ["params", "generate", "--insecure-dev"],
        ["params", "generate", "--insecure-dev", "--sector-size", "2Ki"],
        ["params", "generate", "--sector-size", "2KiB"],
        ["params", "generate", "--insecure-dev", "--sector-size", "2KiB", "--trapdoors", "2,3,5,7"],
        ["params", "generate", "--insecure-dev", "--sector-size", "2KiB", "--vk-only", "--ephemeral"],
        ["params", "generate", "--insecure-dev", "--sector-size", "2KiB", "--vram-limit", "16GiB"],
        ["params", "fetch"],
        ["sector", "synthesize"],
        ["sector", "synthesize", "--sector-size", "2KiB", "--seed", "-1"],
        ["sector", "synthesize", "--sector-size", "2KiB", "--registered-proof", "StackedDrg8MiBV1"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_before_any_work(arguments: list[str], own_home: Path) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr and "Traceback" not in result.stderr


def test_integers_are_read_in_decimal_and_hexadecimal() -> None:
    assert options.Integers("R", "S").convert("13, 0x11", None, None) == (13, 17)


def test_a_proof_that_could_not_be_written_is_not_begun(own_home: Path, vectors: Path) -> None:
    c1 = str(vectors / "porep" / "2k-zero.json")
    result = run("prove", c1, "--out", str(own_home / "none" / "proof.bin"))
    assert result.exit_code == 1
    assert "could not be written" in result.stderr


def test_a_mistake_in_the_configuration_is_reported_like_any_other(own_home: Path) -> None:
    (own_home / "config" / "cuzk").mkdir(parents=True)
    (own_home / "config" / "cuzk" / "cuzk.toml").write_text("[prover]\nthread = 1\n")
    result = run("params", "list")
    assert result.exit_code == 1
    assert "cuzk.toml:2" in result.stderr and "did you mean prover.threads?" in result.stderr


def test_doctor_says_the_same_in_words_and_in_json(own_home: Path) -> None:
    words, facts = run("doctor"), json.loads(run("doctor", "--json").stdout)
    assert words.exit_code == 0
    assert {"software", "processor", "memory", "gpu", "compiled code", "parameters"} <= facts.keys()
    for section in ("software", "processor"):
        for value in facts[section].values():
            assert str(value) in words.stdout
    assert str(own_home / "parameters") in facts["parameters"]


def test_an_empty_search_lists_no_parameters(own_home: Path) -> None:
    assert json.loads(run("params", "list", "--json").stdout) == []
    assert "no parameters found" in run("params", "list").stdout


def test_circuit_info_gives_the_published_counts(vectors: Path, own_home: Path) -> None:
    published = json.loads((vectors / "porep" / "vectors.json").read_text())
    partition, params = published["cases"][0]["partitions"][0], published["params_2k"]
    facts = json.loads(run("circuit", "info", "--sector-size", "2KiB", "--json").stdout)
    for name in ("constraints_with_dummies", "inputs", "aux", "nnz_abc"):
        assert facts["circuit"][name] == partition[name]
    assert facts["parameters"]["bytes"] == params["params_bytes"]
    counts = {name: facts["parameters"][f"points_{name}"] for name in ("h", "l", "a", "ic")}
    assert counts == {name: params["points"][name] for name in counts}
    assert facts["parameters"]["points_b"] == params["points"]["b_g1"]
    rows = sum(entry["instances"] * entry["rows"] for entry in facts["templates"])
    assert rows + partition["inputs"] == partition["constraints_with_dummies"]


def test_a_verifying_key_is_made_without_its_parameters(vectors: Path, own_home: Path) -> None:
    known, out = json.loads((vectors / "porep" / "vectors.json").read_text()), own_home / "key"
    trapdoors = ",".join(str(known["trapdoors"][name]) for name in ("alpha", "beta", "gamma", "delta", "tau"))
    arguments = ["--sector-size", "2KiB", "--vk-only", "--trapdoors", trapdoors, "--out", str(out)]
    result = run("params", "generate", "--insecure-dev", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    vk, meta = (Path(name) for name in json.loads(result.stdout)["written"])
    assert vk.read_bytes() == (vectors / "porep" / "2k.vk").read_bytes()
    assert json.loads(meta.read_bytes()) == {"sector_size": 2048}
    mark = vk.with_suffix(".insecure-dev.json")
    assert sorted(out.iterdir()) == sorted([vk, meta, mark])


def test_a_verifying_key_that_could_not_be_written_is_not_begun(own_home: Path) -> None:
    (own_home / "file").touch()
    arguments = ["--sector-size", "2KiB", "--vk-only", "--out", str(own_home / "file" / "folder")]
    result = run("params", "generate", "--insecure-dev", *arguments)
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr and "values at tau" not in result.stderr


def test_parameters_in_memory_need_a_gpu_and_say_so_at_once(own_home: Path) -> None:
    arguments = ["--sector-size", "2KiB", "--ephemeral", "--device", "cpu"]
    result = run("params", "generate", "--insecure-dev", *arguments)
    assert result.exit_code == 1
    assert "need a GPU" in result.stderr and "synthesize" not in result.stderr


def test_circuit_digest_gives_what_upstream_gives(vectors: Path, own_home: Path) -> None:
    case = json.loads((vectors / "porep" / "vectors.json").read_text())["cases"][0]
    expected = case["partitions"][0]
    result = run("circuit", "digest", str(vectors / "porep" / case["file"]), "--check", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["circuit"]["r1cs_digest"] == expected["r1cs_digest"]
    for name in ("inputs", "aux", "a", "b", "c"):
        assert facts["partition 0"][f"{name}_digest"] == expected[f"{name}_digest"]
    assert facts["partition 0"]["unsatisfied"] is None


def test_ctrl_c_in_the_middle_of_work_ends_plainly(vectors: Path) -> None:
    arguments = [sys.executable, "cli.py", "circuit", "digest", str(vectors / "porep" / "2k-zero.json")]
    with subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None and process.stdout is not None
        assert process.stderr.readline().startswith("read:")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "\ninterrupted\n")


def test_a_partition_that_is_not_there_is_a_mistake_of_usage(vectors: Path, own_home: Path) -> None:
    result = run("circuit", "digest", str(vectors / "porep" / "2k-zero.json"), "--partition", "1")
    assert result.exit_code == 2
    assert "there is no partition 1" in result.stderr


def test_inspect_shows_what_the_sector_is(vectors: Path, own_home: Path) -> None:
    case = json.loads((vectors / "porep" / "vectors.json").read_text())["cases"][0]
    result = run("sector", "inspect", str(vectors / "porep" / case["file"]), "--miner", "1000", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    for name in ("comm_d", "comm_r", "replica_id", "seed", "ticket"):
        assert facts["commitments"][name] == case[name]
    assert facts["sector"]["registered_proof"] == case["registered_proof"]
    assert facts["parameters"]["name"] == case["parameter_id"]


def test_a_synthetic_sector_is_called_that_and_passes_inspection(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_home)
    result = run("sector", "synthesize", "--sector-size", "8MiB", "--seed", "12")
    assert result.exit_code == 0, result.stderr
    name = "c1-synthetic-StackedDrg8MiBV1_1-12.json"
    assert result.stdout == f"written: {name}\n"
    assert "note: a synthetic sector: nobody sealed it" in result.stderr
    facts = json.loads(run("sector", "inspect", name, "--miner", "1000", "--json").stdout)
    assert facts["sector"]["synthesized"] is True
    assert (facts["sector"]["sector_size"], facts["sector"]["sector_number"]) == ("8MiB", 1)
    assert list(own_home.glob(".*")) == []


def test_a_file_that_stands_is_not_replaced_by_a_synthetic_sector(own_home: Path) -> None:
    path = own_home / "c1.json"
    path.write_bytes(b"precious")
    result = run("sector", "synthesize", "--sector-size", "2KiB", "--out", str(path))
    assert result.exit_code == 1
    assert "there is a file already" in result.stderr and str(path) in result.stderr
    assert path.read_bytes() == b"precious"


def test_a_synthetic_sector_that_could_not_be_written_is_not_begun(own_home: Path) -> None:
    result = run("sector", "synthesize", "--sector-size", "2KiB", "--out", str(own_home / "none" / "c1.json"))
    assert result.exit_code == 1
    assert "could not be written" in result.stderr and "synthesize:" not in result.stderr


def test_a_sector_that_only_sealing_makes_leaves_no_file(own_home: Path) -> None:
    path, name = own_home / "c1.json", "StackedDrg32GiBV1_1_Feat_SyntheticPoRep"
    result = run(
        "sector", "synthesize", "--sector-size", "32GiB", "--registered-proof", name, "--out", str(path)
    )
    assert result.exit_code == 2
    assert "only a sealed sector has the answers" in result.stderr and not path.exists()


def test_python_gets_the_sector_that_the_command_writes(own_home: Path) -> None:
    path = own_home / "c1.json"
    c1 = cuzk.synthesize(2048, seed=3, registered_proof="StackedDrg2KiBV1", out=path)
    assert read_c1(path).comm_r == c1.comm_r
    again = run("sector", "synthesize", "--sector-size", "2KiB", "--seed", "3", "--registered-proof",
                "StackedDrg2KiBV1", "--out", str(own_home / "again.json"), "--json")  # fmt: skip
    assert json.loads(again.stdout) == {"written": [str(own_home / "again.json")]}
    assert (own_home / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("content", [None, b"", b"{", b"[1, 2]", b"\x1f\x8b\x08"])
def test_a_file_that_is_no_sector_ends_with_1_and_its_name(content: bytes | None, own_home: Path) -> None:
    path = own_home / "c1.json"
    if content is not None:
        path.write_bytes(content)
    result = run("sector", "inspect", str(path))
    assert result.exit_code == 1
    assert "c1.json" in result.stderr and "next:" in result.stderr


def test_the_readme_shows_only_commands_that_exist() -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), flags=re.S | re.M)
    shell = [block for language, block in blocks if not language]
    lines = [shlex.split(line, comments=True) for block in shell for line in block.splitlines()]
    shown = [words[1:] for words in lines if words[:1] == ["cuzk"]]
    assert len(shown) >= 5
    for words in shown:
        command: click.Command = cli.main
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        command.make_context(command.name, words, resilient_parsing=False)
