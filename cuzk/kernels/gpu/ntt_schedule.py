"""The schedule of a transform on the GPU: passes over memory, and their tables of factors. Plain Python.

n = N1*N2*N3 (fewer for small n), each the size of one pass in shared memory. Of values and coefficients,

    j = j1*N2*N3 + j2*N3 + j3         value j lies in row j
    k = k1 + N1*k2 + N1*N2*k3         coefficient k lies in row k1*N2*N3 + k2*N3 + k3: digits reversed

inverse  1  transforms over j1, times omega^-(k1 c), c = j2 N3 + j3     strided
         2  transforms over j2, times omega^-(N1 k2 j3)                 strided
         3  transforms over j3                                          contiguous
forward  the mirror: 3, 2, 1, products before the transforms

So no pass reorders anything, and all work in place. Coefficient k may be multiplied by scale * shift^k
(1/n, cosets): one factor for each digit of k, which costs nothing but in the contiguous pass.

A pass is one kernel, `ntt_kernels`, of *steps* of up to radix 8. First come the values whose rows
differ in their top three bits, then with every step those of the next three bits:

    rows of 7 bits   6 | 543 | 210    radix 2, 8, 8: small ones first, where few outputs need a product
    rows of 9 bits   876 | 543 | 210

A step replaces these bits of the row by a digit of the output, times zeta^(digit * bits below), so that at
the end a row's bits are the digits of its output in reverse. The kernel writes them to their natural place.

Choices    8 values a thread, tiles of 2^10 or 2^11, these splits, all factors as `lowering.shoup` has them:
           measured on an H200, where the multiplier is the limit, not memory. A larger table instead of two
           saves a product, but comes from memory. Passes of 2^10 and 2^11 were slow with columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.field_type import FR_GPU
from cuzk.kernels.gpu.card_speed import Speed, throughput
from cuzk.kernels.modulus import FR, FR_GENERATOR
from cuzk.kernels.ntt import Transform

R = FR.p
EIGHT = 8  # values a thread
VALUE_BYTES = 32
ENTRY_BYTES = 64  # of a table: a factor, and what `lowering.shoup` wants beside it
#: Of a pass. Below, steps in tables of factors would not be whole groups of entries.
MIN_BITS, MAX_BITS = 6, 11
TWO_PASSES_LOG2 = 18  # at most
_ONE_TABLE_LOG2 = 18  # entries of a table with all columns, at most: 16.8 MB, for which the L2 cache has room
_NEAR_LOG2 = 7  # columns of the first of two tables
_BIG_LOG2 = 23  # from here on passes with columns take the larger tile
_TILE, _BIG_TILE = 10, 11
_QUOTIENT_MS, _QUOTIENT_NS = 0.1, 0.0445  # of six transforms, and for each of n * log2(n)


def pass_bits(log2_n: int) -> tuple[int, ...]:
    """log2 of N1, N2, N3: as equal as can be, the larger last. None below the size of a pass."""
    if log2_n < MIN_BITS:
        return ()
    count = 1 if log2_n <= MAX_BITS else 2 if log2_n <= TWO_PASSES_LOG2 else 3
    return tuple((log2_n + i) // count for i in range(count))


def first_radix_log2(bits: int) -> int:
    """Of the first step of a pass; all further ones are of radix 8."""
    return (bits - 1) % 3 + 1


def step_tables_log2(bits: int) -> list[int]:
    """log2 of the entries of the steps' tables, [output's digit][bits below]; the last step needs none."""
    sizes = [bits, *range(bits - first_radix_log2(bits), 0, -3)]
    return sizes[:-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassShape:
    """What a pass kernel is compiled for.

    bits, tile   log2 of the values of a transform, and of a block
    strided      whether there are columns: then a tile is 2^(tile - bits) of them
    inverse      the direction: of the transform, and whether products come after it or before
    tables       products with factor tables a value: 0, 1 or 2
    scaled       without columns, inverse: whether the first eighth of the outputs has a product as well
    times, minus input is multiplied by another vector, output has one subtracted
    """

    bits: int
    tile: int
    strided: bool
    inverse: bool
    tables: int
    scaled: bool = False
    times: bool = False
    minus: bool = False

    def __post_init__(self) -> None:
        assert MIN_BITS <= self.bits <= min(MAX_BITS, self.tile), self

    @property
    def threads(self) -> int:
        return (1 << self.tile) // EIGHT

    @property
    def shared_bytes(self) -> int:
        return VALUE_BYTES << self.tile

    @property
    def name(self) -> str:
        direction = "inverse" if self.inverse else "forward"
        kind = "strided" if self.strided else "contiguous"
        extras = "_scaled" * self.scaled + "_times" * self.times + "_minus" * self.minus
        return f"ntt_{direction}_{self.bits}_{self.tile}_{kind}_{self.tables}{extras}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorTable:
    """Entry [row][column] = first * ratio^row * root^(row*column)."""

    rows_log2: int
    columns_log2: int
    first: int = 1
    ratio: int = 1
    root: int = 1

    @property
    def entries(self) -> int:
        return 1 << (self.rows_log2 + self.columns_log2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassWork:
    """A pass of one kind of transform.

    columns_log2  of the vector
    steps         tables of all steps but the last
    factors       `near`, `near` and `far`, or none: see `ntt_kernels`
    """

    shape: PassShape
    columns_log2: int
    steps: tuple[FactorTable, ...]
    factors: tuple[FactorTable, ...]

    @property
    def arrays(self) -> tuple[tuple[FactorTable, ...], ...]:
        """The tables that lie in memory one after another: those of the steps, then each of the factors."""
        return (self.steps, *((table,) for table in self.factors))

    @property
    def near_log2(self) -> int:
        return self.factors[0].columns_log2 if self.factors else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A pass in its place: columns are the product of the sizes behind it, the weight of those before it."""

    bits: int
    tile: int
    columns_log2: int
    weight_log2: int

    @property
    def is_strided(self) -> bool:
        return self.columns_log2 > 0

    @property
    def is_alone(self) -> bool:
        return not self.is_strided and self.weight_log2 == 0

    def work(self, kind: Transform, *, scale: int, times: bool, minus: bool) -> PassWork:
        """Its part of a transform: times scale * shift^(the digit of the coefficient that is this pass's)."""
        factors = self._column_factors(kind, scale) if self.is_strided else self._row_factors(kind, scale)
        shape = PassShape(
            bits=self.bits,
            tile=self.tile,
            strided=self.is_strided,
            inverse=kind.inverse,
            tables=len(factors),
            scaled=self.is_alone and kind.inverse,
            times=times,
            minus=minus,
        )
        return PassWork(shape=shape, columns_log2=self.columns_log2, steps=self._steps(kind), factors=factors)

    def _steps(self, kind: Transform) -> tuple[FactorTable, ...]:
        """In a contiguous pass, inverse, times shift^(the digit of the step)."""
        tables, weight = [], self.weight_log2
        for i, size in enumerate(step_tables_log2(self.bits)):
            digit = first_radix_log2(self.bits) if i == 0 else 3
            root = pow(kind.root, kind.n >> size, R)
            ratio = pow(kind.shift, 1 << weight, R) if kind.inverse and not self.is_strided else 1
            tables.append(FactorTable(rows_log2=digit, columns_log2=size - digit, ratio=ratio, root=root))
            weight += digit
        return tuple(tables)

    def _row_factors(self, kind: Transform, scale: int) -> tuple[FactorTable, ...]:
        """Of a contiguous pass: for every row, or, inverse, for the last step's digits, eight times each."""
        if scale == kind.shift == 1:
            return ()
        if not kind.inverse:
            ratio = pow(kind.shift, 1 << self.weight_log2, R)
            return (FactorTable(rows_log2=self.bits, columns_log2=0, first=scale, ratio=ratio),)
        ratio = pow(kind.shift, 1 << (self.weight_log2 + self.bits - 3), R)
        return (FactorTable(rows_log2=3, columns_log2=3, first=scale, ratio=ratio),)

    def _column_factors(self, kind: Transform, scale: int) -> tuple[FactorTable, ...]:
        """Of a strided pass."""
        rows, columns = self.bits, self.columns_log2
        ratio, root = (pow(base, 1 << self.weight_log2, R) for base in (kind.shift, kind.root))
        near_log2 = columns if rows + columns <= _ONE_TABLE_LOG2 else _NEAR_LOG2
        near = FactorTable(rows_log2=rows, columns_log2=near_log2, first=scale, ratio=ratio, root=root)
        if near_log2 == columns:
            return (near,)
        far_root = pow(root, 1 << near_log2, R)
        return near, FactorTable(rows_log2=columns - near_log2, columns_log2=rows, root=far_root)


