"""`cuzk timeline` as a user meets it: figures in words and JSON, files, errors that help, long logs."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result

from cuzk.timeline.png import has_fonts
from tests.cli import running
from tests.timeline.logs import call, synthesis, text

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def log(vectors: Path) -> str:
    return str(vectors / "timeline" / "phase7.log")


@pytest.fixture
def expected(vectors: Path) -> dict[str, object]:
    facts: dict[str, object] = json.loads((vectors / "timeline" / "phase7.expected.json").read_text())
    return facts


def run(*arguments: str, stdin: str | None = None) -> Result:
    return running.run("timeline", *arguments, stdin=stdin)


def test_json_has_the_published_figures(log: str, expected: dict[str, object], own_home: Path) -> None:
    result = run("analyze", log, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    facts = json.loads(result.stdout)
    gaps = [{name: gap[name] for name in ("gap_ms", "end_ms", "start_ms")}
            for gap in facts.pop("gaps_of_at_least_200_ms")]  # fmt: skip
    assert {**{name: facts.get(name) for name in expected}, "gaps_of_at_least_200_ms": gaps} == expected
    assert facts["lines"] == {"timeline": 660, "other": 18, "garbled": 0, "unknown": {}}


def test_words_have_the_published_figures(log: str, expected: dict[str, object], own_home: Path) -> None:
    result = run("analyze", log)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["0", "110", "453.100", "251.900", "64.3", "%", "109", "87", "14", "8", "2.311"] in lines
    gaps = expected["gaps_of_at_least_200_ms"]
    assert isinstance(gaps, list)
    shown = [line[1:4] for line in lines if len(line) > 4 and line[0] == "0" and line[1].isdigit()]
    assert [[str(gap["end_ms"]), str(gap["start_ms"]), str(gap["gap_ms"])] for gap in gaps] == [
        row for row in shown if row[0] != "110"
    ]
    assert "\x1b" not in result.stdout and "─" not in result.stdout


def test_another_length_lists_other_gaps(log: str, own_home: Path) -> None:
    facts = json.loads(run("analyze", log, "--json", "--gap-ms", "20000").stdout)
    assert [gap["gap_ms"] for gap in facts["gaps_of_at_least_20000_ms"]] == [125_976, 54_117, 40_207]


def read_to_end(screen: int) -> bytes:
    """What a terminal shows until its other end is closed."""
    shown = bytearray()
    with suppress(OSError):
        while True:
            shown += os.read(screen, 1 << 16)
    return bytes(shown)


def test_a_terminal_gets_tables_whose_figures_are_never_cut(log: str) -> None:
    screen, terminal = pty.openpty()
    arguments = [sys.executable, "cli.py", "timeline", "analyze", log]
    environment = {**os.environ, "COLUMNS": "60", "NO_COLOR": "1", "TERM": "xterm"}
    with subprocess.Popen(arguments, cwd=ROOT, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        shown = read_to_end(screen)
    os.close(screen)
    assert process.returncode == 0
    words = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())
    assert "──" in words
    for figure in ("453.100", "251.900", "64.3 %", "125976", "364.691", "162.103"):
        assert figure in words


def test_standard_input_is_a_log_too(log: str, own_home: Path) -> None:
    result = run("analyze", "-", "--json", stdin=Path(log).read_text())
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["efficiency_percent"] == 64.3


def test_what_the_figures_rest_on_is_said_beside_them(own_home: Path) -> None:
    calls = [event for worker in range(4) for event in call(worker, 50, worker, worker)]
    content = text(*calls) + "TIMELINE,9,GPU_E\n"
    result = run("analyze", "-", stdin=content)
    assert result.stderr == (
        "note: garbled TIMELINE lines, left out: 1\n"
        "note: no line names a device: 2 workers are taken to share one; --workers-per-gpu says otherwise\n"
    )
    again = run("analyze", "-", "--workers-per-gpu", "4", "--json", stdin=content)
    assert [device["device"] for device in json.loads(again.stdout)["runs"][0]["devices"]] == [0]


def test_several_runs_are_numbered(own_home: Path) -> None:
    once = [*synthesis(0, 20_000, 0), *call(20_000, 24_000, 0), *call(25_000, 30_000, 1)]
    result = run("analyze", "-", stdin=text(*once, *once))
    rows = [line.split()[:4] for line in result.stdout.splitlines()]
    assert ["1", "0", "2", "9.000"] in rows and ["2", "0", "2", "9.000"] in rows


@pytest.mark.parametrize("ending", [".svg", ".html"])
def test_a_picture_is_written_whole(ending: str, log: str, own_home: Path) -> None:
    out = own_home / f"picture{ending}"
    result = run("plot", log, "--out", str(out))
    assert (result.exit_code, result.stdout) == (0, f"written: {out}\n"), result.stderr
    content = out.read_text()
    picture = content if ending == ".svg" else content[content.index("<svg") : content.index("</svg>") + 6]
    assert len(list(ElementTree.fromstring(picture).iter())) > 500
    assert [path.name for path in own_home.iterdir()] == [out.name]


def test_a_trace_goes_to_a_file_or_to_standard_output(log: str, own_home: Path) -> None:
    out = own_home / "trace.json"
    assert run("export", log, "--format", "chrome", "--out", str(out)).exit_code == 0
    printed = run("export", log, "--format", "chrome")
    assert json.loads(printed.stdout) == json.loads(out.read_text())
    assert len(json.loads(printed.stdout)["traceEvents"]) > 220


@pytest.mark.parametrize(
    "command", [["analyze"], ["plot", "--out", "x.svg"], ["export", "--format", "chrome"]]
)
@pytest.mark.parametrize(
    ("content", "what"), [(None, "cannot be read"), ("", "no timeline"), ("INFO ready\n", "no timeline")]
)
def test_a_log_that_says_nothing_is_refused_with_what_to_do(
    command: list[str], content: str | None, what: str, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_home)
    if content is not None:
        Path("engine.log").write_text(content)
    result = run(command[0], "engine.log", *command[1:])
    assert (result.exit_code, result.stdout) == (1, "")
    labels = [line.split(":")[0].strip() for line in result.stderr.splitlines()]
    assert labels == ["error", "where", "next"] and what in result.stderr and "engine.log" in result.stderr
    assert not Path("x.svg").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze"],
        ["analyze", "LOG", "--gap-ms", "-1"],
        ["analyze", "LOG", "--workers-per-gpu", "0"],
        ["plot", "LOG"],
        ["plot", "LOG", "--out", "picture.gif"],
        ["plot", "LOG", "--out", "picture"],
        ["export", "LOG"],
        ["export", "LOG", "--format", "csv"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(
    arguments: list[str], log: str, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_home)
    result = run(*(log if argument == "LOG" else argument for argument in arguments))
    assert result.exit_code == 2, result.output
    assert result.stderr and "Traceback" not in result.stderr
    assert list(own_home.iterdir()) == []


def test_a_picture_that_could_not_be_written_is_not_begun(log: str, own_home: Path) -> None:
    result = run("plot", log, "--out", str(own_home / "none" / "x.svg"))
    assert result.exit_code == 1 and "could not be written" in result.stderr


def test_a_file_named_to_be_written_keeps_what_it_holds_when_the_log_is_bad(own_home: Path) -> None:
    out = own_home / "x.svg"
    out.write_text("precious")
    assert run("plot", "-", "--out", str(out), stdin="").exit_code == 1
    assert out.read_text() == "precious"


def test_analysing_loads_neither_numpy_nor_a_compiler(log: str) -> None:
    script = (
        "import sys\nfrom cuzk.cli import main\n"
        f"try: main(['timeline', 'analyze', {log!r}, '--json'])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not {"numpy", "numba", "llvmlite", "rich"} & set(done.stderr.split())


def long_log(jobs: int) -> str:
    """Jobs of ten partitions on two GPUs of two workers; lines come up to two seconds late."""
    events = []
    for k in range(10 * jobs):
        job, start = f"porep-1000-{k // 10}", 1000 * k
        detail, call_detail = f"partition={k % 10}", f"worker={k % 4},partition={k % 10}"
        late = k * 7919 % 2000
        events += [
            (start + late, f"TIMELINE,{start},SYNTH_START,{job},{detail}"),
            (start + 30_000 - late, f"TIMELINE,{start + 30_000},SYNTH_END,{job},{detail},synth_ms=30000"),
            (start + 30_001, f"TIMELINE,{start + 30_001},GPU_QUEUE,{job},{detail}"),
            (start + 30_002, f"TIMELINE,{start + 30_002},GPU_PICKUP,{job},{call_detail}"),
            (start + 30_003, f"TIMELINE,{start + 30_003},GPU_START,{job},{call_detail}"),
            (start + 33_900, f"TIMELINE,{start + 33_900},GPU_END,{job},{call_detail},gpu_ms=3897"),
        ]
    return "".join(f"{line}\n" for _, line in sorted(events))


@pytest.mark.parametrize("jobs", [1000, pytest.param(16_700, marks=pytest.mark.slow)])
def test_a_log_of_a_million_lines_takes_seconds(jobs: int, own_home: Path) -> None:
    """20 us a line of CPU time on a busy machine; 10 are usual."""
    path = own_home / "engine.log"
    path.write_text(long_log(jobs))
    begin = time.process_time()
    result = run("analyze", str(path))
    took = time.process_time() - begin
    assert result.exit_code == 0, result.stderr
    assert f"{60 * jobs} TIMELINE lines" in result.stdout
    assert took < 20e-6 * 60 * jobs, took


# ---- pixels ----


def size_of_png(data: bytes) -> tuple[int, int]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


@pytest.mark.skipif(find_spec("resvg_py") is None, reason="resvg-py is not installed: pip install '.[png]'")
def test_a_picture_of_pixels_has_twice_the_size_of_the_svg(log: str, tmp_path: Path, own_home: Path) -> None:
    for name in ("x.png", "x.svg"):
        result = run("plot", log, "--out", str(tmp_path / name))
        assert result.exit_code == 0, result.stderr
    box = ElementTree.parse(tmp_path / "x.svg").getroot().attrib["viewBox"].split()
    assert size_of_png((tmp_path / "x.png").read_bytes()) == (2 * int(box[2]), 2 * int(box[3]))


class Pixels(ModuleType):
    """As much of resvg_py as is used: what was asked of it, and as many bytes as words."""

    def __init__(self, fonts: bool) -> None:
        super().__init__("resvg_py")
        self.asked: list[str] = []
        self._fonts = fonts

    def svg_to_bytes(self, *, svg_string: str, zoom: int = 1) -> bytes:
        self.asked.append(svg_string)
        return b"png" + b"x" * (svg_string.count("<text") if self._fonts else 0)


@pytest.mark.parametrize("fonts", [True, False])
def test_pixels_are_those_of_the_svg_and_words_without_a_font_are_missed(
    fonts: bool, log: str, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Pixels(fonts)
    monkeypatch.setitem(sys.modules, "resvg_py", played)
    has_fonts.cache_clear()
    result = run("plot", log, "--out", str(tmp_path / "x.png"))
    has_fonts.cache_clear()
    run("plot", log, "--out", str(tmp_path / "x.svg"))
    assert played.asked[0] == (tmp_path / "x.svg").read_text()
    assert (tmp_path / "x.png").read_bytes().startswith(b"png")
    assert ("no fonts" in result.stderr) is not fonts


def test_without_the_package_pixels_are_refused_with_what_helps(
    log: str, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    result = run("plot", log, "--out", str(tmp_path / "x.png"))
    assert result.exit_code == 1 and not (tmp_path / "x.png").exists()
    assert "pip install '.[png]' in a clone of cuzk, or write .svg or .html" in result.stderr


@pytest.mark.parametrize("command", [("plot",), ("export", "--format", "chrome")], ids=" ".join)
def test_what_is_made_from_a_log_never_replaces_it(
    command: tuple[str, ...], tmp_path: Path, own_home: Path
) -> None:
    log = written(tmp_path / "own.svg", *call(0, 1000, 0))
    content = Path(log).read_bytes()
    result = run(command[0], log, *command[1:], "--out", log)
    assert result.exit_code == 2 and "would overwrite what it is made from" in result.stderr
    assert Path(log).read_bytes() == content


# ---- two logs ----


def written(path: Path, *events: Any) -> str:
    path.write_text(text(*events))
    return str(path)


def test_two_logs_are_compared_figure_by_figure(tmp_path: Path, own_home: Path) -> None:
    before = written(tmp_path / "a.log", *call(0, 1000, 0), *call(3000, 4000, 1))
    after = written(tmp_path / "b.log", *call(0, 1500, 0), *call(1500, 3000, 1))
    facts = json.loads(run("compare", before, after, "--json").stdout)
    figures = {one["name"]: one for one in facts["figures"]}
    assert figures["a proof"] == {
        "name": "a proof", "unit": "s", "wish": "less", "before": 4.0, "after": 3.0, "difference": -1.0,
        "share": -0.25, "verdict": "better",
    }  # fmt: skip
    verdicts = {name: one["verdict"] for name, one in figures.items() if one["verdict"]}
    assert verdicts == {
        "jobs not proven": "same", "a proof": "better", "a job from its first event to its last": "better",
        "GPUs idle": "better", "efficiency": "better", "gaps": "better", "a partition: call": "worse",
    }  # fmt: skip
    assert "efficiency by kernels" not in figures  # neither log has it
    shown = run("compare", before, after).stdout.splitlines()
    assert any(line.split()[:3] == ["a", "proof,", "s"] and line.endswith("better") for line in shown)
    assert shown[-1] == "worse: a partition: call"


def test_a_figure_that_one_log_lacks_has_no_verdict(tmp_path: Path, own_home: Path) -> None:
    before = written(tmp_path / "a.log", *call(0, 1000, 0))
    after = written(tmp_path / "b.log", *synthesis(0, 50, 0), *call(50, 1050, 0))
    facts = json.loads(run("compare", before, after, "--json").stdout)
    [synthesised] = [one for one in facts["figures"] if one["name"] == "a partition: synthesis"]
    assert (synthesised["before"], synthesised["after"], synthesised["verdict"]) == (None, 50, "")
    line = next(line for line in run("compare", before, after).stdout.splitlines() if "synthesis, ms" in line)
    assert line.split()[-4:] == ["-", "50", "-", "-"]


def test_a_log_is_no_better_than_itself(log: str, own_home: Path) -> None:
    shown = run("compare", log, log)
    assert shown.exit_code == 0 and shown.stdout.endswith("better: nothing\nworse: nothing\n")


# ---- a log that is still written ----


def test_following_a_pipe_says_what_ended_and_how_things_stand(own_home: Path) -> None:
    lines = text(*synthesis(0, 10, 0), *call(20, 1020, 0), (1030, "ASSEMBLED", "j", ""))
    result = subprocess.run(
        [sys.executable, "cli.py", "timeline", "follow", "-"],
        input=lines, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True,
    )  # fmt: skip
    first, last = result.stdout.splitlines()
    assert first == "1.0 s: j proven, after 1.0 s"
    assert re.match(r"1\.\d s: GPU 0 \d+\.\d % busy, - by kernels; 0 jobs, 0 partitions queued, ", last)
    assert last.endswith("0 being synthesised, 1 jobs proven")
    assert result.stderr == ""


@pytest.mark.parametrize(("signal_number", "exit_code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_following_a_terminal_draws_until_ctrl_c(signal_number: int, exit_code: int, tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text(text(*synthesis(0, 10, 0), *call(20, 1020, 0, more=",device=0")))
    screen, terminal = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "LINES": "30",
        "TERM": "xterm",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    arguments = [sys.executable, "cli.py", "timeline", "follow", str(log)]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        shown = bytearray()
        while b"worker 0" not in shown:
            shown += os.read(screen, 1 << 16)
        with log.open("a") as file:
            file.write("TIMELINE,1030,ASSEMBLED,j,\n")
        while b"1 proven" not in shown:
            shown += os.read(screen, 1 << 16)
        process.send_signal(signal_number)
        shown += read_to_end(screen)
    os.close(screen)
    assert process.returncode == exit_code
    words = shown.decode()
    assert "GPU 0" in words and "1/1 partitions" in words and "Traceback" not in words
