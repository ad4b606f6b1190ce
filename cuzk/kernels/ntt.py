"""Number-theoretic transforms over Fr, and the quotient polynomial of a proof.

    ntt    X_k = sum_j x_j omega^(jk)             values of a polynomial on the domain, omega = modulus.omega
    intt   x_j = 1/n * sum_k X_k omega^(-jk)      its coefficients

Vectors are (n, 4) uint64, canonical; natural order in and out; n is a power of two up to 2^32. Transforms are
linear, so plain values stay plain: constants alone are in Montgomery form.

Two passes [Bai90] over n = N1*N2, as equal as can be. With j = j1*N2 + j2 and k = k1 + N1*k2,

    X_k = sum_j2 omega^(N1 j2 k2) * omega^(j2 k1) * sum_j1 omega^(N2 j1 k1) x_j

1  columns j2 of N1 lines each, to scratch; line k1 is written times (omega^j2)^k1
2  the rows k1 of scratch as columns of N2 lines each, to the vector; line k2 is written times
   scale * shift^(k1 + N1 k2), geometric as well: 1/n, and all that cosets need. The coefficients of A, the
   i-th times 7^i, are those of A(7X), whose values on the domain are A's on the coset

A pass is `ntt_cpu`; n = 2^22 takes 13 products a value. Below 64 values plain integers do.

Reference  `ntt_textbook`, and the plain sums of the tests.
Sources    [Bai90] Bailey, FFTs in external or hierarchical memory. bellperson, domain.rs: omega, the coset 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.field_buffer import limb_table
from cuzk.kernels.field_type import FieldForm
from cuzk.kernels.fr_vector import from_integers, mont_rows, to_integers
from cuzk.kernels.modulus import FR, FR_GENERATOR, omega
from cuzk.kernels.ntt_cpu import MAX_LINES_LOG2, PassTables, PassVectors, Words, transform_columns

R = FR.p
_TILE = 8  # columns a task takes at least: the most lanes of a form
_SMALL = _TILE * _TILE  # both passes need a tile's columns
_TASKS_A_THREAD = 4  # threads that were interrupted are helped out
_NO_ROWS = np.empty((0, 4), np.uint64)
TRANSFORMS = 6  # of a quotient


def ntt_textbook(values: Sequence[int], root: int) -> list[int]:
    """X_k = sum_j x_j root^(jk), for a `root` of order len(values)."""
    if len(values) == 1:
        return list(values)
    even, odd = ntt_textbook(values[::2], root * root % R), ntt_textbook(values[1::2], root * root % R)
    twiddled = [x * w % R for x, w in zip(odd, powers(root, len(odd)), strict=True)]
    pairs = list(zip(even, twiddled, strict=True))
    return [(a + b) % R for a, b in pairs] + [(a - b) % R for a, b in pairs]


def powers(base: int, count: int, first: int = 1) -> list[int]:
    """first * base^i for i below `count`."""
    out = []
    for _ in range(count):
        out.append(first)
        first = first * base % R
    return out


@dataclass(frozen=True, slots=True)
class Transform:
    """Which transform: its direction, and scale * shift^k, that output k is multiplied by (beside 1/n)."""

    log2_n: int
    inverse: bool
    scale: int = 1
    shift: int = 1

    @property
    def n(self) -> int:
        return 1 << self.log2_n

    @property
    def root(self) -> int:
        return pow(omega(self.log2_n), -1 if self.inverse else 1, R)

    @property
    def whole_scale(self) -> int:
        return self.scale * (pow(self.n, -1, R) if self.inverse else 1) % R


def ntt(device: CpuDevice, vector: Words, *, scratch: Words | None = None) -> None:
    """Coefficients to values on the domain, in place. scratch: another (n, 4), made if not given."""
    transform(device, Transform(_log2(vector), inverse=False), vector, scratch=scratch)


def intt(device: CpuDevice, vector: Words, *, scratch: Words | None = None) -> None:
    """Values on the domain to coefficients, in place."""
    transform(device, Transform(_log2(vector), inverse=True), vector, scratch=scratch)


def to_coset(device: CpuDevice, vector: Words, *, scratch: Words | None = None) -> None:
    """Values on the domain to values on 7 * the domain, in place: two transforms."""
    transform(device, Transform(_log2(vector), inverse=True, shift=FR_GENERATOR), vector, scratch=scratch)
    ntt(device, vector, scratch=scratch)


def quotient(
    device: CpuDevice,
    a: Words,
    b: Words,
    c: Words | None = None,
    *,
    scratch: Sequence[Words] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Words:
    """The n-1 coefficients of (A*B - C) / (X^n - 1), given the values of A, B, C on the domain.

    a, b, c  (n, 4) canonical, three arrays; they are overwritten. c=None means a*b, value by value
    progress hears how many of the transforms are done
    returns  (n-1, 4) canonical: rows of a. The n-th coefficient, 0 whenever a*b = c holds, is dropped

    Six transforms: on the coset X^n - 1 is the constant t = 7^n - 1, so C need not be evaluated there: H's
    coefficients are those of A*B/t, from the coset, less those of C/t. Memory: a vector more, without c two:
    `scratch`, made here if not given.
    """
    log2_n = _log2(a)
    assert a is not b and all(_log2(vector) == log2_n for vector in (b, c) if vector is not None)
    vectors = list(scratch) or [aligned_empty(len(a), 4) for _ in range(1 if c is not None else 2)]
    work = vectors.pop()
    per_t = pow(pow(FR_GENERATOR, len(a), R) - 1, -1, R)
    of_c = Transform(log2_n, inverse=True, scale=per_t)
    if c is None:
        c = vectors.pop()
        transform(device, of_c, a, times=b, target=c, scratch=work)
    else:
        transform(device, of_c, c, scratch=work)
    progress(1, TRANSFORMS)
    for done, vector in ((3, a), (5, b)):
        to_coset(device, vector, scratch=work)
        progress(done, TRANSFORMS)
    from_coset = Transform(log2_n, inverse=True, scale=per_t, shift=pow(FR_GENERATOR, -1, R))
    transform(device, from_coset, a, times=b, minus=c, scratch=work)
    progress(TRANSFORMS, TRANSFORMS)
    return a[:-1]


def transform(
    device: CpuDevice,
    kind: Transform,
    source: Words,
    *,
    times: Words = _NO_ROWS,
    minus: Words = _NO_ROWS,
    target: Words | None = None,
    scratch: Words | None = None,
) -> None:
    """target = kind(source * times) - minus, row by row; without a target, source is overwritten."""
    target = source if target is None else target
    if kind.n < _SMALL:
        _transform_small(kind, source, times, minus, target)
        return
    scratch = aligned_empty(kind.n, 4) if scratch is None else scratch
    first, second = _tables(device.fr, kind, product=len(times) > 0)
    n2 = len(second.zetas)
    _run_pass(device, first, PassVectors(source, times, _NO_ROWS, scratch, n2, 1))
    _run_pass(device, second, PassVectors(scratch, _NO_ROWS, minus, target, 1, n2))


def _run_pass(device: CpuDevice, tables: PassTables, vectors: PassVectors) -> None:
    tiles = len(tables.start) // _TILE
    tasks = min(tiles, _TASKS_A_THREAD * device.threads)
    words = device.fr.limbs * device.fr.lanes * len(tables.zetas)

    def run(task: int) -> None:
        scratch = aligned_empty(1, words)[0]
        first, last = task * tiles // tasks * _TILE, (task + 1) * tiles // tasks * _TILE
        transform_columns(device.fr, vectors, tables, scratch, first, last)

    device.map(run, range(tasks))


@lru_cache(maxsize=16)
def _tables(form: FieldForm, kind: Transform, product: bool) -> tuple[PassTables, PassTables]:
    """The constants of both passes. A product of two plain inputs lacks a factor R, given back at the end."""
    n1 = 1 << (kind.log2_n // 2)
    n2 = kind.n // n1
    scale = kind.whole_scale * (form.radix if product else 1) % R
    starts = powers(kind.shift, n1, scale)
    first = pass_tables(form, pow(kind.root, n2, R), n1, [1] * n2, powers(kind.root, n2))
    second = pass_tables(form, pow(kind.root, n1, R), n2, starts, [pow(kind.shift, n1, R)] * n1)
    return first, second


def pass_tables(
    form: FieldForm, root: int, lines: int, start: Sequence[int], ratio: Sequence[int]
) -> PassTables:
    """Of a pass with transforms by `root`, of order `lines`; start and ratio: one for each column."""
    assert lines <= 1 << MAX_LINES_LOG2, lines
    return PassTables(
        zetas=limb_table(form, _zetas(root, lines)),
        start=mont_rows(form, start),
        ratio=mont_rows(form, ratio),
        geometric=any(step != 1 for step in ratio),
        order=_bit_reversed(lines),
    )


def _zetas(root: int, size: int) -> list[int]:
    """The zetas of a transform of `size`, by heap number.

    Node h stands for X^2k - zeta^2, its children for X^k - zeta and X^k + zeta. Their zetas are the square
    roots of zeta and -zeta, where -1 = root^(size/2): exponents are halved.
    """
    table, exponents = powers(root, size), [0, 0]
    for node in range(2, size):
        exponents.append(exponents[node // 2] // 2 + (size // 4 if node % 2 else 0))
    return [table[e] for e in exponents]


def _bit_reversed(size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    order = np.zeros(1, np.int64)
    while len(order) < size:
        order = np.concatenate([2 * order, 2 * order + 1])
    return order


def _transform_small(kind: Transform, source: Words, times: Words, minus: Words, target: Words) -> None:
    values = to_integers(source)
    if len(times):
        values = [x * y % R for x, y in zip(values, to_integers(times), strict=True)]
    scales = powers(kind.shift, kind.n, kind.whole_scale)
    values = [x * s for x, s in zip(ntt_textbook(values, kind.root), scales, strict=True)]
    if len(minus):
        values = [x - y for x, y in zip(values, to_integers(minus), strict=True)]
    target[:] = from_integers(x % R for x in values)


def _log2(vector: Words) -> int:
    n = len(vector)
    assert vector.shape == (n, 4) and n & (n - 1) == 0 < n, vector.shape
    assert vector.flags.carray, vector.flags
    return n.bit_length() - 1
