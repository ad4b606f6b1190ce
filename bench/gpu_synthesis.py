"""Synthesis on a GPU: `python3 bench/gpu_synthesis.py --out FOLDER [--sector-size 32GiB ...]`.

For each size a synthetic sector's first partition: variables and rows, checked first. Up to 512 MiB all of
them are compared with the CPU's; above, every row is held to its equation on the card. Then times by the
card's own events: uploads, waves, scalars, rows; the variables of each family of templates at once, as if no
instance waited for another; the longest waves.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.gpu_parts import RESULTS, attempt, limit_seconds, report  # noqa: E402
from bench.runner import machine_of  # noqa: E402
from cuzk.api import synthesize  # noqa: E402
from cuzk.circuit.builder import Circuit  # noqa: E402
from cuzk.circuit.rows import A, B, C, evaluate_side  # noqa: E402
from cuzk.circuit.witness import FreeValues, assign, witness_kinds  # noqa: E402
from cuzk.groth16.gpu.synthesis import DeviceSynthesis  # noqa: E402
from cuzk.groth16.gpu.synthesis_plan import TAKEN  # noqa: E402
from cuzk.groth16.qap import domain_log2  # noqa: E402
from cuzk.kernels.circuit.witness import FREE, NOTHING  # noqa: E402
from cuzk.kernels.device.cpu import CpuDevice  # noqa: E402
from cuzk.kernels.device.cuda import CudaDevice  # noqa: E402
from cuzk.kernels.device.cuda_launch import Launch  # noqa: E402
from cuzk.kernels.device.cuda_memory import DeviceArray  # noqa: E402
from cuzk.kernels.gpu import witness  # noqa: E402
from cuzk.kernels.gpu.witness import fill_wave  # noqa: E402
from cuzk.proofs.kinds import circuit_of, free_values  # noqa: E402
from cuzk.proofs.sources import read_input  # noqa: E402
from cuzk.units import parse_size  # noqa: E402

COMPARED_VARIABLES = 1 << 24  # the CPU's arrays take 2 GB
TARGET_MS = 100.0  # of variables and rows at 32 GiB
ROW_BYTES = 32
RUNS = 9


class Case:
    """One size on a card."""

    def __init__(self, device: CudaDevice, sector_bytes: int) -> None:
        begin = time.perf_counter()
        c1 = read_input(synthesize(sector_bytes))
        sector_s, begin = time.perf_counter() - begin, time.perf_counter()
        self.circuit: Circuit = circuit_of(c1.shape)
        circuit_s, begin = time.perf_counter() - begin, time.perf_counter()
        self.free: FreeValues = free_values(c1, 0)
        free_s, begin = time.perf_counter() - begin, time.perf_counter()
        self.name, self.device = c1.shape.name, device
        self.synthesis = DeviceSynthesis(device, self.circuit)
        self.synthesis.synchronise()
        report(
            part="host", size=self.name, sector_s=sector_s, circuit_s=circuit_s, free_values_s=free_s,
            tables_to_card_s=time.perf_counter() - begin, card_mb=device.memory.used_bytes / 1e6,
            waves=len(self.circuit.waves.starts) - 1, rows=self.circuit.num_constraints,
        )  # fmt: skip

    def milliseconds(self, submit: Callable[[], None]) -> float:
        """Median of what the card takes."""
        stream, times = self.synthesis.stream, []
        submit()
        for _ in range(RUNS):
            begin, end = self.device.new_event(), self.device.new_event()
            begin.record(stream)
            submit()
            end.record(stream)
            times.append(end.elapsed_ms(begin))
            begin.close()
            end.close()
        return statistics.median(times)

    def check(self) -> None:
        synthesis = self.synthesis
        synthesis.assign(self.free)
        report(part="check", size=self.name, unsatisfied=str(synthesis.unsatisfied_row()))
        if self.circuit.num_aux > COMPARED_VARIABLES:
            return
        host = CpuDevice()
        expected = assign(host, self.circuit, self.free)
        same = {
            "bits": np.array_equal(self.device.download(synthesis.bits), expected.bits),
            "values": np.array_equal(self.device.download(synthesis.values), expected.values),
        }
        with self.device.allocate((self.circuit.num_constraints, 4), np.uint64) as out:
            for side, name in ((A, "a"), (B, "b"), (C, "c")):
                synthesis.rows(side, out)
                synthesis.synchronise()
                of_cpu = evaluate_side(host, self.circuit, expected, side)
                same[name] = np.array_equal(self.device.download(out), of_cpu)
        report(part="equal to the CPU's", size=self.name, **same)

    def whole(self) -> None:
        """The figure that counts: free values on the host to rows of A and B on the card."""
        synthesis, m = self.synthesis, 1 << domain_log2(self.circuit)
        with self.device.allocate((2 * m, 4), np.uint64) as memory:
            a, b = memory.rows(0, m), memory.rows(m, 2 * m)
            parts = {
                "variables and scalars": lambda: synthesis.assign(self.free),
                "waves": lambda: synthesis._fill.run(synthesis.stream),
                "scalars": self._take,
                "rows a": lambda: synthesis.rows(A, a),
                "rows b": lambda: synthesis.rows(B, b),
            }
            took = {name: self.milliseconds(submit) for name, submit in parts.items()}
            walls = []
            for _ in range(RUNS):
                begin = time.perf_counter()
                synthesis.assign(self.free)
                synthesis.rows(A, a)
                synthesis.rows(B, b)
                synthesis.synchronise()
                walls.append(1e3 * (time.perf_counter() - begin))
        written = 2 * ROW_BYTES * self.circuit.num_constraints
        report(
            part="milliseconds", size=self.name, **{name.replace(" ", "_"): ms for name, ms in took.items()},
            wall_of_all=statistics.median(walls), target=TARGET_MS,
            rows_gb_s=written / (took["rows a"] + took["rows b"]) / 1e6,
        )  # fmt: skip

    def _take(self) -> None:
        for section in TAKEN:
            self.synthesis._take(section)

    def families(self) -> None:
        """All instances of a family at once: what its kernel can do, without waiting."""
        table, templates = self.circuit.instances.table, self.circuit.templates
        names = np.array([template.name for template in templates])[table["template"]]
        kinds = witness_kinds(self.circuit)
        for name in dict.fromkeys(names[~np.isin(kinds, (FREE, NOTHING))].tolist()):
            which = np.flatnonzero(names == name).astype(np.uint32)
            aux = int(sum(templates[number].aux for number in table["template"][which]))
            with self.device.upload(which, stream=self.synthesis.stream) as order:
                launch = self._filling(order, kinds[which])
                ms = self.milliseconds(lambda launch=launch: launch.run(self.synthesis.stream))  # type: ignore[misc]
            report(part="family", size=self.name, name=name, instances=len(which), variables=aux, ms=ms)

    def waves(self) -> None:
        """The slowest waves, and what they hold."""
        starts = self.circuit.waves.starts
        table, templates = self.circuit.instances.table, self.circuit.templates
        times = []
        for number, launch in enumerate(self.synthesis._waves):
            begin, end = starts[number : number + 2]
            ms = self.milliseconds(lambda launch=launch: launch.run(self.synthesis.stream))  # type: ignore[misc]
            which = table["template"][self.circuit.waves.order[begin:end]]
            times.append((ms, number, ", ".join(sorted({templates[t].name for t in which}))))
        report(part="waves", size=self.name, sum_ms=sum(ms for ms, _, _ in times))
        for ms, number, held in sorted(times, reverse=True)[:4]:
            report(part="wave", size=self.name, number=number, ms=ms, templates=held)

    def _filling(self, order: DeviceArray, kinds: NDArray[np.integer]) -> Launch:
        """A launch for these instances, which have these kinds."""
        synthesis, count = self.synthesis, order.shape[0]
        return self.device.load(fill_wave).prepare(
            count, witness.threads_of_wave(kinds),
            *synthesis._tables, order, 0, synthesis.bits, synthesis._words,
        )  # fmt: skip


def kernels(device: CudaDevice) -> None:
    for loaded in device._kernels.values():
        report(
            part="kernel", name=loaded.name, registers=loaded.registers, local_bytes=loaded.local_bytes,
            shared_bytes=loaded.shared_bytes,
        )  # fmt: skip


def one_size(device: CudaDevice, sector_bytes: int) -> None:
    case = Case(device, sector_bytes)
    try:
        for part in (case.check, case.whole, case.families, case.waves):
            attempt(f"{case.name}: {part.__name__}", part)
    finally:
        case.synthesis.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--device", default="cuda:0", metavar="NAME")
    parser.add_argument(
        "--sector-size", nargs="*", default=["2KiB", "8MiB", "512MiB", "32GiB"], metavar="SIZE"
    )
    parser.add_argument("--seconds", type=float, default=170, help="no part is begun after so long")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    limit_seconds(chosen.seconds)
    with CudaDevice(chosen.device) as device:
        report(part="machine", name=device.card.name, **machine_of(device.card))
        for size in chosen.sector_size:
            attempt(size, lambda size=size: one_size(device, parse_size(size)))  # type: ignore[misc]
        attempt("kernels", lambda: kernels(device))
    (chosen.out / "gpu_synthesis.json").write_text(
        json.dumps(RESULTS, indent=1, default=str), encoding="utf-8"
    )
    sys.exit(1 if any("failed" in fact for fact in RESULTS) else 0)


if __name__ == "__main__":
    main()
