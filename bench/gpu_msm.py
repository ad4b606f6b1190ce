"""MSM, sums over bits and pair additions on the GPU: `python -m bench.gpu_msm --out FOLDER`.

Pair additions alone, whole MSMs with their stages, sums of selected points. Points are i*G, made on the
device by doubling the set, so that each result is checked against one multiple of the generator; edge cases
are in tests/gpu. A part that fails is reported, and the next one runs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import types

from bench.gpu_parts import RESULTS, attempt, limit_seconds, report
from bench.runner import machine_of
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import load_api
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.msm import GpuMsm, workspace_bytes
from cuzk.kernels.gpu.pair_add import SIGN, pair_add_kernel
from cuzk.kernels.gpu.selected_sum import GpuSelectedSum
from cuzk.kernels.gpu.sum_plan import msm_plan
from cuzk.kernels.gpu.sum_schedule import (
    DEFAULT_SHAPES,
    PairShape,
    prefix_rows,
    selected_layout,
    selected_plan,
)
from cuzk.kernels.gpu.tail_sum import sum_lists_kernel
from cuzk.kernels.modulus import FQ, FR
from cuzk.kernels.xyzz import curve_of

R = FR.p


# Compilation, in processes side by side: the cards wait for nobody

PAIR_SHAPES = {
    1: [
        PairShape(256, 2, 248, True), PairShape(256, 2, 248, False), PairShape(256, 2, 124, False),
        PairShape(128, 4, 248, False), PairShape(128, 3, 248, True), PairShape(64, 4, 16, True),
        PairShape(32, 8, 16, False), PairShape(128, 2, 16, True),
    ],
    2: [
        PairShape(128, 2, 124, True), PairShape(128, 2, 124, False), PairShape(64, 4, 124, False),
        PairShape(64, 4, 16, True), PairShape(64, 2, 16, True),
    ],
}  # fmt: skip
TAIL_THREADS = {1: [32, 64, 128], 2: [32, 64]}


def kernels() -> list[tuple[str, int, Any]]:
    pairs = [
        ("pair", degree, shape)
        for degree in (1, 2)
        for shape in dict.fromkeys([*DEFAULT_SHAPES[degree], *PAIR_SHAPES[degree]])
    ]
    tails = [("tail", degree, threads) for degree in (2, 1) for threads in TAIL_THREADS[degree]]
    return [*tails, *reversed(pairs)]


def compile_one(what: tuple[str, int, Any], capability: tuple[int, int]) -> None:
    kind, degree, shape = what
    form = FQ_GPU if degree == 1 else FQ2_GPU
    (pair_add_kernel(form, shape) if kind == "pair" else sum_lists_kernel(form, shape)).cubin(capability)


def compile_all(processes: int) -> None:
    capability = find_card(load_api(), "cuda:0").capability
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for future in [pool.submit(compile_one, what, capability) for what in kernels()]:
            future.result()
    report(part="compilation", kernels=len(kernels()), processes=processes)


# Points


def element_words(form: Any, value: Any) -> list[int]:
    components = (value,) if form.degree == 1 else value
    return [word for part in components for word in FQ.limbs((part << 384) % FQ.p, 12, 32)]


def upload_points(device: CudaDevice, form: Any, points: list[Any]) -> tuple[Any, Any]:
    rows = np.zeros((2, max(len(points), 1), form.words), np.uint32)
    for i, point in enumerate(points):
        if point is not None:
            for axis in range(2):
                rows[axis, i] = element_words(form, point[axis])
    x, y = (device.upload(np.ascontiguousarray(axis)) for axis in rows)
    return x.rows(0, len(points)), y.rows(0, len(points))


@cuda_jit(pointer(types.uint64), types.uint32, types.uint32)
def shifted_pairs(pairs, count, m):  # type: ignore[no-untyped-def]
    """Pair q: slot q with slot m - 1."""
    q = np.int64(cuda.blockIdx.x) * 256 + cuda.threadIdx.x
    if q < count:
        pairs[q] = np.uint64(q) | np.uint64(m - 1) << np.uint64(32)


class PairRound:
    """One launch of the pair kernel with its scratch, for measurements."""

    def __init__(self, device: CudaDevice, form: Any, shape: PairShape, most_pairs: int) -> None:
        self.device, self.form, self.shape = device, form, shape
        sms = device.card.multiprocessors
        self.blocks = shape.blocks * sms
        self.prefixes = device.allocate((prefix_rows(shape, sms, most_pairs), form.words), np.uint32)
        self.sizes, self.bases = device.allocate(1, np.uint32), device.allocate(2, np.uint32)
        self.kernel = device.load(pair_add_kernel(form, shape))

    def prepare(self, x: Any, y: Any, n: int, out_x: Any, out_y: Any, pairs: Any, count: int) -> Any:
        self.device.upload(np.array([count], np.uint32), into=self.sizes)
        self.device.upload(np.array([0, count], np.uint32), into=self.bases)
        return self.kernel.prepare(
            self.blocks,
            self.shape.threads,
            x,
            y,
            out_x,
            out_y,
            n,
            pairs,
            self.sizes,
            self.bases,
            0,
            self.prefixes,
        )

    def close(self) -> None:
        for array in (self.prefixes, self.sizes, self.bases):
            array.close()


def multiples(device: CudaDevice, form: Any, n: int) -> tuple[Any, Any]:
    """G, 2G, ..., nG on the device."""
    curve = curve_of(form)
    x, y = (device.allocate((n, form.words), np.uint32) for _ in range(2))
    first = upload_points(device, form, [curve.generator])
    device.copy(first[0], x.rows(0, 1))
    device.copy(first[1], y.rows(0, 1))
    shape = PairShape(256, 2, 248) if form.degree == 1 else PairShape(128, 2, 124)
    half = max(n // 2, 1)
    adder = PairRound(device, form, shape, half)
    pairs = device.allocate(half + 1, np.uint64)
    m = 1
    while m < n:
        count = min(m, n - m)
        device.launch(shifted_pairs, -(-count // 256), 256, pairs, count, m)
        adder.prepare(x, y, m, x.rows(m, n), y.rows(m, n), pairs, count).run(device.stream)
        device.synchronise()
        m += count
    samples = sorted({0, 1, 2, n // 3, n // 2, n - 2, n - 1} & set(range(n)))
    for i in samples:
        got = tuple(device.download(axis.rows(i, i + 1))[0].tolist() for axis in (x, y))
        point = curve.multiply(i + 1, curve.generator)
        assert point is not None
        want = tuple(element_words(form, coordinate) for coordinate in point)
        assert got == want, f"point {i} of {n} is wrong"
    adder.close()
    pairs.close()
    return x, y


# Scalars


def random_scalars(n: int) -> np.ndarray[Any, Any]:
    words = np.random.default_rng(n).integers(0, 2**64, (n, 4), np.uint64)
    words[:, 3] %= np.uint64(R >> 192)
    return words


def scalars_of(values: list[int]) -> np.ndarray[Any, Any]:
    return np.array([FR.limbs(value, 4, 64) for value in values], np.uint64).reshape(-1, 4)


def dot(scalars: np.ndarray[Any, Any]) -> int:
    """Sum of (i + 1) * scalar i."""
    total = 0
    for start in range(0, len(scalars), 1 << 20):
        block = scalars[start : start + (1 << 20)]
        numbers = np.arange(start + 1, start + 1 + len(block), dtype=np.uint64)
        for j in range(8):
            product = (block[:, j // 2] >> np.uint64(32 * (j % 2)) & np.uint64(2**32 - 1)) * numbers
            low, high = product & np.uint64(2**32 - 1), product >> np.uint64(32)
            total += (int(low.sum()) + (int(high.sum()) << 32)) << (32 * j)
    return total % R


# Parts


def pair_rates(device: CudaDevice, form: Any, x: Any, y: Any, n: int, shapes: list[PairShape]) -> None:
    rng = np.random.default_rng(3)
    count = n
    codes = rng.integers(0, n, (count, 2), np.uint32)
    codes[:, 1] = np.where(codes[:, 0] == codes[:, 1], (codes[:, 1] + 1) % n, codes[:, 1])
    signed = codes | (rng.integers(0, 2, codes.shape, np.uint32) * np.uint32(SIGN))
    neighbours = np.arange(2 * count, dtype=np.uint32).reshape(-1, 2) % np.uint32(n)
    lists = {"random": signed, "sequential": neighbours}
    uploaded = {
        name: device.upload(np.ascontiguousarray(codes).view(np.uint64).reshape(-1))
        for name, codes in lists.items()
    }
    out_x, out_y = (device.allocate((count, form.words), np.uint32) for _ in range(2))
    stream, events = device.stream, [device.new_event() for _ in range(2)]
    reference: dict[str, Any] = {}

    def one_shape(shape: PairShape) -> None:
        adder = PairRound(device, form, shape, count)
        facts: dict[str, Any] = {"registers": adder.kernel.registers, "local": adder.kernel.local_bytes,
                                 "blocks_sm": adder.kernel.blocks_at_once(shape.threads)}  # fmt: skip
        for name, pairs in uploaded.items():
            for size in (count, 1 << 20, 1 << 16, 1 << 12):
                launch = adder.prepare(x, y, n, out_x, out_y, pairs, min(size, count))
                times = []
                for _ in range(5):
                    events[0].record(stream)
                    launch.run(stream)
                    events[1].record(stream)
                    times.append(events[1].elapsed_ms(events[0]))
                best = min(times)
                if size == count:
                    facts[f"{name}_G"] = size / best / 1e6
                    sums = tuple(
                        int(device.download(axis.rows(0, 1 << 16)).astype(np.uint64).sum())
                        for axis in (out_x, out_y)
                    )
                    facts[f"{name}_same"] = reference.setdefault(name, sums) == sums
                elif name == "random":
                    facts[f"us_{size}"] = best * 1e3
        adder.close()
        report(
            part="pairs", group=curve_of(form).name, n=n, shape=str(shape).removeprefix("PairShape"), **facts
        )

    for shape in shapes:
        attempt(f"pairs {shape}", lambda s=shape: one_shape(s))  # type: ignore[misc]
    for array in (*uploaded.values(), out_x, out_y):
        array.close()


def timed(
    device: CudaDevice, submit: Callable[[], None], finish: Callable[[], Any], runs: int
) -> dict[str, Any]:
    """Medians of whole runs by the host's clock, of the card's part by events, of the host's after it."""
    events = [device.new_event() for _ in range(2)]
    walls, cards, folds = [], [], []
    for _ in range(runs):
        device.synchronise()
        start = time.perf_counter()
        events[0].record(device.stream)
        submit()
        events[1].record(device.stream)
        device.stream.synchronise()
        summed = time.perf_counter()
        finish()
        end = time.perf_counter()
        walls.append((end - start) * 1e3)
        folds.append((end - summed) * 1e3)
        cards.append(events[1].elapsed_ms(events[0]))
    medians = {name: float(np.median(times)) for name, times in
               (("ms", walls), ("card_ms", cards), ("fold_ms", folds))}  # fmt: skip
    return {**medians, "best_ms": min(walls)}


