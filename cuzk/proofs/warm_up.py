"""Compiling what a task needs before it begins, on all cores, as a stage with progress.

Numba compiles one function at a time in a process, so each thread of the device gets a process of its own,
which compiles groups of kernels into the cache folder, where this process finds them. The groups run every
kernel once on the smallest data that reaches it. A mark in the folder says which groups are there: a second
start does nothing. Where the folder cannot be written, kernels compile in this process at their first use.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.numbers import free_numbers, inputize
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.rows import evaluate_at, evaluate_rows
from cuzk.circuit.witness import Assignment, FreeValues, assign
from cuzk.events import Notice, OnEvent, stage
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.field_type import FQ, FQ2
from cuzk.kernels.fixed_base import FixedBase, doublings_of
from cuzk.kernels.fr_vector import combine, from_integers, powers
from cuzk.kernels.jit import cache_is_writable, compiled_folder
from cuzk.kernels.msm import msm
from cuzk.kernels.msm import scratch_rows as msm_scratch_rows
from cuzk.kernels.ntt import intt, quotient
from cuzk.kernels.points import COORDINATE_BYTES, decode_points, encoded_bytes, padded
from cuzk.kernels.poseidon_hash import hash_many, path_roots
from cuzk.kernels.selected_sum import scratch_rows as bits_scratch_rows
from cuzk.kernels.selected_sum import selected_sum
from cuzk.kernels.subset_sums import random_subset_sums
from cuzk.kernels.subset_sums import scratch_rows as subset_scratch_rows
from cuzk.kernels.xyzz import curve_of, horner

_POINTS = 64
_DOMAIN = 1 << 12


def _tiny_circuit() -> tuple[Circuit, FreeValues]:
    """A hash of two numbers: its witness, rows and transpose run the kernels of every template."""
    builder = CircuitBuilder("warm-up")
    inputize(builder, poseidon(builder, free_numbers(builder, 2)))
    numbers = np.zeros((2, 32), np.uint8)
    return builder.circuit(), FreeValues(numbers=numbers, bits=np.zeros(0, np.uint8))


def _assigned(device: CpuDevice) -> tuple[Circuit, Assignment]:
    circuit, values = _tiny_circuit()
    return circuit, assign(device, circuit, values)


def _hashes(device: CpuDevice) -> None:
    hash_many(device, np.zeros((8, 2, 4), np.uint64))
    zeros = np.zeros((8, 1, 4), np.uint64)
    path_roots(device, zeros[:, 0], zeros, np.zeros((8, 1), np.int64), (2,))


def _witness(device: CpuDevice) -> None:
    _assigned(device)


def _rows(device: CpuDevice) -> None:
    evaluate_rows(device, *_assigned(device))


def _transposed_rows(device: CpuDevice) -> None:
    circuit, _ = _tiny_circuit()
    evaluate_at(device, circuit, np.zeros((circuit.num_constraints, 4), np.uint64))


def _transforms(device: CpuDevice) -> None:
    vectors = [np.zeros((_DOMAIN, 4), np.uint64) for _ in range(2)]
    quotient(device, *vectors)


def _values(device: CpuDevice) -> None:
    lagrange = powers(device, 1, 3, _DOMAIN)
    intt(device, lagrange)
    combine(device, (1, 1, 1), lagrange, lagrange, lagrange)


def _multiples(device: CpuDevice, form_name: str) -> None:
    form = getattr(device, form_name)
    FixedBase(device, form, 1).encoded(from_integers(range(1, _POINTS + 1)))


def _encoded_points(form: Any) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Some points as in a parameter file: read-only, which for the compiler is another type."""
    curve = curve_of(form)
    points: list[Any] = doublings_of(curve, curve.generator, _POINTS)
    numbers = [
        number
        for point in points
        for coordinate in point
        for number in (reversed(coordinate) if form.degree == 2 else (coordinate,))
    ]
    data = b"".join(number.to_bytes(COORDINATE_BYTES, "big") for number in numbers)
    return np.frombuffer(data, np.uint8).reshape(_POINTS, encoded_bytes(form))


def _sums(device: CpuDevice, form_name: str) -> None:
    form = getattr(device, form_name)
    encoded = _encoded_points(form)
    spare = max(
        msm_scratch_rows(device, form, _POINTS),
        bits_scratch_rows(device, form, _POINTS),
        subset_scratch_rows(device, form, _POINTS),
    )
    rows = aligned_empty(padded(_POINTS) + spare, 2 * form.words)
    decode_points(device, form, encoded, rows)
    msm(device, form, rows, from_integers(range(_POINTS)))
    selected_sum(device, form, rows, np.ones(_POINTS, np.uint8))
    random_subset_sums(device, form, rows, _POINTS)


