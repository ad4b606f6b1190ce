"""Field operations in kernels of a GPU, on edge values, against plain integers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pytest
from numba.core import types

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.field import (
    any_lane,
    from_mont,
    is_below_p,
    is_zero,
    load,
    negate_where,
    select,
    sqr,
    store,
    to_mont,
    zero,
)
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU, FR_GPU
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.inverse import inverse_gpu
from cuzk.kernels.gpu.jit import CudaKernel, cuda_jit
from tests.kernels.field_values import edge_values, to_ints, to_rows

FORMS = [FR_GPU, FQ_GPU, FQ2_GPU]
THREADS = 128
OPERATIONS = 9
RANDOM = 300
_WORDS = pointer(types.uint32)
Value = tuple[int, ...]  # the components, as the words hold them: R times what they stand for


@cache
def operations_kernel(form: Any) -> CudaKernel:
    """Section k of `out`, n elements, is operation k of a[i] and b[i], in the order of `expected`."""

    @cuda_jit(_WORDS, _WORDS, _WORDS, types.uint32, launch_bounds=(THREADS,))
    def operations(a, b, out, n):  # type: ignore[no-untyped-def]
        i = np.int64(cuda.grid(1))
        if i < n:
            step = np.int64(n)
            x, y = load(form, a, i), load(form, b, i)
            store(form, out, i, x + y)
            store(form, out, i + step, x - y)
            store(form, out, i + 2 * step, x * y)
            store(form, out, i + 3 * step, sqr(x))
            store(form, out, i + 4 * step, zero(form) - x)
            store(form, out, i + 5 * step, negate_where(is_zero(y), x))
            store(form, out, i + 6 * step, select(is_zero(x - y), y, x + x))
            store(form, out, i + 7 * step, to_mont(form, x))
            store(form, out, i + 8 * step, from_mont(form, x))

    return operations


@cache
def inversion_kernel(form: Any) -> CudaKernel:
    @cuda_jit(_WORDS, _WORDS, types.uint32, launch_bounds=(THREADS,))
    def invert(a, out, n):  # type: ignore[no-untyped-def]
        i = np.int64(cuda.grid(1))
        if i < n:
            store(form, out, i, inverse_gpu(form, load(form, a, i)))

    return invert


@cache
def comparison_kernel(form: Any) -> CudaKernel:
    """1 where the number in the words of a[i] is below p, plus 2 where it is 0."""

    @cuda_jit(_WORDS, _WORDS, types.uint32, launch_bounds=(THREADS,))
    def compare(a, out, n):  # type: ignore[no-untyped-def]
        i = np.int64(cuda.grid(1))
        if i < n:
            x = load(form, a, i)
            out[i] = types.uint32(any_lane(is_below_p(x))) + types.uint32(2) * types.uint32(
                any_lane(is_zero(x))
            )

    return compare


def values_of(form: Any) -> list[tuple[Value, Value]]:
    """Pairs: edges with edges in Fr and Fq, elements of random edges in Fq2; then random ones."""
    p, rng = form.base.modulus.p, random.Random(form.degree)
    edges = edge_values(p)
    if form.degree == 1:
        pairs = [((a,), (b,)) for a, b in product(edges, repeat=2)]
    else:
        elements = [(rng.choice(edges), rng.choice(edges)) for _ in range(RANDOM)]
        pairs = [(a, b) for a, b in zip(elements, elements[1:] + elements[:1], strict=True)]
        pairs += [(a, a) for a in [(0, 0), (0, 1), (1, 0), *elements[:8]]]
    uniform = [tuple(rng.randrange(p) for _ in range(form.degree)) for _ in range(2 * RANDOM)]
    return pairs + list(zip(uniform[:RANDOM], uniform[RANDOM:], strict=True))


def rows_of(form: Any, values: Sequence[Value]) -> np.ndarray[Any, Any]:
    """(n, words) uint32."""
    components = [component for value in values for component in value]
    return to_rows(form.base, components).astype(np.uint32).reshape(len(values), form.words)


def read(form: Any, rows: np.ndarray[Any, Any]) -> list[Value]:
    numbers = to_ints(form.base, rows.reshape(-1, form.base.words))
    return [tuple(numbers[i : i + form.degree]) for i in range(0, len(numbers), form.degree)]


def plus(p: int, a: Value, b: Value) -> Value:
    return tuple((x + y) % p for x, y in zip(a, b, strict=True))


def times(p: int, a: Value, b: Value) -> Value:
    if len(a) == 1:
        return (a[0] * b[0] % p,)
    return (a[0] * b[0] - a[1] * b[1]) % p, (a[0] * b[1] + a[1] * b[0]) % p


def scaled(p: int, a: Value, factor: int) -> Value:
    return tuple(x * factor % p for x in a)


def expected(form: Any, x: Value, y: Value) -> list[Value]:
    p, radix = form.base.modulus.p, form.base.radix
    per_radix = pow(radix, -1, p)
    minus_x = scaled(p, x, -1)
    return [
        plus(p, x, y),
        plus(p, x, scaled(p, y, -1)),
        scaled(p, times(p, x, y), per_radix),
        scaled(p, times(p, x, x), per_radix),
        minus_x,
        x if any(y) else minus_x,
        y if x == y else plus(p, x, x),
        scaled(p, x, radix),
        scaled(p, x, per_radix),
    ]


def launched(
    device: CudaDevice, kernel: CudaKernel, *given: np.ndarray[Any, Any], shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """What the kernel leaves in an array of that shape."""
    n = len(given[0])
    there = [device.upload(rows) for rows in given]
    try:
        with device.allocate(shape, np.uint32) as out:
            device.launch(kernel, -(-n // THREADS), THREADS, *there, out, n)
            return device.download(out)
    finally:
        for array in there:
            array.close()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_operations_are_those_of_plain_integers(device: CudaDevice, form: Any) -> None:
    pairs = values_of(form)
    a, b = (rows_of(form, [pair[k] for pair in pairs]) for k in range(2))
    n = len(pairs)
    out = launched(device, operations_kernel(form), a, b, shape=(OPERATIONS * n, form.words))
    got = read(form, out)
    for i, (x, y) in enumerate(pairs):
        assert got[i::n] == expected(form, x, y), (x, y)


@pytest.mark.parametrize("form", [FQ_GPU, FQ2_GPU], ids=lambda form: form.name)
def test_an_inverse_times_its_element_is_one(device: CudaDevice, form: Any) -> None:
    values = list(dict.fromkeys(x for pair in values_of(form) for x in pair))
    p, radix = form.base.modulus.p, form.base.radix
    rows = rows_of(form, values)
    inverses = read(form, launched(device, inversion_kernel(form), rows, shape=rows.shape))
    one = (radix * radix % p, *[0] * (form.degree - 1))
    for x, inverse in zip(values, inverses, strict=True):
        assert times(p, x, inverse) == (one if any(x) else x), x
        assert all(component < p for component in inverse)


@pytest.mark.parametrize("form", [FR_GPU, FQ_GPU], ids=lambda form: form.name)
def test_any_words_are_compared_with_the_modulus(device: CudaDevice, form: Any) -> None:
    p, bits = form.modulus.p, 32 * form.words
    values = [*edge_values(p), p, p + 1, p - 2**32, p + 2**32, p + 2 ** (bits - 32), 2 * p, 2**bits - 1]
    values += [p ^ 1 << k for k in range(bits)]
    rows = rows_of(form, [(value,) for value in values])
    got = launched(device, comparison_kernel(form), rows, shape=(len(values),))
    assert got.tolist() == [int(value < p) + 2 * (value == 0) for value in values]
