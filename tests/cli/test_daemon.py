"""Commands that talk to a daemon: reports to the letter, exit codes, what is asked of the command line."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.server.processes import READY, daemon, started

POREP = Path(__file__).parents[1] / "vectors" / "porep"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = f"unix://{tmp_path_factory.mktemp('daemon') / 'cuzk.sock'}"
    with daemon("--listen", path) as process:
        process.line(READY)
        yield path


def test_the_status_report_is_that_of_curios_tool(address: str, own_home: Path) -> None:
    run("preload", "-c", "porep-2k", "-a", address)
    result = run("status", "-a", address)
    assert result.exit_code == 0
    assert re.fullmatch(
        r"""=== cuzk daemon status ===
uptime:           \d+s
proofs completed: \d+
proofs failed:    \d+
pinned memory:    \d+ / 1073741824 bytes

GPUs:
  \[0\] cuda:0 — 15 MiB / 16 MiB VRAM — idle

Loaded SRS:
  porep-2k \(tier=0, size=2097152 bytes, refs=0\)
""",
        result.stdout,
    )
    facts = json.loads(run("status", "-a", address, "--json").stdout)
    assert facts["gpus"][0]["name"] == "cuda:0"
    assert facts["loaded_srs"] == [
        {"circuit_id": "porep-2k", "tier": "HOT", "size_bytes": 2097152, "ref_count": 0}
    ]
    assert (facts["total_proofs_failed"], facts["queues"]) == (0, [])
    assert facts["pinned_memory_limit_bytes"] == 1 << 30


def test_parameters_are_loaded_and_given_back(address: str, own_home: Path) -> None:
    run("evict", "porep-2k", "-a", address)
    assert re.fullmatch(r"porep-2k loaded in \d+ ms\n", run("preload", "porep-2k", "-a", address).stdout)
    assert run("preload", "-c", "porep-2k", "-a", address).stdout == "porep-2k already loaded\n"
    evicted = run("evict", "porep-2k", "-a", address).stdout
    assert re.fullmatch(r"porep-2k evicted, 2097152 bytes freed\n", evicted)
    assert run("evict", "porep-2k", "-a", address).stdout == "porep-2k not loaded, or in use\n"
    unknown = run("preload", "nonsense", "-a", address)
    assert unknown.exit_code == 1 and "unknown circuit ID: nonsense" in unknown.stderr
    assert run("preload", "-a", address).exit_code == 2


def test_metrics_are_printed_as_they_come(address: str, own_home: Path) -> None:
    result = run("metrics", "-a", address)
    assert (result.exit_code, result.stdout) == (0, "cuzk_fake 1\n")


def test_cancelling_what_is_not_there_says_so(address: str, own_home: Path) -> None:
    result = run("cancel", "none", "-a", address)
    assert (result.exit_code, result.stdout) == (0, "none is not under way\n")
    assert json.loads(run("cancel", "none", "-a", address, "--json").stdout) == {"was_running": False}


def test_the_single_report_is_that_of_curios_tool(address: str, own_home: Path) -> None:
    c1 = str(POREP / "2k-random.json")
    result = run("bench", "single", "-t", "porep", "--c1", c1, "-a", address)
    assert result.exit_code == 0, result.output
    assert re.fullmatch(
        r"""
=== Proof Result ===
status:    COMPLETED
job_id:    [0-9a-f-]{36}
timings:   total=\d+ ms \(queue=\d+ ms, srs=\d+ ms, synth=\d+ ms, gpu=\d+ ms\)
wall time: \d+ ms
proof:     67 bytes \(hex: [0-9a-f]{134}\)
""",
        result.stdout,
    )


def test_the_batch_report_is_that_of_curios_tool_and_ours_behind_it(address: str, own_home: Path) -> None:
    c1 = str(POREP / "2k-random.json")
    result = run("bench", "batch", "-t", "porep", "--c1", c1, "-c", "4", "-j", "2", "-a", address)
    assert result.exit_code == 0, result.output
    a_line = r"  \[{}/4\] COMPLETED — \d+\.\ds \(prove=\d+ ms, queue=\d+ ms\)"
    lines = "\n".join(a_line.format(k) for k in (1, 2, 3, 4))
    times = r"avg=\d+\.\ds min=\d+\.\ds max=\d+\.\ds"
    assert re.fullmatch(
        rf"""=== Batch Benchmark ===
proof type:  porep
count:       4
concurrency: 2

{lines}