def _single_points(device: CpuDevice) -> None:
    """What a GPU leaves of its sums is folded by one-lane kernels."""
    for form in (FQ, FQ2):
        horner(form, np.zeros((1, 2 * form.words), np.uint64), np.zeros((1, 1), np.uint32))


#: What can be compiled on its own, longest first, so that the processes end together.
GROUPS: dict[str, Callable[[CpuDevice], object]] = {
    "sums in G2": lambda device: _sums(device, "g2"),
    "sums in G1": lambda device: _sums(device, "g1"),
    "witness": _witness,
    "multiples in G2": lambda device: _multiples(device, "g2"),
    "multiples in G1": lambda device: _multiples(device, "g1"),
    "rows": _rows,
    "transposed rows": _transposed_rows,
    "transforms": _transforms,
    "values": _values,
    "single points": _single_points,
    "hashes": _hashes,
}
TO_CHECK = ("hashes",)
TO_PROVE = ("sums in G2", "sums in G1", "witness", "rows", "transforms")
TO_PROVE_BESIDE_GPU = ("single points",)
TO_GENERATE = ("multiples in G2", "multiples in G1", "transposed rows", "transforms", "values")
TO_GENERATE_BESIDE_GPU = ("transposed rows", "transforms", "values")
TO_CHECK_POINTS = ("sums in G2", "sums in G1")


def warm_up(device: CpuDevice, groups: tuple[str, ...], on_event: OnEvent) -> None:
    """Compile those of the groups that the cache folder lacks, on as many cores as the device has threads."""
    missing = [name for name in GROUPS if name in groups and not _mark(device, name).exists()]
    if not missing or not cache_is_writable():
        return
    with stage(on_event, "compile kernels (first start)", total=len(missing), unit="groups") as progress:
        serve = f"from cuzk.proofs.warm_up import serve; serve({device.lanes})"
        failed = compile_in_processes(missing, device.threads, serve, progress)
    report_failed(failed, on_event)


def report_failed(failed: list[str], on_event: OnEvent) -> None:
    if failed:
        on_event(
            Notice(level="warning", text=f"not compiled ahead: {', '.join(failed)}; they compile when needed")
        )


def _mark(device: CpuDevice, group: str) -> Path:
    return compiled_folder() / f"complete {device.name.replace(':', ' ')} {group}"


def compile_in_processes(
    names: list[str], processes: int, serve: str, progress: Callable[[int, int], None]
) -> list[str]:
    """The names that could not be compiled.

    serve  a program for the processes: it reads names, line by line, and answers each when it is compiled
    """
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        todo.put(name)
    done: list[str] = []
    lock = threading.Lock()

    def drive(child: subprocess.Popen[str]) -> None:
        """Feeds one process: a group's name in, the same name back when it is compiled."""
        assert child.stdin is not None and child.stdout is not None
        with suppress(queue.Empty, OSError):  # nothing left to do, or the child has died
            while True:
                name = todo.get_nowait()
                child.stdin.write(f"{name}\n")
                if child.stdout.readline().strip() != name:
                    return
                with lock:
                    done.append(name)
                    progress(len(done), len(names))

    with ExitStack() as stack:
        children = [stack.enter_context(_compiler(serve)) for _ in range(min(processes, len(names)))]
        drivers = [threading.Thread(target=drive, args=(child,), daemon=True) for child in children]
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join()
    return [name for name in names if name not in done]


@contextmanager
def _compiler(serve: str) -> Iterator[subprocess.Popen[str]]:
    """A process that compiles with this package into this process's folder, and ends with the `with`."""
    package_parent = str(Path(__file__).parents[2])
    code = f"import sys; sys.path[0] = {package_parent!r}; {serve}"
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what fails here fails again, and is heard, where it is needed
        text=True,
        bufsize=1,
        env={**os.environ, "XDG_CACHE_HOME": str(compiled_folder().parents[1])},
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def serve(lanes: int) -> None:
    """The compiling process: reads names of groups, runs each, marks it and answers with its name."""
    device = CpuDevice(threads=1, lanes=lanes)
    for line in sys.stdin:
        name = line.strip()
        GROUPS[name](device)
        _mark(device, name).touch()
        print(name, flush=True)
