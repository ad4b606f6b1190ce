"""Whole proofs on a GPU, 2 KiB: `python3 bench/gpu_prove.py --out FOLDER`.

Parameters are made on the CPU, from the trapdoors of the vectors, and checked by their SHA-256. Then the
first proof of a process, proofs of a warm one, and whole runs of the command in processes of their own; every
proof is compared with upstream's bytes. Where one differs, each step is compared with the CPU's.
"""

from __future__ import annotations

import argparse
import cProfile
import hashlib
import io
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

import cuzk  # noqa: E402
from bench.process import as_users_have_it  # noqa: E402
from cuzk.events import Event, Notice, StageDone  # noqa: E402
from cuzk.groth16.parameters.locate import find_parameters  # noqa: E402
from cuzk.groth16.parameters.params_file import open_parameters  # noqa: E402
from cuzk.groth16.prove import begin_sums  # noqa: E402
from cuzk.groth16.target_cpu import CpuTarget  # noqa: E402
from cuzk.kernels.device.choose import choose  # noqa: E402
from cuzk.proofs.kinds import circuit_of, free_values  # noqa: E402
from cuzk.sector.porep.c1_reader import read_c1  # noqa: E402

VECTORS = ROOT / "tests/vectors/porep"
SECTOR_BYTES = 2048
FILES = ("2k-random.json", "2k-zero.json", "2k-synthetic.json")
TARGET_S = {"warm": 0.3, "from the shell": 2.0}
REPORT: dict[str, Any] = {}
_START = time.perf_counter()


def say(text: str) -> None:
    print(f"[{time.perf_counter() - _START:6.1f}] {text}", flush=True)


def attempt(name: str, part: Callable[[], Any]) -> Any:
    """The part's result; a failure is reported, and the rest goes on."""
    try:
        return part()
    except Exception:
        REPORT.setdefault("failed", {})[name] = traceback.format_exc()
        say(f"{name} FAILED\n{traceback.format_exc()}")
        return None


class Stages:
    """Seconds by stage of one run."""

    def __init__(self, *, show: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._show = show

    def hear(self, event: Event) -> None:
        if isinstance(event, StageDone):
            self.seconds[event.name] = self.seconds.get(event.name, 0.0) + event.seconds
            if self._show:
                say(f"    {event.name:<44}{1e3 * event.seconds:10.1f} ms")
        elif isinstance(event, Notice) and self._show:
            say(f"    {event.level}: {event.text}")


def parameters(folder: Path, vectors: dict[str, Any]) -> None:
    given = vectors["trapdoors"]
    trapdoors = [given[name] for name in ("alpha", "beta", "gamma", "delta", "tau")]
    stages = Stages(show=True)
    begin = time.perf_counter()
    path = cuzk.generate_parameters(
        SECTOR_BYTES, trapdoors=trapdoors, out=folder, device="cpu", on_event=stages.hear
    )[0]
    REPORT["parameters_s"] = time.perf_counter() - begin
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 24):
            digest.update(chunk)
    same = digest.hexdigest() == vectors["params_2k"]["params_sha256"]
    say(f"parameters on the CPU: {REPORT['parameters_s']:.1f} s, bytes {'ok' if same else 'WRONG'}")


def one_proof(
    file: str, folder: Path, device: str, expected: dict[str, str], *, show: bool
) -> dict[str, Any]:
    stages = Stages(show=show)
    begin = time.perf_counter()
    result = cuzk.prove(
        VECTORS / file, params=folder, device=device, insecure_rs=(13, 17), on_event=stages.hear
    )
    seconds = time.perf_counter() - begin
    same = result.proof.hex() == expected[file]
    if show or not same:
        say(f"{file}: {seconds:.3f} s, bytes {'ok' if same else 'WRONG'}")
    return {"file": file, "s": seconds, "same": same, "stages": stages.seconds}


def warm(folder: Path, device: str, expected: dict[str, str], runs: int) -> None:
    for file in FILES[1:]:
        one_proof(file, folder, device, expected, show=True)
    done = [one_proof(FILES[0], folder, device, expected, show=False) for _ in range(runs)]
    REPORT["warm"] = done
    times = sorted(run["s"] for run in done)
    say(
        f"warm, {runs} proofs: median {1e3 * median(times):.1f} ms, {1e3 * times[0]:.1f} to"
        f" {1e3 * times[-1]:.1f} ms, bytes {'ok' if all(run['same'] for run in done) else 'WRONG'},"
        f" at most {1e3 * TARGET_S['warm']:.0f} ms wanted"
    )
    for name in dict.fromkeys(name for run in done for name in run["stages"]):
        say(f"    {name:<44}{1e3 * median(run['stages'].get(name, 0.0) for run in done):10.1f} ms")


def profile(folder: Path, device: str, expected: dict[str, str]) -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    one_proof(FILES[0], folder, device, expected, show=False)
    profiler.disable()
    for order in ("tottime", "cumulative"):
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats(order).print_stats(28)
        lines = text.getvalue().replace(f"{ROOT}/", "").splitlines()
        shown = [line for line in lines if line.strip()]
        REPORT[f"profile by {order}"] = shown
        say("\n" + "\n".join(shown))


