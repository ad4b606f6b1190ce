"""Teams of several threads of the CPU, as on a GPU, in a process of its own: `team` is replaced.

Compiled code calls back for its number and to meet, so every team size runs the very code of a GPU's block.
At a meeting threads are held up at random: what does not wait for it reads too early, or too late.
"""

from __future__ import annotations

import ctypes
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.empty_sector_update import high_part_template
from cuzk.circuit.insertion import select
from cuzk.circuit.merkle_path import merkle_path, sha256_node
from cuzk.circuit.numbers import add, free_bits, free_numbers, inputize
from cuzk.circuit.poseidon import poseidon
from cuzk.circuit.rows import evaluate_side
from cuzk.circuit.witness import Assignment, FreeValues, assign, place_free
from cuzk.kernels.circuit import team
from cuzk.kernels.circuit.instances import in_words
from cuzk.kernels.circuit.sha256 import PATTERN_BITS, TRACE_WORDS, W_WORDS
from cuzk.kernels.circuit.template_rows import DIGITS, evaluate_instance
from cuzk.kernels.circuit.witness import Scratch, fill_instance
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.field import FR
from cuzk.kernels.modulus import FR as FR_MODULUS
from cuzk.kernels.poseidon import LARGEST_WIDTH
from tests.circuit.plain import free

_I64 = ir.IntType(64)
_LONGEST_DELAY_S = 5e-4
_own = threading.local()
_team: dict[str, Any] = {"size": 1, "barrier": None, "waits": True}


@ctypes.CFUNCTYPE(ctypes.c_int64)
def _member() -> int:
    return getattr(_own, "number", 0)


@ctypes.CFUNCTYPE(ctypes.c_int64)
def _members() -> int:
    return _team["size"]


@ctypes.CFUNCTYPE(None)
def _meet() -> None:
    if _team["barrier"] is not None:
        if _team["waits"]:
            _team["barrier"].wait()
        if random.random() < 0.3:
            time.sleep(random.random() * _LONGEST_DELAY_S)


def _call(builder: Any, function: Any, result: Any) -> Any:
    address = ir.Constant(_I64, ctypes.cast(function, ctypes.c_void_p).value)
    return builder.call(builder.inttoptr(address, ir.FunctionType(result, []).as_pointer()), [])


team._is_gpu = lambda builder: True
team._register = lambda builder, name: _call(builder, _member if name == "tid.x" else _members, _I64)
team._barrier = lambda builder: _call(builder, _meet, ir.VoidType())

ALONE = CpuDevice(threads=1)
SLOTS = 1 << 15


def every_kind() -> tuple[Circuit, FreeValues]:
    builder = CircuitBuilder("every kind")
    leaf, root = free_numbers(builder, 2)
    inputize(builder, root)
    for arity, hash_ in ((2, sha256_node), (8, poseidon)):
        merkle_path(builder, leaf, root, [arity], hash_)
    poseidon(builder, free_numbers(builder, 11))
    add(builder, poseidon(builder, [leaf, root]), leaf)
    bits = free_bits(builder, 4)
    builder.instance(high_part_template((1, 2)), bits=bits)
    select(builder, free_numbers(builder, 4), bits[1:3])
    numbers = [FR_MODULUS.p - 1, 7, *(random.randrange(FR_MODULUS.p) for _ in range(23))]
    return builder.circuit(), free(numbers, [1, 0, 1, 1, 0, 1, 1, 0])


def together(size: int, work: Callable[[int], None]) -> None:
    """`work` with each member's number, in threads that start in any order."""

    def run(number: int) -> None:
        _own.number = number
        work(number)

    _team.update(size=size, barrier=threading.Barrier(size))
    threads = [threading.Thread(target=run, args=(number,)) for number in range(size)]
    random.shuffle(threads)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _team.update(size=1, barrier=None)


def filled_by_teams(circuit: Circuit, values: FreeValues, size: int) -> Assignment:
    assignment = Assignment(
        values=np.zeros((circuit.num_inputs + circuit.num_full, 4), np.uint64),
        bits=np.zeros(circuit.num_aux, np.uint8),
        num_inputs=circuit.num_inputs,
    )
    assignment.values[0, 0] = 1
    place_free(circuit, values, assignment)
    tables = in_words(circuit.flat_templates), in_words(circuit.instances)
    for i in circuit.waves.order.tolist():
        scratch = Scratch(
            np.full(PATTERN_BITS, 7, np.uint8),
            np.full(W_WORDS, 7, np.uint32),
            np.full(TRACE_WORDS, 7, np.uint64),
            np.full((LARGEST_WIDTH, 4), 7, np.uint64),
            np.full((LARGEST_WIDTH, 4), 7, np.uint64),
            np.full(DIGITS, 7, np.int64),
        )

        def fill(_: int, i: int = i, scratch: Scratch = scratch) -> None:
            fill_instance(FR, *tables, i, assignment.variables, scratch)

        together(size, fill)
    return assignment


def evaluated_by_teams(circuit: Circuit, assignment: Assignment, side: int, size: int) -> np.ndarray:
    out = np.full((circuit.rows, 4), 7, np.uint64)
    tables = in_words(circuit.flat_templates), in_words(circuit.instances)
    for i in range(len(circuit.instances.table)):
        local, digits = np.full(SLOTS, 7, np.uint8), np.full((size, DIGITS), 7, np.int64)

        def evaluate(member: int, i: int = i, local: Any = local, digits: Any = digits) -> None:
            variables = assignment.variables
            evaluate_instance(FR, *tables, i, side, variables, out, local, digits[member])

        together(size, evaluate)
    return out


def is_right(circuit: Circuit, values: FreeValues, expected: Assignment, size: int) -> bool:
    assignment = filled_by_teams(circuit, values, size)
    same = [
        np.array_equal(assignment.bits, expected.bits),
        np.array_equal(assignment.values, expected.values),
    ]
    for side in range(3):
        rows = evaluate_side(ALONE, circuit, expected, side)[: circuit.rows]
        same.append(np.array_equal(evaluated_by_teams(circuit, expected, side, size), rows))
    return all(same)


def main() -> None:
    """Teams of the sizes that are given; in the end one that does not meet, which must go wrong."""
    random.seed(1)
    circuit, values = every_kind()
    expected = assign(ALONE, circuit, values)
    for size in map(int, sys.argv[1:]):
        assert is_right(circuit, values, expected, size), f"a team of {size}"
    _team["waits"] = False
    assert not is_right(circuit, values, expected, 5), "meetings are not needed?"
    print("right")


if __name__ == "__main__":
    main()
