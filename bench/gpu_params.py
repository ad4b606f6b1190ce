"""Parameter generation on the GPU: `python3 bench/gpu_params.py --out FOLDER`.

First correctness: multiples of both generators against plain integers and the CPU's. Then times: batches
alone, whole 2 KiB parameters from the trapdoors of the vectors, stage by stage, each file checked by its
SHA-256; beside it what the disk takes for as many bytes. A part that fails is reported; the next one runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.field import encoding  # noqa: E402
from bench.gpu_parts import RESULTS, attempt, limit_seconds, report  # noqa: E402
from bench.process import as_users_have_it  # noqa: E402
from cuzk.events import StageDone, ignore  # noqa: E402
from cuzk.groth16 import generate as generation  # noqa: E402
from cuzk.groth16.parameters import writer as writing  # noqa: E402
from cuzk.groth16.values_at_tau import Trapdoors  # noqa: E402
from cuzk.kernels.device.cpu import CpuDevice  # noqa: E402
from cuzk.kernels.device.cuda import CudaDevice  # noqa: E402
from cuzk.kernels.device.cuda_card import find_card  # noqa: E402
from cuzk.kernels.device.cuda_driver import load_api  # noqa: E402
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU  # noqa: E402
from cuzk.kernels.fixed_base import FixedBase  # noqa: E402
from cuzk.kernels.fr_vector import from_integers  # noqa: E402
from cuzk.kernels.gpu.fixed_base import GpuFixedBase, kernels_of_multiples  # noqa: E402
from cuzk.kernels.modulus import FR  # noqa: E402
from cuzk.kernels.xyzz import curve_of  # noqa: E402
from cuzk.proofs.kinds import built_circuit  # noqa: E402
from cuzk.proofs.warm_up import TO_GENERATE, warm_up  # noqa: E402
from cuzk.sector.porep.shape import porep_shape  # noqa: E402

R = FR.p
SECTOR_BYTES = 2048


# Compilation, side by side


def compile_one(number: int, capability: tuple[int, int]) -> None:
    kernels_of_multiples()[number].cubin(capability)


def compile_all(host: CpuDevice) -> None:
    """The GPU's kernels and the CPU's, each in processes of their own."""
    start = time.perf_counter()
    capability = find_card(load_api(), "cuda:0").capability
    of_cpu = threading.Thread(target=warm_up, args=(host, TO_GENERATE, ignore))
    of_cpu.start()
    numbers = range(len(kernels_of_multiples()))
    with ProcessPoolExecutor(len(numbers), multiprocessing.get_context("spawn")) as pool:
        for future in [pool.submit(compile_one, number, capability) for number in numbers]:
            future.result()
    of_gpu = time.perf_counter() - start
    of_cpu.join()
    report(part="compilation", kernels=len(numbers), gpu_s=of_gpu, all_s=time.perf_counter() - start)


# Correctness


def edge_scalars(bits: int) -> list[int]:
    rnd = random.Random(bits)
    ones = sum(1 << (bits * w) for w in range(254 // bits))
    edges = [
        1,
        2,
        3,
        R - 1,
        R - 2,
        (R - 1) // 2,
        1 << 254,
        (1 << 254) - 1,
        (1 << bits) - 1,
        1 << bits,
        ones,
        2 * ones,
    ]
    edges += [1 << k for k in range(60, 68)]
    return edges + [rnd.randrange(1, R) for _ in range(8)]


def edge_cases(device: CudaDevice) -> None:
    for form in (FQ_GPU, FQ2_GPU):
        curve = curve_of(form)
        for count in (1, 300, 20_000, 10_000_000):
            base = GpuFixedBase(device, form, count, 64)
            values = edge_scalars(base.bits)
            got = base.encoded(from_integers(values))
            bad = [
                v
                for v, row in zip(values, got, strict=True)
                if row.tobytes() != encoding(curve.multiply(v, curve.generator))
            ]
            try:
                base.encoded(from_integers([5, 0]))
                refused = False
            except AssertionError:
                refused = True
            base.close()
            report(part="edges", group=curve.name, bits=base.bits, scalars=len(values), zero_refused=refused,
                   check=f"WRONG {bad[:4]}" if bad else "ok")  # fmt: skip


def random_scalars(n: int) -> np.ndarray[Any, Any]:
    words = np.random.default_rng(n).integers(1, 2**64, (n, 4), np.uint64)
    words[:, 3] %= np.uint64(R >> 192)
    return words


def against_the_cpu(device: CudaDevice, host: CpuDevice) -> None:
    for form, host_form, n in ((FQ_GPU, host.g1, 50_001), (FQ2_GPU, host.g2, 20_001)):
        scalars = random_scalars(n)
        base = GpuFixedBase(device, form, 1 << 20, n)
        got = base.encoded(scalars).copy()
        small = base.encoded(scalars[:77]).copy()
        want = np.empty_like(got)
        FixedBase(host, host_form, n).encode(scalars, want)
        ok = bool((got == want).all() and (small == want[:77]).all())
        base.close()
        report(part="against the CPU", group=curve_of(form).name, n=n, check="ok" if ok else "WRONG")


# Times


def batches(device: CudaDevice) -> None:
    for form, count in ((FQ_GPU, 7_000_000), (FQ2_GPU, 700_000)):
        for log2_n in (3, 15, 16, 17, 18, 20):
            attempt(f"batch 2^{log2_n}", lambda f=form, c=count, n=1 << log2_n: one_batch(device, f, c, n))  # type: ignore[misc]


def one_batch(device: CudaDevice, form: Any, count: int, n: int) -> None:
    start = time.perf_counter()
    base = GpuFixedBase(device, form, count, n)
    table_ms = (time.perf_counter() - start) * 1e3
    scalars = random_scalars(n)
    base.encoded(scalars)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        base.encoded(scalars)
        times.append((time.perf_counter() - start) * 1e3)
    marks: list[tuple[str, Any]] = [("start", device.new_event().record(base.stream))]
    base.mark = lambda stage: marks.append((stage, device.new_event().record(base.stream)))
    base.encoded(scalars)
    split: dict[str, float] = {}
    for (_, before), (stage, event) in zip(marks, marks[1:], strict=False):
        split[stage] = event.elapsed_ms(before)
    for _, event in marks:
        event.close()
    base.close()
    report(
        part="batch", group=curve_of(form).name, n=n, bits=base.bits, table_ms=table_ms, ms=median(times),
        best_ms=min(times), points_M=n / median(times) / 1e3, **split,
    )  # fmt: skip


def disk(folder: Path, nbytes: int) -> None:
    """As many bytes from one buffer of ordinary memory, to see what the file system takes by itself.

    In order, then to the disk; each page sent to the disk at once; the disk asked meanwhile by another
    thread; four threads at once.
    """
    path, page = folder / "disk", np.ones(12 << 20, np.uint8)
    offsets = range(0, nbytes, page.nbytes)
    for way in ("in order", "sent at once", "synced meanwhile", "four threads"):
        start = time.perf_counter()
        with path.open("xb", buffering=0) as file:
            number = file.fileno()
            with ThreadPoolExecutor(4) as pool:
                waiting: list[Future[Any]] = []
                for i, offset in enumerate(offsets):
                    if way == "four threads":
                        waiting.append(pool.submit(os.pwrite, number, page.data, offset))
                        continue
                    os.pwrite(number, page.data, offset)
                    if way == "sent at once":
                        os.posix_fadvise(number, offset, page.nbytes, os.POSIX_FADV_DONTNEED)
                    if way == "synced meanwhile" and i % 5 == 0 and (not waiting or waiting[-1].done()):
                        waiting.append(pool.submit(os.fdatasync, number))
                for future in waiting if way == "four threads" else []:
                    future.result()
                written = time.perf_counter()
            os.fsync(number)
        done = time.perf_counter()
        path.unlink()
        times = {"write_s": written - start, "total_s": done - start}
        report(part="disk alone", folder=str(folder.parent), way=way, **times)


def whole(device: CudaDevice, host: CpuDevice, folder: Path, runs: int) -> None:
    """2 KiB parameters, `runs` times; the first file's SHA-256 and every other's."""
    known = json.loads((ROOT / "tests/vectors/porep/vectors.json").read_text(encoding="utf-8"))
    trapdoors = Trapdoors.of(known["trapdoors"][name] for name in ("alpha", "beta", "gamma", "delta", "tau"))
    attempt("disk", lambda: disk(folder, 1_100_000_000))
    totals, every = [], []
    for _ in range(runs):
        shape = porep_shape(SECTOR_BYTES)
        stages: dict[str, float] = {}

        def hear(event: Any, into: dict[str, float] = stages) -> None:
            if isinstance(event, StageDone):
                into[event.name] = into.get(event.name, 0.0) + event.seconds

        start = time.perf_counter()
        circuit = built_circuit(shape)  # not the one that is kept
        stages["circuit"] = time.perf_counter() - start
        with timed_publishing(stages):
            path = generation.generate(
                host, circuit, trapdoors, gpu=device, folder=folder, stem=shape.parameter_stem,
                sector_bytes=SECTOR_BYTES, given=True, on_event=hear,
            )  # fmt: skip
        total = time.perf_counter() - start
        digest = hashlib.sha256(np.memmap(path, np.uint8, "r").data).hexdigest()
        ok = digest == known["params_2k"]["params_sha256"]
        stages["the rest"] = total - sum(stages.values())
        totals.append(total)
        every.append(stages)
        report(
            part="whole", folder=str(folder.parent), total_s=total, **stages,
            check="ok" if ok else f"WRONG {digest}",
        )  # fmt: skip
        for file_path in folder.iterdir():
            file_path.unlink()
    report(part="whole, median", folder=str(folder.parent), runs=runs, total_s=median(totals),
           **{name: median(one.get(name, 0.0) for one in every) for name in every[0]})  # fmt: skip


class timed_publishing:
    """Adds the time of the writer's last step, where it waits for the disk."""

    def __init__(self, stages: dict[str, float]) -> None:
        self._stages = stages
        self._publish = writing.ParameterWriter._publish

    def __enter__(self) -> None:
        def publish(writer: Any) -> None:
            start = time.perf_counter()
            self._publish(writer)
            self._stages["to the disk"] = time.perf_counter() - start

        writing.ParameterWriter._publish = publish  # type: ignore[assignment, method-assign]

    def __exit__(self, *_: object) -> None:
        writing.ParameterWriter._publish = self._publish  # type: ignore[method-assign]