def from_the_shell(folder: Path, device: str, expected: dict[str, str], runs: int) -> None:
    command = [sys.executable, str(ROOT / "cli.py"), "prove", str(VECTORS / FILES[0])]
    command += ["--params", str(folder), "--device", device, "--insecure-rs", "13,17", "--out"]
    times = []
    for run in range(runs):
        proof = folder / f"proof-{run}.bin"
        begin = time.perf_counter()
        done = subprocess.run(
            [*command, str(proof)], capture_output=True, text=True, check=False, env=as_users_have_it()
        )
        times.append(time.perf_counter() - begin)
        same = proof.is_file() and proof.read_bytes().hex() == expected[FILES[0]]
        say(
            f"from the shell: {times[-1]:.2f} s, exit code {done.returncode},"
            f" bytes {'ok' if same else 'WRONG'}"
        )
        if run in (0, runs - 1) or not same:
            say(done.stderr[-3000:] + done.stdout[-1500:])
    REPORT["from_the_shell_s"] = times
    say(f"from the shell: median {median(times):.2f} s, {TARGET_S['from the shell']} s wanted")


def imports(device: str) -> None:
    """What a start costs before the first stage."""
    steps = {
        "python": "pass",
        "import cuzk.api": "import cuzk.api",
        "choose": f"from cuzk.kernels.device.choose import choose; choose({device!r})",
        "open the card": f"from cuzk.kernels.device.cuda import CudaDevice; CudaDevice({device!r}).close()",
        "import the target": "import cuzk.groth16.gpu.target",
        "list the kernels": "from cuzk.proofs.warm_up_gpu import _by_name; _by_name('prove', 22)",
    }
    for name, code in steps.items():
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True)
            times.append(time.perf_counter() - begin)
        REPORT.setdefault("starts_s", {})[name] = min(times)
        say(f"    {name:<44}{1e3 * min(times):10.1f} ms")


def diagnose(folder: Path, device: str) -> None:
    """Each step of one proof on both targets."""
    from cuzk.groth16.gpu.target import release, resident

    release()
    c1 = read_c1(VECTORS / FILES[0])
    found = find_parameters(c1.shape, explicit=folder)
    held = open_parameters(found.path)
    choice = choose(device)
    assert choice.card is not None
    circuit = circuit_of(c1.shape)
    free = free_values(c1, 0)
    cpu = CpuTarget(choice.host, held)

    with resident(choice.host, choice.card, held) as gpu:
        expected, _, _ = _steps(cpu, circuit, free, np.array)
        gpu.prepare()
        got, rows, h = _steps(gpu, circuit, free, lambda vector: gpu._device.download(vector))
        order = gpu._transforms.schedule.coefficients_at(np.arange(len(h)))
        _, cpu_rows, cpu_h = _steps(cpu, circuit, free, np.array, sums=False)
    say(f"rows equal: {all(np.array_equal(x, y) for x, y in zip(rows, cpu_rows, strict=True))}")
    say(f"coefficients equal: {np.array_equal(h, cpu_h[order])}")
    for section, point in expected.items():
        say(f"sum {section} equal: {got.get(section) == point}")


def _steps(target: Any, circuit: Any, free: Any, to_host: Callable[[Any], Any], *, sums: bool = True) -> Any:
    """The sums of a proof by section, its rows, and its coefficients."""
    assignment = target.assign(circuit, free)
    pending = begin_sums(target, circuit, assignment)
    vectors = target.rows(circuit, assignment)
    rows = [to_host(vector) for vector in vectors]
    h = target.quotient(vectors, _unheard)
    coefficients = to_host(h)
    found = {}
    if sums:
        found["h"] = attempt("sum h", lambda: target.sum_of_h(h, _unheard))
        for section in pending:
            found[section] = attempt(f"sum {section}", partial(pending[section], _unheard))
    return found, rows, coefficients


def _unheard(done: int, total: int) -> None:
    """Progress that nobody hears."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--params", type=Path, help="a folder of parameters that are made already")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    vectors = json.loads((VECTORS / "vectors.json").read_text(encoding="utf-8"))
    expected = {case["file"]: case["proof_r13_s17"] for case in vectors["cases"] if "proof_r13_s17" in case}
    say(f"{len(os.sched_getaffinity(0))} cores")
    with tempfile.TemporaryDirectory() as made:
        folder = options.params or Path(made)
        if not options.params:
            attempt("parameters", lambda: parameters(folder, vectors))
        first = attempt("first", lambda: one_proof(FILES[0], folder, options.device, expected, show=True))
        REPORT["first"] = first
        if first is None or not first["same"]:
            attempt("diagnose", lambda: diagnose(folder, options.device))
        else:
            attempt("warm", lambda: warm(folder, options.device, expected, options.runs))
            attempt("profile", lambda: profile(folder, options.device, expected))
            from cuzk.groth16.gpu.target import release

            release()
            again = attempt("again", lambda: one_proof(FILES[0], folder, options.device, expected, show=True))
            REPORT["first, compiled"] = again
            release()
            attempt("shell", lambda: from_the_shell(folder, options.device, expected, 5))
            attempt("starts", lambda: imports(options.device))
        (options.out / "gpu_prove.json").write_text(
            json.dumps(REPORT, indent=1, default=str), encoding="utf-8"
        )
    sys.exit(1 if "failed" in REPORT else 0)


if __name__ == "__main__":
    main()
