"""The kernels of a circuit on a stand-in driver: what a block or a thread does is done by the CPU's code.

Blocks run last first, since their order must not matter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from cuzk.kernels.circuit.instances import Instances, Templates, Variables
from cuzk.kernels.circuit.template_rows import evaluate_instances, first_unsatisfied
from cuzk.kernels.circuit.witness import fill_instances
from cuzk.kernels.field import FR
from cuzk.kernels.gpu.instances import TABLES

_MOST = 1 << 24  # items that an array may have: a view of memory touches nothing
_ROW = 4


def memory(address: int, dtype: Any, count: int = _MOST) -> np.ndarray[Any, Any]:
    """What begins at an address of the stand-in's memory."""
    nbytes = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address or 1), dtype)


def arguments(params: int, count: int) -> list[int]:
    addresses = (ctypes.c_void_p * count).from_address(params)
    return [ctypes.c_uint64.from_address(address or 0).value for address in addresses]


def rows(address: int) -> np.ndarray[Any, Any]:
    return memory(address, np.uint64).reshape(-1, _ROW)


def tables(addresses: list[int]) -> tuple[Templates, Instances]:
    """The arrays that `upload_tables` has left, field elements as the CPU has them."""
    kinds = [numba.np.numpy_support.as_dtype(kind.dtype) for kind in TABLES]
    arrays = [memory(address, kind) for address, kind in zip(addresses, kinds, strict=True)]
    count = len(Templates._fields)
    templates, instances = Templates(*arrays[:count]), Instances(*arrays[count:])
    fields = dict(zip(Templates._fields, addresses, strict=False))
    of_field = {name: rows(fields[name]) for name in ("numbers", "coefficients", "coefficients_mont")}
    return templates._replace(**of_field), instances


def _variables(bits: int, values: int) -> Variables:
    return Variables.of(memory(bits, np.uint8), rows(values))


def fill_wave(grid: Any, block: Any, shared: int, params: int) -> None:
    *held, order, first, bits, values = arguments(params, len(TABLES) + 4)
    for b in reversed(range(grid[0])):
        i = int(memory(order, np.uint32)[first + b])
        fill_instances(*tables(held), i, i + 1, _variables(bits, values))


def evaluate_rows(grid: Any, block: Any, shared: int, params: int) -> None:
    *held, side, bits, values, out = arguments(params, len(TABLES) + 4)
    for b in reversed(range(grid[0])):
        evaluate_instances(FR, *tables(held), b, b + 1, side, _variables(bits, values), rows(out))


def find_unsatisfied(grid: Any, block: Any, shared: int, params: int) -> None:
    a, b, c, count, found = arguments(params, 5)
    row = first_unsatisfied(FR, rows(a), rows(b), rows(c), 0, count)
    memory(found, np.uint32)[0] = 0 if row < 0 else count - row


def place_numbers(grid: Any, block: Any, shared: int, params: int) -> None:
    source, places, count, values = arguments(params, 4)
    rows(values)[memory(places, np.uint32, count)] = rows(source)[:count]


def place_bits(grid: Any, block: Any, shared: int, params: int) -> None:
    source, places, count, bits = arguments(params, 4)
    memory(bits, np.uint8)[memory(places, np.uint32, count)] = memory(source, np.uint8, count)


def take_numbers(grid: Any, block: Any, shared: int, params: int) -> None:
    values, index, count, out = arguments(params, 4)
    rows(out)[:count] = rows(values)[memory(index, np.uint32, count)]


def take_marked(grid: Any, block: Any, shared: int, params: int) -> None:
    source, marks, starts, words, out = arguments(params, 5)
    for w, (mark, start) in enumerate(_marks(marks, starts, words)):
        chosen = [32 * w + k for k in range(32) if mark >> (k ^ 7) & 1]
        memory(out, np.uint8)[start : start + len(chosen)] = memory(source, np.uint8)[chosen]


def _marks(marks: int, starts: int, words: int) -> Iterator[tuple[int, int]]:
    return zip(
        memory(marks, np.uint32, words).tolist(), memory(starts, np.uint32, words).tolist(), strict=True
    )


EFFECTS = {
    effect.__name__: effect
    for effect in (
        fill_wave,
        evaluate_rows,
        find_unsatisfied,
        place_numbers,
        place_bits,
        take_numbers,
        take_marked,
    )
}