def msm_case(
    device: CudaDevice, form: Any, x: Any, y: Any, n: int, scalars: Any, want: Any, *, name: str = "random",
    runs: int = 10, stages: bool = True, note: str = "", **changes: Any,
) -> None:  # fmt: skip
    given = {name: changes.pop(name, None) for name in ("windows", "windows_a_pass")}
    p = replace(msm_plan(form, n, **given), **changes)
    points = x.rows(0, n), y.rows(0, n)
    with (
        device.allocate(workspace_bytes(device, form, p), np.uint8) as workspace,
        GpuMsm(device, form, *points, p, workspace) as msm,
        GpuMsm(device, form, *points, p, workspace, use_graphs=False) as plain,
    ):
        ok = msm.run(scalars) == want and msm.run(scalars) == want
        facts = timed(device, lambda: msm.submit(scalars), lambda: msm.collect()(), runs)
        report(part="msm", group=curve_of(form).name, n=n, scalars=name, c=p.c, windows=p.windows,
        a_pass=p.windows_a_pass,
               **facts, GB=workspace.nbytes / 1e9, note=note, check="ok" if ok else "WRONG")  # fmt: skip
        if stages:
            assert plain.run(scalars) == want
            marks: list[tuple[str, Any]] = [("start", device.new_event().record(device.stream))]
            plain.mark = lambda stage: marks.append((stage, device.new_event().record(device.stream)))
            plain.submit(scalars)
            device.synchronise()
            split: dict[str, float] = defaultdict(float)
            for (_, before), (stage, event) in zip(marks, marks[1:], strict=False):
                split[stage] += event.elapsed_ms(before)
            report(part="stages", n=n, **{stage.replace(" ", "_"): ms for stage, ms in split.items()},
                   sum=sum(split.values()))  # fmt: skip
            for _, event in marks:
                event.close()


