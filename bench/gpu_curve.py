"""Mixed additions in XYZZ coordinates on an NVIDIA GPU, in G1: `python -m bench.gpu_curve`.

Every thread adds affine points of a table to its own sum, which stays in registers: throughput of the
formulas that folds use (`kernels.xyzz`). A run takes tens of milliseconds: wall time is the kernel's time.
Check: 64 threads against multiples of the generator by textbook, all others against those that read the same
points.
`--compile-only` needs no GPU: registers and spills.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba.core import types

from bench.gpu_limits import mixed_addition_products, multiplier_rate
from bench.peers import SPPARK_MIXED_ADDITION
from bench.runner import Case, machine_of, main
from cuzk.kernels.curve import G1, Point, invert
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import load_api
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.field import load, store
from cuzk.kernels.field_type import FQ_GPU
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import CudaKernel, cuda_jit
from cuzk.kernels.modulus import FQ
from cuzk.kernels.xyzz import add_affine, identity

POINTS = 1 << 12  # multiples of the generator, read by turns
ADDITIONS = 1 << 12  # of a thread
CHECKED = 64
_STRIDE = 1021  # from one point of a thread to its next
_U32 = pointer(types.uint32)


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads a block, blocks that a multiprocessor must hold."""

    threads: int
    blocks: int


SHAPES = [Shape(128, 2), Shape(128, 3), Shape(128, 4)]


@cache
def adding(shape: Shape) -> CudaKernel:
    """sums[t] = X, Y, ZZ, ZZZ of the points t, t + stride, t + 2 stride, ... modulo their number."""
    threads, form = shape.threads, FQ_GPU

    @cuda_jit(_U32, _U32, _U32, types.int32, launch_bounds=(shape.threads, shape.blocks))
    def add_points(points_x, points_y, sums, additions):  # type: ignore[no-untyped-def]
        thread = np.int32(np.int32(cuda.blockIdx.x) * np.int32(threads) + np.int32(cuda.threadIdx.x))
        total = identity(form)
        place = thread
        left = additions
        while left > 0:
            row = np.int32(place & np.int32(POINTS - 1))
            total = add_affine(form, total, load(form, points_x, row), load(form, points_y, row))
            place = np.int32(place + np.int32(_STRIDE))
            left = np.int32(left - np.int32(1))
        first = np.int64(thread) * 4
        store(form, sums, first, total[0])
        store(form, sums, first + 1, total[1])
        store(form, sums, first + 2, total[2])
        store(form, sums, first + 3, total[3])

    return add_points


def case(device: CudaDevice, shape: Shape, table: tuple[Any, Any]) -> Case:
    kernel = device.load(adding(shape))
    blocks = device.card.multiprocessors * kernel.blocks_at_once(shape.threads)
    threads = blocks * shape.threads
    sums = device.allocate((threads, 4, FQ_GPU.words), np.uint32)
    launch = kernel.prepare(blocks, shape.threads, *table, sums, ADDITIONS)

    def run(_: None) -> None:
        launch.run(device.stream)
        device.synchronise()

    def check(_: None) -> bool:
        got = device.download(sums)
        repeated = np.array_equal(got, np.resize(got[:POINTS], got.shape))
        return repeated and all(affine(got[t]) == expected(t) for t in range(CHECKED))

    rate = multiplier_rate(device.card.multiprocessors, device.card.clock_mhz)
    return Case(
        name=f"mixed addition, {shape.threads} threads, {shape.blocks} blocks",
        device=f"{device.name}, {kernel.registers} regs, {kernel.local_bytes} bytes local",
        n=threads * ADDITIONS,
        prepare=lambda: None,
        run=run,
        check=check,
        items=threads * ADDITIONS,
        unit="additions",
        limit=rate / mixed_addition_products(),
        limit_of="its products at the rate and highest clock of the card",
        peer=SPPARK_MIXED_ADDITION,
    )


def expected(thread: int) -> Point[int]:
    total = sum((thread + k * _STRIDE) % POINTS + 1 for k in range(ADDITIONS))
    return G1.multiply(total, G1.generator)


def affine(xyzz: np.ndarray[Any, Any]) -> Point[int]:
    """Plain integers from the words of X, Y, ZZ, ZZZ in Montgomery form."""
    back = pow(FQ_GPU.radix, -1, FQ.p)
    x, y, zz, zzz = (int.from_bytes(row.astype("<u4").tobytes(), "little") * back % FQ.p for row in xyzz)
    return (x * invert(zz) % FQ.p, y * invert(zzz) % FQ.p) if zz else None


def uploaded_table(device: CudaDevice) -> tuple[DeviceArray, DeviceArray]:
    """x and y of G, 2G, ..., in Montgomery form."""
    rows = np.zeros((2, POINTS, FQ_GPU.words), np.uint32)
    point: Point[int] = G1.generator
    for i in range(POINTS):
        assert point is not None
        for axis in range(2):
            rows[axis, i] = FQ.limbs(point[axis] * FQ_GPU.radix % FQ.p, FQ_GPU.words, 32)
        point = G1.add(point, G1.generator)
    return device.upload(rows[0]), device.upload(rows[1])


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    with CudaDevice(chosen.device) as device:
        table = uploaded_table(device)
        for shape in SHAPES:
            yield case(device, shape, table)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cuda:0", metavar="NAME")


def facts_of(chosen: argparse.Namespace) -> dict[str, object]:
    return machine_of(find_card(load_api(), chosen.device))


def show_compiled(capability: tuple[int, int] = (9, 0)) -> None:
    for shape in SHAPES:
        compiled = adding(shape).compile(capability)
        print(f"{shape}: {compiled.registers} registers, {compiled.spill_bytes} spill bytes")


if __name__ == "__main__":
    if sys.argv[1:] == ["--compile-only"]:
        show_compiled()
    else:
        main("Mixed additions on a GPU", cases, options, runs=20, facts_of=facts_of)