class Schedule:
    """The passes of transforms of 2^log2_n values; none below the size of a pass: then `ntt_small`.

    bits, tiles  sizes of the passes and of their tiles, instead of the measured ones
    """

    def __init__(
        self, log2_n: int, *, bits: Sequence[int] | None = None, tiles: Sequence[int] | None = None
    ) -> None:
        self.log2_n = log2_n
        self.bits = tuple(pass_bits(log2_n) if bits is None else bits)
        assert sum(self.bits) == log2_n or not self.bits, (self.bits, log2_n)
        self.tiles = tuple(self._best_tiles() if tiles is None else tiles)
        self.passes = [
            Pass(
                bits=size,
                tile=tile,
                columns_log2=sum(self.bits[i + 1 :]),
                weight_log2=sum(self.bits[:i]),
            )
            for i, (size, tile) in enumerate(zip(self.bits, self.tiles, strict=True))
        ]

    def _best_tiles(self) -> list[int]:
        if len(self.bits) == 1:
            return [self.log2_n]
        strided = _BIG_TILE if self.log2_n >= _BIG_LOG2 else _TILE
        tiles = [strided] * (len(self.bits) - 1) + [_TILE] if self.bits else []
        return [max(pair) for pair in zip(self.bits, tiles, strict=True)]

    def works(self, kind: Transform, *, times: bool = False, minus: bool = False) -> list[PassWork]:
        """The passes in order. If asked to, the first multiplies by a vector and the last subtracts one."""
        assert kind.log2_n == self.log2_n, kind
        if not self.passes:
            return []
        passes = self.passes if kind.inverse else self.passes[::-1]
        scaling = self.passes[max(0, len(self.passes) - 2)]  # the last that multiplies anyway
        return [
            one.work(
                kind,
                scale=kind.whole_scale if one is scaling else 1,
                times=times and one is passes[0],
                minus=minus and one is passes[-1],
            )
            for one in passes
        ]

    def coefficients_at(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Which coefficients lie in these rows: points that meet them in an MSM are put into that order."""
        coefficients = np.zeros(rows.shape, np.int64)
        if not self.passes:
            coefficients |= rows
        for one in self.passes:
            digits = rows.astype(np.int64) >> one.columns_log2 & ((1 << one.bits) - 1)
            coefficients |= digits << one.weight_log2
        return coefficients


def of_products(kind: Transform) -> Transform:
    """The same where values are products: a Montgomery product of plain values lacks a factor."""
    return replace(kind, scale=kind.scale * FR_GPU.radix % R)


class QuotientKinds:
    """The transforms of `ntt.quotient`. The coset is 7 * the domain, where X^n - 1 is t = 7^n - 1."""

    def __init__(self, log2_n: int) -> None:
        per_t = pow(pow(FR_GENERATOR, 1 << log2_n, R) - 1, -1, R)
        self.of_c = Transform(log2_n, inverse=True, scale=per_t)
        self.to_coset = Transform(log2_n, inverse=True, shift=FR_GENERATOR)
        self.on_coset = Transform(log2_n, inverse=False)
        self.from_coset = Transform(log2_n, inverse=True, scale=per_t, shift=pow(FR_GENERATOR, -1, R))


def quotient_works(schedule: Schedule) -> list[PassWork]:
    """The passes of a quotient whose C is A times B, each kind of transform once."""
    kinds = QuotientKinds(schedule.log2_n)
    return [
        *schedule.works(of_products(kinds.of_c), times=True),
        *schedule.works(kinds.to_coset),
        *schedule.works(kinds.on_coset),
        *schedule.works(of_products(kinds.from_coset), times=True, minus=True),
    ]


def pass_shapes(schedule: Schedule) -> list[PassShape]:
    """Of the kernels that `intt`, `ntt` and `quotient` launch, to compile ahead."""
    works = schedule.works(Transform(schedule.log2_n, inverse=True)) + quotient_works(schedule)
    return list(dict.fromkeys(work.shape for work in works))


def table_bytes(works: Sequence[PassWork]) -> int:
    """What the tables of these passes take on a card, and the three numbers that each is made from."""
    arrays = {parts for work in works for parts in work.arrays}
    tables = [table for parts in arrays for table in parts]
    numbers = {(table.first, table.ratio, table.root) for table in tables}
    return ENTRY_BYTES * sum(table.entries for table in tables) + 3 * VALUE_BYTES * len(numbers)


def quotient_ms(log2_n: int, speed: Speed) -> float:
    """What the six transforms of a quotient are expected to take; measured by bench/gpu_ntt.py."""
    return (_QUOTIENT_MS + _QUOTIENT_NS * 1e-6 * (log2_n << log2_n)) / throughput(speed)