def msm_times(
    device: CudaDevice, form: Any, x: Any, y: Any, log2_n: int, variants: list[dict[str, Any]]
) -> None:
    n = 1 << log2_n
    host = random_scalars(n)
    curve = curve_of(form)
    want = curve.multiply(dot(host), curve.generator)
    with device.upload(host) as scalars:
        for variant in variants:
            work = partial(msm_case, device, form, x, y, n, scalars, want, **variant)
            attempt(f"msm {n} {variant}", work)


OTHER_PLANS: dict[int, list[dict[str, Any]]] = {
    16: [{"windows": 19}, {"windows": 20}, {"windows": 21}, {"tail_threads": 32}],
    18: [{"windows": 16}, {"windows": 18}, {"bin_bits": 8}],
    20: [{"windows": 14}, {"windows": 16}, {"bin_bits": None}],
    22: [{"windows": 13}, {"windows": 15}],
    24: [{"windows": 13}, {"tail_threads": 128}],
    26: [{"windows_a_pass": 6}, {"windows_a_pass": 4, "bin_bits": 13}, {"windows": 12, "windows_a_pass": 4},
         {"windows_a_pass": 4, "tail_threads": 128}],
    27: [{"windows_a_pass": 3}],
}  # fmt: skip


def plans_of(log2_n: int) -> list[dict[str, Any]]:
    """The plan that the tables show, stage by stage, and others beside it."""
    runs = {24: 5, 25: 5, 26: 3, 27: 3}.get(log2_n, 10)
    shown = {"windows_a_pass": 4} if log2_n >= 26 else {}
    others = [{**plan, "stages": False, "note": str(plan)} for plan in OTHER_PLANS.get(log2_n, [])]
    return [{**plan, "runs": runs} for plan in (shown, *others)]