=== Batch Summary ===
total time:    \d+\.\ds
completed:     4
failed:        0
wall time:     {times}
prove time:    {times}
throughput:    \d+\.\d{{3}} proofs/min \(\d+\.\ds/proof\)
latency:       median=\d+\.\ds p95=\d+\.\ds
""",
        result.stdout,
    )


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_pieces_of_other_kinds_are_sent_as_curio_sends_them(
    packed: Callable[[bytes], bytes], address: str, own_home: Path, tmp_path: Path
) -> None:
    other, file = POREP.parent / "other", tmp_path / "pieces"
    said = json.loads((other / "window-2k.json").read_text())
    arguments = ["bench", "single", "-t", "wpost", "-a", address, "--json", "--vanilla", str(file)]
    beside = ["--randomness", said["randomness"], "--registered-proof", "10"]
    for name, more in (("window-2k.json", []), ("window-2k.vanilla.json", beside)):
        file.write_bytes(packed((other / name).read_bytes()))
        result = run(*arguments, *more)
        assert result.exit_code == 0, result.output
        assert len(json.loads(result.stdout)["jobs"]) == 1


@pytest.mark.parametrize(
    ("kind", "file", "says", "code"),
    [
        ("window-post", "porep/2k-zero.json", "is proven as porep, not as wpost", 1),
        ("snap", "other/window-2k.json", "this is a wpost input", 2),
        ("porep", "other/window-2k.vanilla.json", "give the output of Commit 1", 2),
    ],
)
def test_a_file_of_another_kind_is_not_sent(
    kind: str, file: str, says: str, code: int, address: str, own_home: Path
) -> None:
    result = run("bench", "single", "-t", kind, "-a", address, "--vanilla", str(POREP.parent / file))
    assert result.exit_code == code and says in result.stderr


def test_a_proof_that_fails_gives_3_and_a_bad_input_1(address: str, own_home: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"bad input")
    result = run("bench", "single", "-t", "porep", "--c1", str(bad), "-a", address)
    assert result.exit_code == 1 and "partition 3, challenge 7" in result.stdout
    assert re.match(r"\n=== Proof Result ===\nstatus:    FAILED\njob_id:    .*\nerror:     ", result.stdout)
    hopeless = tmp_path / "fails.json"
    hopeless.write_bytes(b"fails")
    result = run("bench", "multi", "-t", "porep", "--c1", str(hopeless), "-c", "2", "-a", address)
    assert result.exit_code == 3 and "failed:        2" in result.stdout


def test_a_refused_input_is_told_with_one_place_and_one_next_step(
    address: str, own_home: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"bad input")
    said = run("bench", "single", "-t", "porep", "--c1", bad, "-a", address).stdout
    [line] = [line for line in said.splitlines() if line.startswith("error:")]
    assert line.split("error:")[1].strip().startswith("partition 3, challenge 7: ")
    assert "mend the request" not in line


def test_a_port_of_http_is_told_as_that(own_home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_answer_as_http, args=(server,), daemon=True).start()
        result = run("status", "-a", f"127.0.0.1:{server.getsockname()[1]}")
    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    assert "does not speak gRPC" in said and "not that of --status-listen" in said


def _answer_as_http(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            line, _ = server.accept()
            with line:
                line.recv(4096)
                line.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nwhat")


def test_without_a_daemon_there_is_an_error_that_says_where(own_home: Path, tmp_path: Path) -> None:
    result = run("status", "-a", f"unix://{tmp_path}/none.sock")
    assert result.exit_code == 1 and "cannot be reached" in result.stderr and "none.sock" in result.stderr
    assert run("status", "-a", "nonsense").exit_code == 2


def test_without_an_address_the_daemon_is_where_the_configuration_says(
    address: str, own_home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cuzk.toml"
    path.write_text(f'[daemon]\nlisten = "{address}"\n')
    assert run("status", "--config", str(path)).exit_code == 0


def test_options_of_an_engine_mean_nothing_to_a_daemon(address: str, own_home: Path) -> None:
    c1 = str(POREP / "2k-random.json")
    result = run("bench", "single", "-t", "porep", "--c1", c1, "-a", address, "--gpu-workers", "3")
    assert result.exit_code == 2 and "gpu_workers would change nothing" in result.stderr


def test_serve_proves_until_a_signal_comes(own_home: Path, tmp_path: Path) -> None:
    """The whole command, on the CPU: from the configuration file of Curio's daemon to exit 0."""
    path, config = tmp_path / "run" / "cuzk.sock", tmp_path / "cuzk.toml"
    config.write_text(
        f'[daemon]\nlisten = "unix://{path}"\n[srs]\nparam_cache = "{tmp_path}"\n[gpus]\ndevices = ["cpu"]\n'
    )
    command = [sys.executable, "-u", "-m", "cuzk.cli", "serve", "-c", str(config)]
    compiled = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    with started(command, patience_s=600, env=compiled) as served:  # kernels may have to be compiled
        served.line(READY)
        assert run("status", "-a", f"unix://{path}").exit_code == 0
        c1 = str(POREP / "2k-random.json")
        unprovable = run("bench", "single", "-t", "porep", "--c1", c1, "-a", f"unix://{path}")
        assert unprovable.exit_code == 3 and ".params is missing" in unprovable.stdout, unprovable.output
        served.signal(signal.SIGTERM)
        served.popen.wait(60)
        assert served.ends() == 0 and not path.exists()
        assert not [line for line in served.errors if not line.startswith("TIMELINE,")]
        told = f"cuzk_daemon: configuration loaded listen=unix://{path}"
        assert any(line.endswith(told) for line in served.lines)
        assert "shut down" in served.lines[-1]


@pytest.mark.parametrize(("option", "value"), [("--listen", "somewhere"), ("--status-listen", "12")])
def test_an_address_is_blamed_on_the_option_that_gave_it(option: str, value: str, own_home: Path) -> None:
    result = run("serve", option, value)
    assert result.exit_code == 2
    assert re.search(rf"{value}' is no address\n +where: {option}\n", result.stderr), result.stderr


def test_a_library_that_is_missing_is_the_machines_fault(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    result = run("status", "-a", "unix:///nowhere.sock")
    assert result.exit_code == 1
    assert "pip install '.[server]' in a clone of cuzk" in result.stderr
