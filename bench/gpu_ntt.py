"""Transforms over Fr on an NVIDIA GPU: `python -m bench.gpu_ntt --out FOLDER`.

Device resident, in place, on uniform data; times by the card's events, median of the runs. Small sizes are
repeated within a run. Checks: up to 2^20 every row against the CPU's transforms; above, inputs with five
values against the plain sum at 44 outputs, and forward after inverse on uniform data, every row.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from bench.runner import machine_of
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_launch import Launch
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.gpu.ntt import NttPlan, quotient
from cuzk.kernels.gpu.ntt_kernels import pass_kernel
from cuzk.kernels.gpu.ntt_schedule import PassShape, QuotientKinds, Schedule, pass_shapes
from cuzk.kernels.modulus import FR, FR_GENERATOR
from cuzk.kernels.ntt import Transform, intt, to_coset, transform
from cuzk.kernels.ntt import quotient as quotient_on_cpu
from cuzk.kernels.ntt_cpu import Words

R = FR.p
SHIFT_BACK = pow(FR_GENERATOR, -1, R)
CHECKED_ON_CPU_LOG2 = 20
INPUTS, OUTPUTS = 5, 44
REPEATS_LOG2 = 25  # of a timed run: from this size on one
#: Other splits and tiles to time: size, bits of the passes, log2 of their tiles or the plan's own.
VARIANTS: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [
    (20, (7, 7, 6), ()),
    (20, (7, 6, 7), ()),
    (22, (7, 7, 8), (11, 11, 10)),
    (22, (8, 7, 7), ()),
    (24, (8, 8, 8), (10, 10, 10)),
    (26, (9, 9, 8), ()),
    (26, (9, 8, 9), ()),
    (27, (9, 9, 9), (10, 10, 10)),
    (27, (9, 9, 9), (11, 11, 11)),
]
BATCHES = [(3, 5), (6, 7), (12, 3)]
TARGETS_MS = {20: 0.185, 22: 0.75, 24: 3.15, 26: 13.2, 27: 27.0}
SIX_TARGETS_MS = {27: 165.0}


def kinds(log2_n: int) -> dict[str, Transform]:
    return {
        "inverse": Transform(log2_n, inverse=True),
        "forward": Transform(log2_n, inverse=False),
        "coset inverse": Transform(log2_n, inverse=True, scale=5, shift=SHIFT_BACK),
        "coset forward": Transform(log2_n, inverse=False, shift=FR_GENERATOR),
    }


def random_rows(n: int, seed: int) -> Words:
    """Canonical: below 2^254."""
    words = np.random.default_rng(seed).integers(0, 2**64, (n, 4), np.uint64)
    words[:, 3] >>= np.uint64(2)
    return words


class Report:
    """Lines on the terminal, and the same facts as JSON; a failure is a line, and the rest goes on."""

    def __init__(self, out: Path | None, seconds: float) -> None:
        self.out = out
        self.facts: list[dict[str, Any]] = []
        self.end = time.monotonic() + seconds
        self.start = time.monotonic()

    def add(self, what: str, n: object, **values: object) -> None:
        self.facts.append({"what": what, "n": n, **values})
        shown = "  ".join(f"{key} {value}" for key, value in values.items())
        print(f"{time.monotonic() - self.start:6.1f}s  {what:<34}{n!s:<24}{shown}", flush=True)
        if self.out:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / "gpu_ntt.json").write_text(json.dumps(self.facts, indent=1, default=str))

    def attempt(self, what: str, n: object, work: Callable[[], None]) -> None:
        if time.monotonic() > self.end:
            self.add(what, n, skipped="out of time")
            return
        try:
            work()
        except Exception as error:
            traceback.print_exc()
            self.add(what, n, failed=repr(error))


def compile_ahead(report: Report, capability: tuple[int, int], schedules: list[Schedule]) -> None:
    """Fill the cache of compiled kernels, in processes."""
    shapes = {shape for schedule in schedules if schedule.passes for shape in pass_shapes(schedule)}
    for schedule in schedules:
        works = [work for kind in kinds(schedule.log2_n).values() for work in schedule.works(kind)]
        shapes |= {work.shape for work in works}
    start = time.perf_counter()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        seconds = list(
            pool.map(compile_one, sorted(shapes, key=lambda shape: shape.name), repeat(capability))
        )
    report.add(
        "kernels compiled in processes, s",
        len(shapes),
        wall=round(time.perf_counter() - start, 1),
        each=round(statistics.median(seconds), 2),
        all=round(sum(seconds), 1),
    )


def compile_one(shape: PassShape, capability: tuple[int, int]) -> float:
    start = time.perf_counter()
    pass_kernel(shape).cubin(capability)
    return time.perf_counter() - start


# Checks


def natural(plan: NttPlan, vector: DeviceArray) -> Words:
    """The coefficients of a vector in reversed digits."""
    rows = np.empty(vector.shape, np.uint64)
    rows[plan.schedule.coefficients_at(np.arange(plan.n))] = plan.device.download(vector)
    return rows


def check_on_cpu(report: Report, device: CudaDevice, log2_n: int) -> None:
    """Every row of every kind of transform, and of the quotient."""
    cpu, n = CpuDevice(), 1 << log2_n
    a, b, c = (random_rows(n, seed) for seed in (1, 2, 3))
    with NttPlan(device, log2_n) as plan, device.upload(a) as x, device.upload(b) as y, device.upload(c) as z:
        coefficients, on_coset = a.copy(), a.copy()
        intt(cpu, coefficients)
        to_coset(cpu, on_coset)
        plan.intt(x)
        inverse = np.array_equal(natural(plan, x), coefficients)
        with device.allocate((n, 4), np.uint64) as reordered:
            plan.to_natural_order(x, reordered)
            order = np.array_equal(device.download(reordered), coefficients)
        plan.run(kinds(log2_n)["coset forward"], x)
        coset_forward = np.array_equal(device.download(x), on_coset)
        plan.run(Transform(log2_n, inverse=True, shift=SHIFT_BACK), x)
        plan.ntt(x)
        forward = np.array_equal(device.download(x), a)

        kind, fused = kinds(log2_n)["coset inverse"], a.copy()
        transform(cpu, kind, fused, times=b, minus=natural(plan, z))
        plan.run(kind, x, times=y, minus=z)
        coset_inverse = np.array_equal(natural(plan, x), fused)

        quotients = []
        for values_c in (None, c):
            device.upload(a, into=x)
            device.upload(b, into=y)
            expected = quotient_on_cpu(cpu, a.copy(), b.copy(), None if values_c is None else c.copy())
            quotient(plan, x, y, None if values_c is None else z)
            quotients.append(np.array_equal(natural(plan, x)[:-1], expected))
    report.add(
        "every row against the CPU",
        f"2^{log2_n} {plan.schedule.bits}",
        inverse=inverse,
        forward=forward,
        coset_forward=coset_forward,
        coset_inverse_fused=coset_inverse,
        natural_order=order,
        quotient=quotients,
    )


def check_batch(report: Report, device: CudaDevice, log2_n: int, count: int) -> None:
    """Several transforms in one vector against one at a time."""
    rows = random_rows(count << log2_n, 4)
    with NttPlan(device, log2_n) as plan, device.upload(rows) as together, device.upload(rows) as apart:
        same = []
        for kind in kinds(log2_n).values():
            plan.run(kind, together)
            for i in range(count):
                plan.run(kind, apart.rows(i << log2_n, (i + 1) << log2_n))
            same.append(np.array_equal(device.download(together), device.download(apart)))
    report.add("batch against single transforms", f"{count} x 2^{log2_n}", same=same)


def check_sums(report: Report, plan: NttPlan, vector: DeviceArray) -> None:
    """A few values at random places: the transform is a sum of as many terms."""
    rng, device, n = random.Random(plan.log2_n), plan.device, plan.n
    right = {}
    for name, kind in kinds(plan.log2_n).items():
        places = rng.sample(range(n), INPUTS)
        values = [rng.randrange(R) for _ in places]
        outputs = [0, 1, n - 1, n // 2] + [rng.randrange(n) for _ in range(OUTPUTS - 4)]
        device.clear(vector)
        for place, value in zip(places, values, strict=True):
            device.upload(from_integers([value]), into=vector.rows(place, place + 1))
        plan.run(kind, vector)
        right[name] = all(
            to_integers(device.download(vector.rows(row, row + 1)))[0]
            == plain_sum(plan, kind, places, values, row)
            for row in outputs
        )
    report.add("sums at random outputs", f"2^{plan.log2_n} {plan.schedule.bits}", **right)


def plain_sum(plan: NttPlan, kind: Transform, places: list[int], values: list[int], row: int) -> int:
    total = 0
    for place, value in zip(places, values, strict=True):
        reversed_row, j = (row, place) if kind.inverse else (place, row)
        k = int(plan.schedule.coefficients_at(np.array([reversed_row]))[0])
        total += value * pow(kind.root, j * k % kind.n, R) * pow(kind.shift, k, R)
    return total * kind.whole_scale % R


def check_round_trip(report: Report, plan: NttPlan, vector: DeviceArray, rows: Words) -> None:
    given = rows[: plan.n]
    plan.device.upload(given, into=vector)
    plan.intt(vector)
    plan.ntt(vector)
    plain = np.array_equal(plan.device.download(vector), given)
    plan.run(Transform(plan.log2_n, inverse=True, shift=FR_GENERATOR), vector)
    plan.ntt(vector)
    plan.run(Transform(plan.log2_n, inverse=True, shift=SHIFT_BACK), vector)
    plan.ntt(vector)
    coset = np.array_equal(plan.device.download(vector), given)
    report.add("forward after inverse", f"2^{plan.log2_n} {plan.schedule.bits}", plain=plain, coset=coset)


# Times


def median_ms(device: CudaDevice, launches: Iterable[Launch], repeats: int, runs: int = 9) -> float:
    launches = list(launches)
    begin, end = device.new_event(), device.new_event()
    times = []
    for run in range(-2, runs):
        begin.record(device.stream)
        for _ in range(repeats):
            for launch in launches:
                launch.run(device.stream)
        end.record(device.stream)
        milliseconds = end.elapsed_ms(begin) / repeats
        if run >= 0:
            times.append(milliseconds)
    begin.close()
    end.close()
    return statistics.median(times)


def time_transforms(report: Report, plan: NttPlan, vector: DeviceArray) -> None:
    repeats = 1 << max(0, min(5, REPEATS_LOG2 - plan.log2_n))
    where = f"2^{plan.log2_n} {plan.schedule.bits} {plan.schedule.tiles}"
    for name, kind in kinds(plan.log2_n).items():
        launches = plan.prepare(kind, vector)
        whole = median_ms(plan.device, launches, repeats)
        passes = [round(median_ms(plan.device, [one], repeats, 5), 4) for one in launches]
        target = "" if "coset" in name else TARGETS_MS.get(plan.log2_n, "")
        report.add(f"{name}, ms", where, median=round(whole, 4), passes=passes, target=target)


def six_launches(plan: NttPlan, a: DeviceArray, b: DeviceArray, c: DeviceArray) -> list[Launch]:
    """Those of `quotient`."""
    kinds = QuotientKinds(plan.log2_n)
    launches = plan.prepare(kinds.of_c, c)
    for vector in (a, b):
        launches += plan.prepare(kinds.to_coset, vector) + plan.prepare(kinds.on_coset, vector)
    return launches + plan.prepare(kinds.from_coset, a, times=b, minus=c)


def time_quotient(report: Report, plan: NttPlan, vectors: list[DeviceArray]) -> None:
    repeats = 1 << max(0, min(3, REPEATS_LOG2 - plan.log2_n))
    launches = six_launches(plan, *vectors)
    whole = median_ms(plan.device, launches, repeats)
    passes = [round(median_ms(plan.device, [one], repeats, 3), 3) for one in launches]
    report.add(
        "six transforms, ms",
        f"2^{plan.log2_n} {plan.schedule.bits}",
        median=round(whole, 3),
        passes=passes,
        target=SIX_TARGETS_MS.get(plan.log2_n, ""),
        tables_mb=round(plan.table_bytes / 1e6, 1),
    )


def time_tables(report: Report, plan: NttPlan, vector: DeviceArray) -> None:
    """The first preparation of every kind: kernels are read from the cache and loaded, tables are built."""
    start = time.perf_counter()
    for kind in kinds(plan.log2_n).values():
        plan.prepare(kind, vector)
    first = time.perf_counter() - start
    plan.close()
    start = time.perf_counter()
    for kind in kinds(plan.log2_n).values():
        plan.prepare(kind, vector)
    report.add(
        "kernels and tables; tables alone, s",
        f"2^{plan.log2_n} {plan.schedule.bits}",
        both=round(first, 2),
        tables=round(time.perf_counter() - start, 3),
        tables_mb=round(plan.table_bytes / 1e6, 1),
    )


def size_case(report: Report, device: CudaDevice, log2_n: int, rows: Words) -> None:
    n = 1 << log2_n
    with NttPlan(device, log2_n) as plan:
        vectors = [device.allocate((n, 4), np.uint64) for _ in range(3)]
        try:
            time_tables(report, plan, vectors[0])
            check_sums(report, plan, vectors[0])
            check_round_trip(report, plan, vectors[0], rows)
            for vector in vectors:
                device.upload(rows[:n], into=vector)
            time_transforms(report, plan, vectors[0])
            time_quotient(report, plan, vectors)
        finally:
            for vector in vectors:
                vector.close()


def variant(
    report: Report,
    device: CudaDevice,
    rows: Words,
    log2_n: int,
    bits: tuple[int, ...],
    tiles: tuple[int, ...],
) -> None:
    """Another split, or other tiles, checked by sums and timed."""
    schedule = Schedule(log2_n, bits=bits, tiles=tiles or None)
    with NttPlan(device, log2_n, schedule=schedule) as plan, device.upload(rows[: plan.n]) as vector:
        check_sums(report, plan, vector)
        device.upload(rows[: plan.n], into=vector)
        time_transforms(report, plan, vector)


def show_kernels(report: Report, device: CudaDevice) -> None:
    for kernel in sorted(device._kernels.values(), key=lambda kernel: kernel.name):
        if kernel.name.startswith("ntt"):
            report.add(
                "registers, local bytes", kernel.name, registers=kernel.registers, local=kernel.local_bytes
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Transforms over Fr on a GPU")
    parser.add_argument("--device", default="cuda:0", metavar="NAME")
    parser.add_argument("--out", type=Path, metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=170, help="no new case is begun after so long")
    parser.add_argument(
        "--small", type=int, nargs="*", default=[1, 3, 5, 6, 9, 11, 12, 15, 18, 19], metavar="K"
    )
    parser.add_argument("--log2-n", type=int, nargs="*", default=[20, 22, 24, 26, 27], metavar="K")
    parser.add_argument("--no-variants", action="store_true")
    chosen = parser.parse_args()

    report = Report(chosen.out, chosen.seconds)
    with CudaDevice(chosen.device) as device:
        report.add("machine", device.card.name, **machine_of(device.card))
        sizes = [*chosen.small, *chosen.log2_n, *(log2_n for log2_n, _ in BATCHES if chosen.small)]
        schedules = [Schedule(log2_n) for log2_n in dict.fromkeys(sizes)]
        if not chosen.no_variants:
            schedules += [Schedule(k, bits=b, tiles=t or None) for k, b, t in VARIANTS if k in sizes]
        work = partial(compile_ahead, report, device.card.capability, schedules)
        report.attempt("compile", len(schedules), work)
        rows = random_rows(1 << max(chosen.log2_n, default=1), 1)
        for log2_n in [k for k in (12, CHECKED_ON_CPU_LOG2) if k in chosen.small + chosen.log2_n]:
            report.attempt("cpu", log2_n, partial(check_on_cpu, report, device, log2_n))
        for log2_n in chosen.log2_n:
            report.attempt("size", log2_n, partial(size_case, report, device, log2_n, rows))
        report.attempt("kernels", "", lambda: show_kernels(report, device))
        for log2_n in [k for k in chosen.small if k != 12]:
            report.attempt("cpu", log2_n, partial(check_on_cpu, report, device, log2_n))
        if chosen.small:
            for log2_n, count in BATCHES:
                report.attempt("batch", log2_n, partial(check_batch, report, device, log2_n, count))
        if not chosen.no_variants:
            for which in VARIANTS:
                if which[0] in chosen.log2_n:
                    report.attempt("variant", which, partial(variant, report, device, rows, *which))


if __name__ == "__main__":
    main()