def bad_inputs(device: CudaDevice, form: Any, x: Any, y: Any, log2_n: int) -> None:
    n = 1 << log2_n
    curve = curve_of(form)
    random_ones = random_scalars(n)
    inputs = {
        "all ones": scalars_of([1]).repeat(n, axis=0),
        "all r-1": scalars_of([R - 1]).repeat(n, axis=0),
        "all equal": random_ones[:1].repeat(n, axis=0),
        "three": random_ones[np.arange(n) % 3],
        "mostly zero": np.where((np.arange(n) % 100 == 0)[:, None], random_ones, np.uint64(0)),
    }
    for name, host in inputs.items():
        want = curve.multiply(dot(host), curve.generator)
        with device.upload(np.ascontiguousarray(host)) as scalars:
            attempt(name, lambda s=scalars, m=name, w=want: msm_case(  # type: ignore[misc]
                device, form, x, y, n, s, w, name=m, runs=3, stages=False))  # fmt: skip


def selected_times(
    device: CudaDevice, form: Any, x: Any, y: Any, log2_n: int, variants: list[dict[str, Any]]
) -> None:
    n = 1 << log2_n
    curve = curve_of(form)
    host = (np.random.default_rng(5).random(n) < 0.5).astype(np.uint8)
    want = curve.multiply(int((np.flatnonzero(host).astype(np.int64) + 1).sum()) % R, curve.generator)
    count = int(host.sum())
    with device.upload(host) as bits:

        def one(variant: dict[str, Any]) -> None:
            p = replace(selected_plan(form, n), **variant)
            nbytes = selected_layout(form, p, device.card.multiprocessors).nbytes
            with (
                device.allocate(nbytes, np.uint8) as workspace,
                GpuSelectedSum(device, form, x.rows(0, n), y.rows(0, n), p, workspace) as total,
            ):
                ok = total.run(bits) == want and total.run(bits) == want
                facts = timed(device, lambda: total.submit(bits), lambda: total.collect()(), 10)
                report(part="selected", group=curve.name, n=n, **facts, G=count / facts["card_ms"] / 1e6,
                       variant=str(variant), check="ok" if ok else "WRONG")  # fmt: skip

        for variant in variants:
            attempt(f"selected {n} {variant}", lambda v=variant: one(v))  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--seconds", type=float, default=170.0, help="no new part begins later than this")
    parser.add_argument("--g1", type=int, nargs="*", default=[16, 18, 20, 22, 24, 26, 27])
    parser.add_argument("--g2", type=int, nargs="*", default=[16, 18, 20])
    parser.add_argument("--selected", type=int, nargs="*", default=[18, 20, 22, 24, 26, 27])
    parser.add_argument("--variants", action="store_true", help="plans beside those that the tables show")
    parser.add_argument("--processes", type=int, default=14, help="that compile at the beginning")
    parser.add_argument("--skip", nargs="*", default=[], help="pairs, bad")
    options = parser.parse_args()
    limit_seconds(options.seconds)
    attempt("compilation", lambda: compile_all(options.processes))
    try:
        run(options)
    finally:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "gpu_msm.json").write_text(json.dumps(RESULTS, indent=1, default=str))


