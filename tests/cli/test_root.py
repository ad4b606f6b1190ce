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

from cuzk import cli
from cuzk.cli import options
from cuzk.errors import DeviceError, InputError, ProofError, UsageError
from tests.cli.running import run

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = cli.main
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout and "\n\n  " in result.stdout


@pytest.mark.parametrize("option", ["-t", "--kind", "--type"])
@pytest.mark.parametrize(
    "path",
    [path for path in all_commands() if any(p.name == "kind" for p in command_at(path).params)],
    ids=" ".join,
)
def test_the_kind_of_proof_is_told_every_command_in_the_same_words(
    path: tuple[str, ...], option: str
) -> None:
    [kind] = [parameter for parameter in command_at(path).params if parameter.name == "kind"]
    assert option in kind.opts


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


@pytest.mark.parametrize(
    "arguments", [["params", "list", "--json"], ["params", "list"], ["--help"]], ids=" ".join
)
def test_a_full_disk_behind_stdout_is_an_error_as_any_other(arguments: list[str], own_home: Path) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "cli.py", *arguments], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: the disk is full\n") and "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


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
        ["sector", "synthesize", "--sector-size", "2KiB", "--registered-proof", "Foo"],
        ["sector", "synthesize", "--sector-size", "4KiB"],
        ["circuit", "info", "--sector-size", "3KiB"],
        ["params", "verify", "--sector-size", "1GiB", "--kind", "snap"],
        ["doctor", "--plan", "--kind", "banana"],
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


def test_a_mistake_in_the_configuration_is_reported_like_any_other(own_home: Path) -> None:
    (own_home / "config" / "cuzk").mkdir(parents=True)
    (own_home / "config" / "cuzk" / "cuzk.toml").write_text("[prover]\nthread = 1\n")
    result = run("params", "list")
    assert result.exit_code == 1
    assert "cuzk.toml:2" in result.stderr and "did you mean prover.threads?" in result.stderr


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


def test_the_readme_shows_only_commands_that_exist() -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.S | re.M)
    shell = [block for language, block in blocks if not language]
    lines = [shlex.split(line, comments=True) for block in shell for line in block.splitlines()]
    lines += [
        shlex.split(code) for code in re.findall(r"`(cuzk [^`]* --[^`]*)`", README) if "--help" not in code
    ]
    shown = [words[1:] for words in lines if words[:1] == ["cuzk"]]
    assert len(shown) >= 5 and ["bench", "sweep"] in [words[:2] for words in shown]
    for words in shown:
        command: click.Command = cli.main
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        command.make_context(command.name, words, resilient_parsing=False)
