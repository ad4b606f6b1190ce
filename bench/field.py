"""Field arithmetic, one lane and eight, and what is made of it: `python -m bench.field`.

Products, squares and sums are `CHAINS` independent chains, as kernels have them: throughput, not latency.
A batched addition is what every sum of points is made of; its pairs are random rows of a table of the case's
size. Inputs are uniform. Checks: plain integers, and for points the textbook group law.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from bench import peers
from bench.peers import Peer
from bench.runner import Case, main
from cuzk.kernels.batch_add import batch_add
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty, has_ifma
from cuzk.kernels.field import canonical, carried, lanes_of, load, sqr, store
from cuzk.kernels.field_type import FieldForm
from cuzk.kernels.fixed_base import FixedBase
from cuzk.kernels.fr_vector import from_integers
from cuzk.kernels.inverse import inverse
from cuzk.kernels.jit import jit
from cuzk.kernels.points import decode_points, encode_block, encoded_bytes, padded
from cuzk.kernels.xyzz import curve_of

CHAINS = 4
ROUNDS = 1 << 15
BATCH = 1 << 13
PRODUCTS_AN_ADDITION = {1: 6, 2: 17}
"""Products in Fq by the degree of the coordinates: 5 products and a square, of 3 and of 2 products in Fq2."""
_CHECKED_PAIRS = 20
Compute = Callable[[Any, Any, int], None]


@jit
def multiply(form, values, rounds):  # type: ignore[no-untyped-def]
    """x := x*y, `rounds` times; x are the first CHAINS groups of `values`, y is the last one."""
    lanes = lanes_of(form)
    y = load(form, values, 4 * lanes)
    a, b = carried(load(form, values, 0) * y), carried(load(form, values, lanes) * y)
    c, d = carried(load(form, values, 2 * lanes) * y), carried(load(form, values, 3 * lanes) * y)
    for _ in range(rounds - 1):
        a, b, c, d = carried(a * y), carried(b * y), carried(c * y), carried(d * y)
    _store(form, values, a, b, c, d)


@jit
def square(form, values, rounds):  # type: ignore[no-untyped-def]
    """x := x*x."""
    lanes = lanes_of(form)
    a, b = carried(sqr(load(form, values, 0))), carried(sqr(load(form, values, lanes)))
    c, d = carried(sqr(load(form, values, 2 * lanes))), carried(sqr(load(form, values, 3 * lanes)))
    for _ in range(rounds - 1):
        a, b, c, d = carried(sqr(a)), carried(sqr(b)), carried(sqr(c)), carried(sqr(d))
    _store(form, values, a, b, c, d)


@jit
def add(form, values, rounds):  # type: ignore[no-untyped-def]
    """x := x + y, canonical."""
    lanes = lanes_of(form)
    y = load(form, values, 4 * lanes)
    a, b = load(form, values, 0), load(form, values, lanes)
    c, d = load(form, values, 2 * lanes), load(form, values, 3 * lanes)
    for _ in range(rounds):
        a, b, c, d = canonical(a + y), canonical(b + y), canonical(c + y), canonical(d + y)
    _store(form, values, a, b, c, d)


@jit
def invert(form, values, rounds):  # type: ignore[no-untyped-def]
    """x := x + 1/x, one chain of values that are new each time: branches cannot learn them."""
    x = load(form, values, 0)
    for _ in range(rounds):
        x = canonical(x + inverse(form, x))
    store(form, values, 0, x)


@jit
def _store(form, values, a, b, c, d):  # type: ignore[no-untyped-def]
    lanes = lanes_of(form)
    store(form, values, 0, canonical(a))
    store(form, values, lanes, canonical(b))
    store(form, values, 2 * lanes, canonical(c))
    store(form, values, 3 * lanes, canonical(d))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 8] if has_ifma() else [1], metavar="N")
    parser.add_argument("--table-log2", type=int, nargs="+", default=[13, 20], metavar="K")


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    for lanes in chosen.lanes:
        device = CpuDevice(threads=1, lanes=lanes)
        fr, fq, fq2 = device.fr, device.g1, device.g2
        yield chain_case("Fr product", device, fr, multiply, repeated_product, peers.FR_PRODUCT)
        yield chain_case("Fq product", device, fq, multiply, repeated_product, peers.FQ_PRODUCT)
        yield chain_case("Fq square", device, fq, square, repeated_square, peers.FQ_SQUARE)
        yield chain_case("Fq sum", device, fq, add, repeated_sum, peers.FQ_SUM)
        yield chain_case("Fq2 product", device, fq2, multiply, repeated_product)
        yield inversion_case(device)
        for log2 in chosen.table_log2:
            yield addition_case("G1 batched addition", device, fq, 1 << log2)
        yield addition_case("G2 batched addition", device, fq2, 1 << min(chosen.table_log2))


# Chains: rows hold x*R, so an operation on them is the plain one on x.


def repeated_product(x: Any, y: Any, p: int) -> Any:
    power, base, left = y, y, ROUNDS - 1
    while left:
        power = times(power, base, p) if left & 1 else power
        base, left = times(base, base, p), left >> 1
    return times(x, power, p)


def repeated_square(x: Any, _: Any, p: int) -> Any:
    for _ in range(ROUNDS):
        x = times(x, x, p)
    return x


def repeated_sum(x: Any, y: Any, p: int) -> Any:
    return tuple((a + ROUNDS * b) % p for a, b in zip(x, y, strict=True))


def times(x: Any, y: Any, p: int) -> Any:
    """Elements are tuples of their one or two components."""
    if len(x) == 1:
        return (x[0] * y[0] % p,)
    return (x[0] * y[0] - x[1] * y[1]) % p, (x[0] * y[1] + x[1] * y[0]) % p


def chain_case(
    name: str, device: CpuDevice, form: Any, compute: Compute, expected: Any, peer: Peer | None = None
) -> Case:
    given = random_rows(form, (CHAINS + 1) * form.lanes)
    values = aligned_empty(*given.shape)

    def prepare() -> None:
        values[:] = given

    def check(_: None) -> bool:
        """The first lane of the first chain, the last lane of the last."""
        before, after = elements(form, given), elements(form, values)
        places = ((0, CHAINS * form.lanes), (CHAINS * form.lanes - 1, -1))
        p = form.base.modulus.p
        return all(after[x] == expected(before[x], before[y], p) for x, y in places)

    operations = CHAINS * form.lanes * ROUNDS
    return Case(
        name=name,
        device=device.name,
        n=operations,
        prepare=prepare,
        run=lambda _: compute(form, values, ROUNDS),
        check=check,
        items=operations,
        unit="operations",
        peer=peer,
    )


def chain(x: int, rounds: int, p: int) -> int:
    """What `invert` computes, in plain integers."""
    for _ in range(rounds):
        x = (x + pow(x, -1, p)) % p
    return x


def inversion_case(device: CpuDevice) -> Case:
    """Eight lanes share one inversion, so that the rate counts all of them."""
    form, rounds = device.g1, 1001
    given, values = random_rows(form, form.lanes), aligned_empty(form.lanes, form.words)

    def prepare() -> None:
        values[:] = given

    def check(_: None) -> bool:
        p, pairs = form.modulus.p, zip(elements(form, given), elements(form, values), strict=True)
        return all(chain(x, rounds, p) == y for (x,), (y,) in pairs)

    return Case(
        name="Fq inversion",
        device=device.name,
        n=rounds * form.lanes,
        prepare=prepare,
        run=lambda _: invert(form, values, rounds),
        check=check,
        items=rounds * form.lanes,
        unit="operations",
        peer=peers.FQ_INVERSION,
    )


def random_rows(form: Any, count: int) -> Any:
    """Canonical elements: the top word is kept below the modulus's."""
    base, rng = form.base, random.Random(1)
    rows = aligned_empty(count * form.words // base.words, base.words)
    for row in rows:
        row[:] = base.modulus.limbs(rng.randrange(base.modulus.p), base.words, word_bits(base))
    return rows.reshape(count, form.words)


def elements(form: Any, rows: Any) -> list[tuple[int, ...]]:
    """The plain elements whose Montgomery forms are in `rows`."""
    base = form.base
    p, r_inverse, width = base.modulus.p, pow(base.radix, -1, base.modulus.p), word_bits(base)
    numbers = [
        sum(int(word) << (width * i) for i, word in enumerate(row)) * r_inverse % p
        for row in rows.reshape(-1, base.words)
    ]
    degree = form.words // base.words
    return [tuple(numbers[i : i + degree]) for i in range(0, len(numbers), degree)]


def word_bits(base: FieldForm) -> int:
    """Eight lanes of Fq lie in memory as limbs of 52 bits; all else is packed."""
    return 52 if base.lanes == 8 and base.words == base.limbs else 64


# Additions.


def addition_case(name: str, device: CpuDevice, form: Any, table: int) -> Case:
    curve = curve_of(form)
    rng = np.random.default_rng(1)
    scalars = from_integers([int(k) for k in rng.integers(1, 1 << 60, table)])
    encoded = np.empty((table, encoded_bytes(form)), np.uint8)
    FixedBase(device, form, table).encode(scalars, encoded)
    rows = aligned_empty(padded(table) + BATCH, 2 * form.words)
    assert decode_points(device, form, encoded, rows) is None
    pairs = rng.permutation(table)[:BATCH] if table > BATCH else rng.permutation(BATCH)
    left = (pairs << 1).astype(np.uint32)
    right = (np.roll(pairs, 1) << 1).astype(np.uint32)
    products = aligned_empty(BATCH, form.words).reshape(-1)
    out_row = padded(table)

    def check(added: bool) -> bool:
        count = padded(_CHECKED_PAIRS)
        sums = np.empty((count, encoded_bytes(form)), np.uint8)
        encode_block(form, rows[out_row : out_row + count], sums)
        logs = [int(scalars[a >> 1, 0]) + int(scalars[b >> 1, 0]) for a, b in zip(left, right, strict=True)]
        points = [curve.multiply(log, curve.generator) for log in logs[:count]]
        return added and [row.tobytes() for row in sums] == [encoding(point) for point in points]

    return Case(
        name=name,
        device=device.name,
        n=table,
        prepare=lambda: None,
        run=lambda _: batch_add(form, rows, left, right, BATCH, out_row, products),
        check=check,
        items=BATCH,
        unit="additions",
        limit=1 / (PRODUCTS_AN_ADDITION[form.degree] * product_seconds(device.g1)),
        limit_of="of an addition, its products in Fq alone at their rate in this run",
    )


def encoding(point: Any) -> bytes:
    components = [c for z in point for c in ((z,) if isinstance(z, int) else reversed(z))]
    return b"".join(c.to_bytes(48, "big") for c in components)


@lru_cache
def product_seconds(form: FieldForm) -> float:
    """The fastest of some runs: what a product takes when nothing else is in the way."""
    values = random_rows(form, (CHAINS + 1) * form.lanes)
    multiply(form, values, 1)
    best = math.inf
    for _ in range(10):
        start = time.perf_counter()
        multiply(form, values, ROUNDS)
        best = min(best, time.perf_counter() - start)
    return best / (CHAINS * form.lanes * ROUNDS)


if __name__ == "__main__":
    main("Field arithmetic on one core", cases, options, runs=20)