def run(options: argparse.Namespace) -> None:
    with CudaDevice("cuda:0") as device:
        report(part="machine", free=device.free_memory(), **machine_of(device.card))
        group_part(device, FQ_GPU, options, options.g1, options.selected)
        if options.g2:
            group_part(device, FQ2_GPU, options, options.g2, [])


def group_part(
    device: CudaDevice, form: Any, options: argparse.Namespace, sizes: list[int], selected: list[int]
) -> None:
    if not sizes + selected:
        return
    largest = max(sizes + selected)
    pair_log2 = min(largest, 24 if form.degree == 1 else 21)
    points: list[Any] = []
    attempt("points", lambda: points.extend(multiples(device, form, 1 << largest)))
    if not points:
        return
    x, y = points
    report(part="points", n=1 << largest, check="ok")
    if "pairs" not in options.skip:
        attempt("pairs", lambda: pair_rates(device, form, x, y, 1 << pair_log2, PAIR_SHAPES[form.degree]))
    for log2_n in sizes:
        variants = plans_of(log2_n) if options.variants else plans_of(log2_n)[:1]
        attempt(f"msm 2^{log2_n}", lambda k=log2_n, v=variants: msm_times(device, form, x, y, k, v))  # type: ignore[misc]
    for log2_n in selected:
        choices: list[dict[str, Any]] = [{}]
        if log2_n == 22 and options.variants:
            choices += [{"room": 256}, {"lists": 256}, {"tail_threads": 128}]
        attempt(f"selected 2^{log2_n}", lambda k=log2_n, v=choices: selected_times(device, form, x, y, k, v))  # type: ignore[misc]
    if "bad" not in options.skip and sizes:
        attempt("bad inputs", lambda: bad_inputs(device, form, x, y, min(20, max(sizes))))
    x.close()
    y.close()


if __name__ == "__main__":
    main()
