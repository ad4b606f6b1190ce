"""Parameters to GPUs: `python3 bench/gpu_load.py --file PARAMS --out FOLDER`; without --file it makes one.

All sections of the file are read and decoded on the card, as before a first proof: from the page cache, by
several numbers of threads; then from the disk, the page cache dropped before each time, with and without the
disk asked ahead. *mapped* copies from a mapping instead of reading: what loading did before, for comparison.
Every point is checked to be on the curve as it is decoded, and the first and last rows against the file.
Of several --devices all load at once, each reading by itself, or one for all, which then copy;
in chunks of several sizes. The rest is the first one's.

A file of its own (--gib, in --folder) has one point again and again: for the speed it makes no difference.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.field import encoding  # noqa: E402
from bench.gpu_parts import RESULTS, attempt, limit_seconds, report  # noqa: E402
from bench.runner import machine_of  # noqa: E402
from cuzk.benchmarks.peak_memory import peak_host_bytes, reset_peak  # noqa: E402
from cuzk.groth16.gpu import points_on_card  # noqa: E402
from cuzk.groth16.gpu.card_plan import form_of  # noqa: E402
from cuzk.groth16.gpu.held_sections import HeldSections  # noqa: E402
from cuzk.groth16.gpu.points_on_card import PointsOfFile, on_card  # noqa: E402
from cuzk.groth16.parameters.params_file import SECTIONS, ParameterFile, SectionName, open_parameters  # noqa: E402
from cuzk.groth16.parameters.verifying_key import VerifyingKey  # noqa: E402
from cuzk.groth16.parameters.watched_file import WatchedFile  # noqa: E402
from cuzk.kernels.curve import G1, G2  # noqa: E402
from cuzk.kernels.device.cuda import CudaDevice  # noqa: E402
from cuzk.kernels.gpu import points as gpu_points  # noqa: E402
from cuzk.kernels.gpu import sum_schedule  # noqa: E402
from cuzk.kernels.gpu.points import NATURAL_ORDER, GpuPoints, PointDecoder  # noqa: E402
from cuzk.kernels.modulus import FQ  # noqa: E402

THREADS = (1, 2, 4, 6, 8, 12)
CHUNKS_LOG2 = (15, 16, 17)
RUNS, COPIED_BYTES = 3, 1 << 32
GIB = 1 << 30
#: Points of each section, in parts of all: those of 32 GiB sectors.
SHARES = {"h": 134, "l": 130, "a": 130, "b_g1": 33, "b_g2": 33}


def make_file(path: Path, nbytes: int) -> None:
    """Parameters of about so many bytes, on the disk."""
    g1, g2 = encoding(G1.generator), encoding(G2.generator)
    key = VerifyingKey(
        alpha_g1=g1, beta_g1=g1, beta_g2=g2, gamma_g2=g2, delta_g1=g1, delta_g2=g2, ic=(g1, g1)
    )
    unit = nbytes // sum(size * SHARES[name] for name, size in SECTIONS)
    with path.open("wb") as file:
        file.write(key.to_bytes())
        for name, size in SECTIONS:
            count = unit * SHARES[name]
            file.write(count.to_bytes(4, "big"))
            at_once = (g2 if size == len(g2) else g1) * (1 << 16)
            for first in range(0, count * size, len(at_once)):
                file.write(at_once[: count * size - first])
        file.flush()
        os.fsync(file.fileno())


def load(
    device: CudaDevice, points: PointsOfFile, *, mapped: bool = False, held: HeldSections | None = None
) -> float:
    """Seconds of all sections, one after another; decoding included. held: what other cards have of them."""
    begin, file, held = time.perf_counter(), points.file, held or HeldSections()
    with ExitStack() as loaded:
        try:
            for name, _ in SECTIONS:
                if mapped:
                    rows = decoded_from_mapping(device, file, name)
                else:
                    read = partial(on_card, points, device, name, ignore_count, NATURAL_ORDER)
                    rows = held.on_card(device, name, NATURAL_ORDER, read, ignore_count)
                loaded.enter_context(closing(rows))
                for row in (0, rows.count - 1):
                    assert_row(device, rows, row, file.section(name)[row])
            return time.perf_counter() - begin
        finally:
            held.leave(device)  # before the rows go


def ignore_count(count: int) -> None:
    pass


def decoded_from_mapping(device: CudaDevice, file: ParameterFile, name: SectionName) -> GpuPoints:
    count = file.counts.of(name)
    rows = GpuPoints(device, form_of(name), count)
    with PointDecoder(device, form_of(name), count) as decoder:
        bad = decoder.decode(count, partial(copy_mapped, file.section(name)), rows)
    assert bad is None, bad
    return rows


def copy_mapped(section: np.ndarray[Any, Any], first: int, out: np.ndarray[Any, Any]) -> None:
    np.copyto(out, section[first : first + len(out)])


def assert_row(device: CudaDevice, points: GpuPoints, row: int, point: np.ndarray[Any, Any]) -> None:
    """The first coordinate, whose least significant component comes last in the file."""
    component = point[: len(point) // 2][-48:].tobytes()
    expected = FQ.limbs((int.from_bytes(component, "big") << 384) % FQ.p, 12, 32)
    found = device.download(points.x.rows(row, row + 1))[0, :12]
    assert found.tolist() == expected, (row, found)


def cached_share(file: ParameterFile) -> float:
    """Of the file's pages, those that are in memory."""
    pages = file.file.mapped()
    found = np.zeros(-(-len(pages) // mmap.PAGESIZE), np.uint8)
    mincore = ctypes.CDLL(None, use_errno=True).mincore
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    assert mincore(pages.ctypes.data, len(pages), found.ctypes.data) == 0, os.strerror(ctypes.get_errno())
    return float((found & 1).mean())


def drop_cache(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def measure_cached(cards: list[CudaDevice], path: Path) -> None:
    device, file = cards[0], open_parameters(path)
    load(device, PointsOfFile(file))  # into the page cache; the kernel is compiled
    gigabytes = file.file.nbytes / 1e9
    for how, mapped in (("mapped", True), ("read", False)):
        for threads in THREADS:
            with patch.object(sum_schedule, "DECODING_THREADS", threads):
                seconds = min(load(device, PointsOfFile(file), mapped=mapped) for _ in range(RUNS))
            report(
                part="page cache", how=how, threads=threads, gb=gigabytes, seconds=seconds,
                gb_per_s=gigabytes / seconds, cached=cached_share(file),
            )  # fmt: skip


def load_all(cards: list[CudaDevice], points: PointsOfFile, *, together: bool) -> list[float]:
    """Seconds of each."""
    held = HeldSections() if together else None
    with ThreadPoolExecutor(len(cards)) as pool:
        return [one.result() for one in [pool.submit(load, card, points, held=held) for card in cards]]


def measure_cards(cards: list[CudaDevice], path: Path) -> None:
    file = open_parameters(path)
    points, gigabytes = PointsOfFile(file), file.file.nbytes / 1e9
    load_all(cards, points, together=True)  # kernels are loaded
    for log2 in CHUNKS_LOG2:
        for some, together in ((cards[:1], False), (cards, False), (cards, True)):
            read, times = ReadBytes(file.file), list[list[float]]()
            reset_peak()
            with ExitStack() as patches:
                for module in (sum_schedule, gpu_points):
                    patches.enter_context(patch.object(module, "DECODED_AT_ONCE", 1 << log2))
                patches.enter_context(patch.object(WatchedFile, "read_into", read))
                for _ in range(RUNS):
                    times.append(load_all(some, points, together=together))
            report(
                part="cards", cards=len(some), together=together, chunk_log2=log2, gb=gigabytes,
                seconds=times, read_gb=sum(read.sizes) / RUNS / 1e9, peak_bytes=peak_host_bytes(),
            )  # fmt: skip
    measure_copies(cards)


def measure_copies(cards: list[CudaDevice]) -> None:
    """An array from the first card to the others, one after another."""
    first, shape = cards[0], (COPIED_BYTES,)
    with first.allocate(shape, np.uint8) as given:
        first.clear(given)
        first.stream.synchronise()
        for card in cards[1:]:
            with card.allocate(shape, np.uint8) as taken:
                times = []
                for _ in range(RUNS + 1):
                    begin = time.perf_counter()
                    card.copy_from(first, given, taken)
                    card.stream.synchronise()
                    times.append(time.perf_counter() - begin)
            report(
                part="copy", to=card.name, gb=COPIED_BYTES / 1e9, gb_per_s=COPIED_BYTES / 1e9 / min(times[1:])
            )


class ReadBytes:
    """Stands in for `WatchedFile.read_into` of one file, and counts."""

    def __init__(self, file: WatchedFile) -> None:
        self.sizes, self._read = list[int](), file.read_into

    def __call__(self, first: int, out: np.ndarray[Any, Any]) -> None:
        self.sizes.append(out.nbytes)
        self._read(first, out)


def measure_disk(cards: list[CudaDevice], path: Path) -> None:
    for ahead in (0, points_on_card._AHEAD_BYTES):
        for threads in (sum_schedule.DECODING_THREADS, 2 * sum_schedule.DECODING_THREADS):
            file = open_parameters(path)
            drop_cache(path)
            cached, gigabytes = cached_share(file), file.file.nbytes / 1e9
            with (
                patch.object(points_on_card, "_AHEAD_BYTES", ahead or file.file.nbytes),  # so far: never
                patch.object(sum_schedule, "DECODING_THREADS", threads),
            ):
                seconds = load(cards[0], PointsOfFile(file))
            report(
                part="disk", ahead=ahead, threads=threads, gb=gigabytes, seconds=seconds,
                gb_per_s=gigabytes / seconds, cached_before=cached,
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, help="a .params file; without it one is made and removed")
    parser.add_argument(
        "--folder", type=Path, help="where to make it; without it the system's for such files"
    )
    parser.add_argument("--gib", type=float, default=8.0)
    parser.add_argument("--devices", type=lambda text: text.split(","), default=["cuda:0"])
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--seconds", type=float, default=500.0)
    options = parser.parse_args()
    limit_seconds(options.seconds)
    with ExitStack() as opened:
        cards = [opened.enter_context(CudaDevice(name)) for name in options.devices]
        folder = opened.enter_context(tempfile.TemporaryDirectory(dir=options.folder))
        path = options.file or Path(folder) / "made.params"
        if options.file is None:
            make_file(path, int(options.gib * GIB))
        parts: list[tuple[str, Callable[[list[CudaDevice], Path], None]]] = [
            ("page cache", measure_cached), ("disk", measure_disk),
        ]  # fmt: skip
        if len(cards) > 1:
            parts.insert(0, ("cards", measure_cards))
        for name, part in parts:
            attempt(name, partial(part, cards, path))
        facts = {"machine": machine_of(cards[0].card), "results": RESULTS}
    (options.out / "gpu_load.json").write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