def command(folder: Path) -> None:
    """The whole command in a process of its own, as a user types it."""
    for run in range(2):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "cli.py", "params", "generate", "--sector-size", "2KiB", "--insecure-dev",
             "--trapdoors", "2,3,5,7,11", "--out", str(folder), "--device", "cuda:0", "--json"],
            cwd=ROOT, capture_output=True, text=True, timeout=120, env=as_users_have_it(),
        )  # fmt: skip
        seconds = time.perf_counter() - start
        report(
            part="command",
            run=run,
            rc=done.returncode,
            wall_s=seconds,
            said=(done.stdout + done.stderr)[-300:],
        )
        for file_path in folder.iterdir():
            file_path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--seconds", type=float, default=170.0, help="no new part begins later than this")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--folder", type=Path, nargs="*", help="where parameters go; by default /tmp and /dev/shm"
    )
    parser.add_argument("--skip", nargs="*", default=[], help="edges, cpu, batches, whole, command")
    options = parser.parse_args()
    limit_seconds(options.seconds)
    host = CpuDevice()
    report(part="host", threads=host.threads, lanes=host.lanes)
    attempt("compilation", lambda: compile_all(host))
    try:
        with CudaDevice("cuda:0") as device:
            report(part="device", name=device.card.name, sms=device.card.multiprocessors)
            if "edges" not in options.skip:
                attempt("edges", lambda: edge_cases(device))
            if "cpu" not in options.skip:
                attempt("against the CPU", lambda: against_the_cpu(device, host))
            if "whole" not in options.skip:
                for parent in options.folder or [Path(tempfile.gettempdir()), Path("/dev/shm")]:
                    with_folder(parent, lambda folder: whole(device, host, folder, options.runs))
            if "batches" not in options.skip:
                batches(device)
            report(part="memory", used=device.memory.used_bytes, peak=device.memory.peak_bytes)
        if "command" not in options.skip:
            with_folder(Path(tempfile.gettempdir()), command)
    finally:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "gpu_params.json").write_text(json.dumps(RESULTS, indent=1, default=str))


def with_folder(parent: Path, part: Callable[[Path], None]) -> None:
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        attempt(f"in {parent}", lambda: part(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
