"""`bench single` and `bench multi` over an engine whose proofs are names: figures, reports, exit codes."""

from __future__ import annotations

import json
import re
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cuzk.benchmarks.figures import Figures, Spread
from cuzk.benchmarks.jobs import bench_jobs
from cuzk.cli.engine import EngineFlags
from cuzk.config import Config
from cuzk.config.edit import with_keys
from cuzk.engine.pipeline import DevicePlace, Pipeline
from cuzk.engine.recorder import NoRecorder, Recorder
from cuzk.engine.settings import Settings
from cuzk.errors import InputError, ProofError
from cuzk.timeline.read import read_log
from tests.cli import running
from tests.engine.fakes import FakeSetup, FakeWork, Fate, raises, wrong


class FakeEngine:
    """As much of `cuzk.Engine` as a benchmark needs; every source is one fake work of three partitions."""

    def __init__(
        self, recorder: Recorder, fates: list[Fate] | None = None, settings: Settings | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.submitted: list[str] = []
        self.sources: list[Any] = []
        self._setup = FakeSetup(fates={"cuda:0": deque(fates or [])}, device_bytes=1 << 20)
        place = DevicePlace(name="cuda:0", memory_bytes=1 << 30)
        self._pipeline = Pipeline([place], host_bytes=1 << 30, settings=self.settings, recorder=recorder)
        self.status = self._pipeline.status

    def submit(self, source: Any, *, beside: Any, request_id: str) -> Any:
        self.submitted.append(request_id)
        self.sources.append(source)
        if source == "bad":
            raise InputError("this is no sector", where="bad")
        name = str(source) if isinstance(source, str | Path) else "a sector"
        work = FakeWork(name, (0, 1, 2), self._setup)
        return self._pipeline.submit(work, request_id=request_id)

    def __enter__(self) -> FakeEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.close()


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The command's engine is a fake one: `fates` are those of its proofs, `flags` what was asked for."""
    found: dict[str, Any] = {"fates": []}

    def engine(
        flags: EngineFlags, config: Config, recorder: Recorder, on_event: Any, *, synthetic: bool
    ) -> FakeEngine:
        found["flags"], found["synthetic"] = flags, synthetic
        fates = found["fates_of"](flags) if "fates_of" in found else found["fates"]
        settings = found["settings"](flags) if "settings" in found else None
        found["engine"] = FakeEngine(recorder, fates, settings)
        return found["engine"]

    monkeypatch.setattr(EngineFlags, "engine", engine)
    monkeypatch.setattr(EngineFlags, "require_cards", lambda flags, config: None)
    return found


def swept(*arguments: str) -> Result:
    return run("sweep", "-t", "porep", "--c1", "c1.json", "-c", "1", *arguments)


def run(*arguments: str) -> Result:
    return running.run("bench", *arguments)


def bench(source: str = "c1.json", *, fates: list[Fate] | None = None, **options: Any) -> Any:
    return bench_jobs(source, lambda recorder: FakeEngine(recorder, fates), **options)  # type: ignore[arg-type, return-value]


# ---- figures ----


def test_every_job_is_work_of_its_own_and_counted_once() -> None:
    result = bench(count=5, concurrency=2, warm_up=2)
    facts = result.facts()
    assert (facts["count"], facts["completed"], facts["failed"]) == (5, 5, 0)
    assert [job["job_id"] for job in facts["jobs"]] == [f"bench {k}" for k in range(1, 6)]
    assert facts["stages_ms"]["on the device"]["most"] <= facts["wall_ms"]["most"]
    assert facts["devices"]["cuda:0"]["gpu_calls"] == 15  # and not those of the warm-up
    assert facts["peak_bytes"]["cuda:0"] == 1 << 20
    assert bytes.fromhex(facts["proof"]) == b"c1.json:0;c1.json:1;c1.json:2;"
    assert facts["proofs_per_minute"] == pytest.approx(5 / facts["total_s"] * 60)
    assert result.worst_exit_code == 0


def test_jobs_that_fail_are_figures_and_decide_the_exit_code() -> None:
    good: Fate = lambda turn: None  # noqa: E731
    result = bench(fates=[good, good, good, wrong, wrong], count=3)
    assert [job.status for job in result.jobs] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert "no proof of this partition verified" in result.jobs[1].error
    assert result.worst_exit_code == ProofError.exit_code == 3
    assert bench(fates=[raises(ValueError("x"))]).worst_exit_code == 1


def test_a_source_that_is_refused_fails_its_jobs_and_leaves_no_stages() -> None:
    result = bench("bad", count=2)
    assert [(job.status, job.error) for job in result.jobs] == 2 * [("FAILED", "bad: this is no sector")]
    assert (result.figures, result.wall_ms, result.last) == (
        Figures(stages={}, devices={}, kernels={}),
        None,
        None,
    )
    assert result.worst_exit_code == 1


def kernel_lines(*kernels: tuple[int, int, int]) -> list[str]:
    """Calls whose kernels ran on a device between two moments."""
    lines = []
    for k, (device, begin, end) in enumerate(kernels):
        detail = f"worker={2 * device},partition={k},device={device}"
        lines += [
            f"TIMELINE,{begin},GPU_START,j,{detail}\n", f"TIMELINE,{begin},KERNEL_START,j,{detail}\n",
            f"TIMELINE,{end},KERNEL_END,j,{detail}\n", f"TIMELINE,{end},GPU_END,j,{detail}\n",
        ]  # fmt: skip
    return lines


def test_kernels_count_after_the_first_partition_of_their_device() -> None:
    lines = kernel_lines((0, 0, 1000), (0, 5000, 6000), (0, 6000, 7100), (1, 9000, 9500), (1, 9500, 10000))
    figures = Figures.of(lines, {0: "cuda:0", 1: "cuda:1"})
    one, two = figures.kernels["cuda:0"], figures.kernels["cuda:1"]
    assert (one.efficiency_percent, one.partition_ms) == (34.4, 1000)  # 2100 of 6100 ms
    assert (two.efficiency_percent, two.partition_ms) == (100.0, 500)
    # In 1000 ms the first proves one partition and the second two: 3 in 1000, or 1.5 a device.
    assert figures.partition_ms == pytest.approx(1000 / 1.5)


def test_one_partition_has_no_efficiency_and_a_device_without_a_clock_no_figures() -> None:
    assert Figures.of(kernel_lines((0, 0, 10)), {0: "cuda:0"}).kernels["cuda:0"].efficiency_percent is None
    figures = bench().figures
    assert figures.kernels == {} and figures.partition_ms is None


def test_a_proof_is_held_against_the_kernels_of_its_partitions(engines: dict[str, Any]) -> None:
    def kernels(turn: Any) -> None:
        with turn.on_device():
            time.sleep(0.02)
            turn.computed(20.0)

    engines["fates"] = [kernels] * 100
    arguments = ("multi", "-t", "porep", "--c1", "c1.json", "-c", "4", "-j", "2")
    shown = run(*arguments).stdout
    assert re.search(r"cuda:0 +\d+\.\d % +2\d\n", shown), shown
    kernels_of_a_proof = r"the kernels of its 3 partitions on 1 devices 0\.0\d s"
    assert re.search(rf"a proof takes \d+\.\d\d s, {kernels_of_a_proof}: \+\d+\.\d %", shown)
    engines["fates"] = [kernels] * 100
    facts = json.loads(run(*arguments, "--json").stdout)
    assert 0.06 <= facts["kernels_s"] <= facts["proof_s"]
    assert 0 < facts["kernels"]["cuda:0"]["efficiency_percent"] <= 100


def test_the_timeline_has_the_measured_jobs_only(tmp_path: Path) -> None:
    log = tmp_path / "timeline.log"
    bench(count=2, warm_up=1, timeline=log)
    [events] = read_log(log).runs
    assert {event.job for event in events} == {"bench 1", "bench 2"}
    assert {"SYNTH_START", "GPU_END", "LOCK_WAIT", "ASSEMBLED"} <= {event.name for event in events}


def test_no_more_jobs_are_under_way_than_asked_for() -> None:
    engines: list[FakeEngine] = []
    most = [0]

    class Counting(FakeEngine):
        def submit(self, source: Any, *, beside: Any, request_id: str) -> Any:
            job = super().submit(source, beside=beside, request_id=request_id)
            most[0] = max(most[0], len(self.status().jobs))
            return job

    def engine_with(recorder: Recorder) -> FakeEngine:
        engines.append(Counting(recorder))
        return engines[-1]

    bench_jobs("x", engine_with, count=20, concurrency=3)  # type: ignore[arg-type]
    assert len(engines[0].submitted) == 20 and 1 <= most[0] <= 3


@pytest.mark.parametrize(
    ("figures", "median", "p95"),
    [([7.0], 7.0, 7.0), ([1.0, 3.0], 2.0, 3.0), ([float(k) for k in range(1, 101)], 50.5, 95.0)],
    ids=["one", "two", "a hundred"],
)
def test_spreads_are_those_of_the_textbook(figures: list[float], median: float, p95: float) -> None:
    spread = Spread.of(figures)
    assert (spread.median, spread.p95, spread.least, spread.most) == (median, p95, min(figures), max(figures))
    assert spread.total == sum(figures) == pytest.approx(spread.mean * len(figures))


# ---- reports ----


def test_the_report_of_one_proof_is_the_result_block_then_ours(engines: dict[str, Any]) -> None:
    result = run("single", "-t", "porep", "--c1", "c1.json")
    assert result.exit_code == 0, result.stderr
    block = re.compile(
        r"\n=== Proof Result ===\nstatus:    COMPLETED\njob_id:    bench 1\n"
        r"timings:   total=\d+ ms \(queue=\d+ ms, srs=\d+ ms, synth=\d+ ms, gpu=\d+ ms\)\n"
        r"wall time: \d+ ms\nproof:     30 bytes \(hex: [0-9a-f]{60}\)\n"
    )
    assert block.match(result.stdout), result.stdout
    assert "stages of a partition" in result.stdout and "cuda:0" in result.stdout
    assert engines["engine"].submitted == ["bench 1"]


def test_the_report_of_many_is_that_of_the_daemons_tool_then_ours(engines: dict[str, Any]) -> None:
    for name in ("multi", "batch"):
        result = run(name, "-t", "Seal-Commit", "--c1", "c1.json", "-c", "2", "-j", "2")
        assert result.exit_code == 0, result.stderr
        seconds = r"\d+\.\ds"
        report = re.compile(
            r"=== Batch Benchmark ===\nproof type:  seal-commit\ncount:       2\nconcurrency: 2\n\n"
            + "".join(
                rf"  \[{k}/2\] COMPLETED \u2014 {seconds} \(prove=\d+ ms, queue=\d+ ms\)\n" for k in (1, 2)
            )
            + r"\n=== Batch Summary ===\n"
            rf"total time:    {seconds}\ncompleted:     2\nfailed:        0\n"
            rf"wall time:     avg={seconds} min={seconds} max={seconds}\n"
            rf"prove time:    avg={seconds} min={seconds} max={seconds}\n"
            rf"throughput:    \d+\.\d\d\d proofs/min \({seconds}/proof\)\n"
            rf"latency:       median={seconds} p95={seconds}\n"
        )
        assert report.match(result.stdout), result.stdout
        assert engines["engine"].submitted[0] == "warm-up 1"


def test_a_failed_proof_is_reported_and_ends_with_3(engines: dict[str, Any]) -> None:
    engines["fates"] = [wrong, wrong]
    single = run("single", "-t", "porep", "--c1", "c1.json")
    assert single.exit_code == 3
    assert single.stdout.startswith(
        "\n=== Proof Result ===\nstatus:    FAILED\njob_id:    bench 1\nerror:     "
    )
    multi = run("multi", "-t", "porep", "--c1", "c1.json", "-c", "1", "--warm-up", "0")
    assert multi.exit_code == 3
    assert "failed:        1\n" in multi.stdout and "throughput" not in multi.stdout


def test_json_has_the_same_facts_and_nothing_else(engines: dict[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "t.log"
    result = run("multi", "-t", "porep", "--c1", "c1.json", "-c", "2", "--json", "--timeline", str(log))
    facts = json.loads(result.stdout)
    assert (facts["type"], facts["completed"], len(facts["jobs"])) == ("porep", 2, 2)
    assert facts["settings"]["gpu_lock"] == "narrow"
    assert log.read_text().startswith("TIMELINE,")


def test_options_reach_the_engine(engines: dict[str, Any]) -> None:
    run(
        "single", "-t", "porep", "--c1", "c1.json", "--device", "cuda:0", "--device", "cpu", "--gpu-workers",
        "3", "--partition-workers", "5", "--lookahead", "7", "--gpu-lock", "coarse", "--memory", "2GiB",
        "--vram-limit", "1GiB", "--threads", "9",
    )  # fmt: skip
    assert engines["flags"] == EngineFlags(
        devices=("cuda:0", "cpu"),
        params=None,
        threads=9,
        memory=2 << 30,
        vram_limit=1 << 30,
        gpu_workers=3,
        partition_workers=5,
        lookahead=7,
        gpu_lock="coarse",
    )


def test_a_synthetic_sector_is_proven_by_an_engine_that_makes_its_parameters(
    engines: dict[str, Any], compiled: None
) -> None:
    result = run("single", "-t", "porep", "--synthetic", "--sector-size", "2KiB", "--json")
    assert result.exit_code == 0, result.stderr
    assert engines["synthetic"] and engines["engine"].sources[0].shape.name == "2KiB"
    run("single", "-t", "porep", "--c1", "c1.json")
    assert not engines["synthetic"]


@pytest.mark.parametrize("command", ["single", "multi", "sweep"])
def test_a_synthetic_sector_without_a_gpu_is_refused_before_any_work(command: str, own_home: Path) -> None:
    result = run(command, "-t", "porep", "--synthetic", "--sector-size", "2KiB", "--device", "cpu")
    assert result.exit_code == 1
    assert "parameters that live in memory need a GPU" in result.stderr and "synthesize" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["single", "--c1", "c1.json"],
        ["single", "-t", "porep"],
        ["single", "-t", "porep", "--sector-size", "2KiB"],
        ["single", "-t", "porep", "--synthetic"],
        ["single", "-t", "porep", "--synthetic", "--c1", "c1.json"],
        ["single", "-t", "wpost", "--vanilla", "x.json", "--randomness", "0g"],
        ["single", "-t", "wpost", "--vanilla", "x.json", "--randomness", "00"],
        ["single", "-t", "sealing", "--c1", "c1.json"],
        ["multi", "-t", "porep", "--c1", "c1.json", "-c", "0"],
        ["multi", "-t", "porep", "--c1", "c1.json", "--gpu-lock", "wide"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_before_any_work(arguments: list[str], engines: dict[str, Any]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and "engine" not in engines


def test_a_kind_that_there_is_not_is_told_with_the_option_that_named_it() -> None:
    assert "where: --kind" in run("single", "-t", "sealing", "--c1", "c1.json").output


def test_nothing_is_recorded_where_nobody_listens() -> None:
    assert NoRecorder().record("GPU_START", "a", partition=0) is None  # type: ignore[func-returns-value]


# ---- sweeps ----


def test_a_sweep_tries_every_set_and_writes_the_best_into_the_configuration(
    engines: dict[str, Any], tmp_path: Path
) -> None:
    tried: list[EngineFlags] = []

    def settings_of(flags: EngineFlags) -> Settings:
        tried.append(flags)
        return Settings(
            partition_workers=flags.partition_workers or 0,
            gpu_workers_per_device=flags.gpu_workers or 0,
            gpu_lock=flags.gpu_lock or "none",
        )

    def fates_of(flags: EngineFlags) -> list[Fate]:
        is_best = (flags.partition_workers, flags.gpu_lock) == (4, "coarse")
        return [] if is_best else [lambda turn: time.sleep(0.3)] * 9

    engines.update(settings=settings_of, fates_of=fates_of)
    file = tmp_path / "cuzk.toml"
    file.write_text('# mine\n[gpus]\ngpu_lock = "none"  # for now\ndevices = [0]\n[memory]\n')
    result = swept(
        "--partition-workers", "2,4", "--gpu-workers", "1", "--gpu-lock", "narrow,coarse", "--warm-up", "0",
        "--write-config", str(file),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    sets = [(one.partition_workers, one.gpu_workers, one.gpu_lock) for one in tried]
    assert sets == [(2, 1, "narrow"), (2, 1, "coarse"), (4, 1, "narrow"), (4, 1, "coarse")]
    assert re.search(r"  +4 +1  coarse +0\.\d\d +0\.\d\d +- +\d+ +0  best\n", result.stdout), result.stdout
    assert 'best: partition_workers = 4, gpu_workers_per_device = 1, gpu_lock = "coarse"' in result.stdout
    assert file.read_text() == (
        '# mine\n[gpus]\ngpu_workers_per_device = 1\ngpu_lock = "coarse"\ndevices = [0]\n[memory]\n'
        "\n[synthesis]\npartition_workers = 4\n"
    )


def test_a_sweep_in_which_proofs_fail_has_no_best_and_leaves_the_configuration_alone(
    engines: dict[str, Any], tmp_path: Path
) -> None:
    engines["fates"] = [wrong] * 9
    file = tmp_path / "cuzk.toml"
    result = swept("--warm-up", "0", "--write-config", str(file))
    assert result.exit_code == 3 and not file.exists()
    assert "no set of settings proved everything" in result.stdout


def test_a_sweep_as_json_has_every_run(engines: dict[str, Any]) -> None:
    facts = json.loads(swept("--gpu-lock", "narrow,coarse", "--json").stdout)
    assert len(facts["runs"]) == 2 and facts["best"] in [run["settings"] for run in facts["runs"]]


@pytest.mark.parametrize("value", ["0", "2,", "2,x", "narrow"])
def test_a_sweep_over_what_is_no_number_is_wrong_usage(value: str, engines: dict[str, Any]) -> None:
    assert swept("--partition-workers", value).exit_code == 2 and "engine" not in engines


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("", '[gpus]\ngpu_lock = "none"\n'),
        ("[prover]\nthreads = 2\n", '[prover]\nthreads = 2\n\n[gpus]\ngpu_lock = "none"\n'),
        ("[gpus]\n[prover]\n", '[gpus]\ngpu_lock = "none"\n[prover]\n'),
        (" [ gpus ] # x\n  gpu_lock='coarse'\n", ' [ gpus ] # x\ngpu_lock = "none"\n'),
    ],
)
def test_a_key_is_put_where_it_belongs(text: str, edited: str) -> None:
    assert with_keys(text, {"gpus.gpu_lock": "none"}, where="x") == edited


@pytest.mark.parametrize(
    "text", ['gpus = { gpu_lock = "coarse" }\n', 'gpus.gpu_lock = "coarse"\n', "[gpus\n"]
)
def test_a_file_that_is_written_otherwise_is_left_alone(text: str) -> None:
    with pytest.raises(InputError, match="not edited here") as raised:
        with_keys(text, {"gpus.gpu_lock": "none"}, where="cuzk.toml")
    assert raised.value.next == 'write yourself: gpus.gpu_lock = "none"'
