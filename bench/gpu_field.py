"""Field arithmetic on an NVIDIA GPU: `python -m bench.gpu_field`.

Every thread repeats one program of `radix32` on its own value, x := f(x, y, ...), with as many threads as the
card holds: throughput. Inputs are uniform. A run takes tens of milliseconds: wall time is the kernel's time.
Check: every distinct thread against plain integers. `--compile-only` needs no GPU: registers and spills.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing import signature
from numba.cuda.extending import intrinsic

from bench.gpu_limits import multiplier_rate, wide_products
from bench.peers import SPPARK_FIELDS
from bench.runner import Case, machine_of, main
from cuzk.kernels.codegen import radix32
from cuzk.kernels.codegen.asm import WIDTH, Program
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import load_api
from cuzk.kernels.gpu.compiler import compile_kernel, cuda, pointer
from cuzk.kernels.gpu.cubin import Compiled
from cuzk.kernels.modulus import FQ, FR, Modulus

THREADS = 256
DISTINCT = 64  # threads with inputs of their own; the others repeat them
ARGUMENTS = (pointer(types.uint32), types.uint32)
_I32 = ir.IntType(32)


@dataclass(frozen=True, slots=True)
class Operation:
    """A program to repeat on x: its elements, of which x is the first, and what one step makes of x."""

    name: str
    modulus: Modulus
    emit: Callable[..., Any]
    elements: int
    rounds: int
    step: Callable[..., int]

    @property
    def program(self) -> Program:
        return radix32.build(self.emit, self.modulus, self.elements)


def mul(p: int, radix_inverse: int, x: int, y: int) -> int:
    return x * y * radix_inverse % p


def sqr(p: int, radix_inverse: int, x: int) -> int:
    return x * x * radix_inverse % p


def add(p: int, _: int, x: int, y: int) -> int:
    return (x + y) % p


def sub(p: int, _: int, x: int, y: int) -> int:
    return (x - y) % p


def scale(p: int, _: int, x: int, w: int, w_shoup: int) -> int:
    return x * w % p


OPERATIONS = [
    Operation("Fq product", FQ, radix32.mul_mont, 2, 1 << 12, mul),
    Operation("Fq square", FQ, radix32.sqr_mont, 1, 1 << 12, sqr),
    Operation("Fq sum", FQ, radix32.add_mod, 2, 1 << 15, add),
    Operation("Fq difference", FQ, radix32.sub_mod, 2, 1 << 15, sub),
    Operation("Fr product", FR, radix32.mul_mont, 2, 1 << 13, mul),
    Operation("Fr square", FR, radix32.sqr_mont, 1, 1 << 13, sqr),
    Operation("Fr product by constant", FR, radix32.mul_shoup, 3, 1 << 13, scale),
    Operation("Fr sum", FR, radix32.add_mod, 2, 1 << 15, add),
]


def repeating(program: Program, limbs: int) -> Callable[..., None]:
    """The kernel: thread i reads row i, repeats the program on its first element and writes that back."""
    rest = len(program.inputs) - limbs

    @intrinsic  # type: ignore[untyped-decorator]
    def read(typing: Any, words: Any, place: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            base = builder.gep(arguments[0], [arguments[1]])
            loaded = [builder.load(builder.gep(base, [ir.Constant(_I32, k)])) for k in range(limbs + rest)]
            x = context.make_tuple(builder, sig.return_type.types[0], loaded[:limbs])
            return context.make_tuple(
                builder,
                sig.return_type,
                [x, context.make_tuple(builder, sig.return_type.types[1], loaded[limbs:])],
            )

        return signature(types.Tuple([_words(limbs), _words(rest)]), words, place), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def apply(typing: Any, x: Any, others: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            inputs = [builder.extract_value(arguments[0], k) for k in range(limbs)]
            inputs += [builder.extract_value(arguments[1], k) for k in range(rest)]
            outputs = ir.LiteralStructType([_I32] * limbs)
            function = ir.FunctionType(outputs, [_I32] * len(inputs))
            constraints = ",".join(["=r"] * limbs + ["r"] * len(inputs))
            block = builder.asm(function, program.text(), constraints, inputs, side_effect=False)
            made = [builder.extract_value(block, k) for k in range(limbs)]
            return context.make_tuple(builder, sig.return_type, made)

        return signature(x, x, others), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def write(typing: Any, words: Any, place: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            base = builder.gep(arguments[0], [arguments[1]])
            for k in range(limbs):
                word = builder.extract_value(arguments[2], k)
                builder.store(word, builder.gep(base, [ir.Constant(_I32, k)]))
            return context.get_dummy_value()

        return signature(types.void, words, place, x), codegen

    size = limbs + rest

    def repeat(words, rounds):  # type: ignore[no-untyped-def]
        place = cuda.grid(1) * size
        x, others = read(words, place)
        for _ in range(rounds):
            x = apply(x, others)
        write(words, place, x)

    return repeat


def _words(count: int) -> Any:
    return types.UniTuple(types.uint32, count)


class Repeating:
    """The kernel of an operation, as a device loads it: compiled anew, as the cache holds no benchmarks."""

    name = "repeat"
    argument_types = ARGUMENTS

    def __init__(self, operation: Operation) -> None:
        self._function = repeating(operation.program, radix32.limb_count(operation.modulus))

    def compile(self, capability: tuple[int, int]) -> Compiled:
        return compile_kernel(self._function, ARGUMENTS, capability, launch_bounds=(THREADS,))

    def cubin(self, capability: tuple[int, int]) -> bytes:
        return self.compile(capability).cubin


def case(device: CudaDevice, operation: Operation) -> Case:
    kernel = device.load(Repeating(operation))
    blocks = device.card.multiprocessors * kernel.blocks_at_once(THREADS)
    given = operands(operation)
    rows = device.allocate((blocks * THREADS, given.shape[1]), np.uint32)
    host = np.ascontiguousarray(np.resize(given, rows.shape))
    launch = kernel.prepare(blocks, THREADS, rows, operation.rounds)

    def prepare() -> None:
        device.upload(host, into=rows)
        device.synchronise()

    def run(_: None) -> None:
        launch.run(device.stream)
        device.synchronise()

    def check(_: None) -> bool:
        left = device.download(rows)[:, : radix32.limb_count(operation.modulus)]
        one_each = left[:DISTINCT]
        same = np.array_equal(left, np.resize(one_each, left.shape))
        return same and [value_of(row) for row in one_each] == expected(operation, given)

    program = operation.program
    cost = wide_products(program) or len(program.instructions) / 2
    return Case(
        name=operation.name,
        device=f"{device.name}, {kernel.registers} regs",
        n=rows.shape[0] * operation.rounds,
        prepare=prepare,
        run=run,
        check=check,
        items=rows.shape[0] * operation.rounds,
        unit="operations",
        limit=multiplier_rate(device.card.multiprocessors, device.card.clock_mhz) / cost,
        limit_of="its products, or without any its instructions, at the rate and highest clock of the card",
        peer=SPPARK_FIELDS.get(operation.name),
    )


def operands(operation: Operation) -> np.ndarray[Any, Any]:
    """(DISTINCT, words) uint32; a third element is what the product by the second, a constant, needs."""
    rng, p, n = random.Random(1), operation.modulus.p, radix32.limb_count(operation.modulus)
    rows = []
    for _ in range(DISTINCT):
        values = [rng.randrange(p) for _ in range(min(operation.elements, 2))]
        if operation.elements == 3:
            values.append((values[1] << 32 * n) // p)
        rows.append([limb for value in values for limb in operation.modulus.limbs(value, n, WIDTH)])
    return np.array(rows, np.uint32)


def expected(operation: Operation, given: np.ndarray[Any, Any]) -> list[int]:
    """Plain integers, one step after another."""
    p, n = operation.modulus.p, radix32.limb_count(operation.modulus)
    radix_inverse = pow(1 << WIDTH * n, -1, p)
    results = []
    for row in given:
        x, *others = (value_of(row[k : k + n]) for k in range(0, len(row), n))
        for _ in range(operation.rounds):
            x = operation.step(p, radix_inverse, x, *others)
        results.append(x)
    return results


def value_of(limbs: np.ndarray[Any, Any]) -> int:
    return int.from_bytes(np.ascontiguousarray(limbs, "<u4").tobytes(), "little")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cuda:0", metavar="NAME")
    parser.add_argument("--operation", nargs="+", metavar="NAME", help="only those whose name begins so")


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    prefixes = tuple(chosen.operation or [""])
    with CudaDevice(chosen.device) as device:
        for operation in OPERATIONS:
            if operation.name.startswith(prefixes):
                yield case(device, operation)


def facts_of(chosen: argparse.Namespace) -> dict[str, object]:
    return machine_of(find_card(load_api(), chosen.device))


def show_compiled(capability: tuple[int, int] = (9, 0)) -> None:
    for operation in OPERATIONS:
        compiled = Repeating(operation).compile(capability)
        print(f"{operation.name:<26}{compiled.registers:>4} registers {compiled.spill_bytes:>4} spill bytes")


if __name__ == "__main__":
    if sys.argv[1:] == ["--compile-only"]:
        show_compiled()
    else:
        main("Field arithmetic on a GPU", cases, options, runs=20, facts_of=facts_of)
