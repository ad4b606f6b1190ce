"""Transforms over Fr on the GPU: the schedule of passes, their factor tables, and the quotient of a proof.

n = N1*N2*N3 (fewer factors for small n), each the size of one pass in shared memory. Indices of values and coefficients:

    j = j1*N2*N3 + j2*N3 + j3         value j lies in row j
    k = k1 + N1*k2 + N1*N2*k3         coefficient k lies in row k1*N2*N3 + k2*N3 + k3: "digits reversed"

inverse  1  transforms over j1, times omega^-(k1 (j2 N3 + j3))     strided, two products: omega^-(k1 c) with c halved
         2  transforms over j2, times omega^-(N1 k2 j3)            strided, one product
         3  transforms over j3                                     contiguous
forward  the mirror: 3, 2, 1, products before the transforms

So no pass reorders anything, in place. Coefficient k may be multiplied by scale * shift^k (1/n, cosets): a factor for
each digit, of which all but k3's are in the tables anyway. Times and sizes that decide the constants here: docs.

Vectors    (m*n, 4) uint64 or the same bytes on the device, canonical: m transforms of n, one after another.
Reference  `ntt`, the same transforms on the CPU, in natural order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_launch import Launch
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.device.cuda_stream import Stream
from cuzk.kernels.field_type import FR_GPU
from cuzk.kernels.modulus import FR, FR_GENERATOR, FR_TWO_ADICITY
from cuzk.kernels.ntt import Transform
from cuzk.kernels.ntt_gpu_kernels import (
    MAX_BITS,
    SMALL_LOG2,
    TABLE_THREADS,
    PassShape,
    first_radix_log2,
    ntt_fill_table,
    ntt_reorder,
    ntt_small,
    pass_kernel,
    step_tables_log2,
)

R = FR.p
_WORDS = 8  # uint32 of a value
_ENTRY_WORDS = 16  # of a table's entry
_TWO_PASSES_LOG2 = 18  # at most
_ONE_TABLE_LOG2 = 18  # entries of a table with all columns, at most: 16.8 MB, for which the L2 cache has room
_NEAR_LOG2 = 7  # columns of the first of two tables
_BIG_LOG2 = 23  # from here on strided passes take the larger tile
_TILE, _BIG_TILE = 10, 11


def pass_bits(log2_n: int) -> tuple[int, ...]:
    """log2 of N1, N2, N3: as equal as can be, the larger last. None below the size of a pass."""
    if log2_n <= SMALL_LOG2:
        return ()
    count = 1 if log2_n <= MAX_BITS else 2 if log2_n <= _TWO_PASSES_LOG2 else 3
    return tuple((log2_n + i) // count for i in range(count))


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
class _Pass:
    """A pass in its place: columns are the product of the sizes behind it, the weight that of those before it."""

    bits: int
    columns_log2: int
    weight_log2: int
    tile: int

    @property
    def is_strided(self) -> bool:
        return self.columns_log2 > 0

    def step_tables(self, kind: Transform) -> list[FactorTable]:
        """Of all steps but the last. In a contiguous pass, inverse, times shift^(the digit of the step)."""
        tables, weight = [], self.weight_log2
        for i, size in enumerate(step_tables_log2(self.bits)):
            digit = first_radix_log2(self.bits) if i == 0 else 3
            root = pow(kind.root, kind.n >> size, R)
            ratio = pow(kind.shift, 1 << weight, R) if kind.inverse and not self.is_strided else 1
            tables.append(FactorTable(rows_log2=digit, columns_log2=size - digit, ratio=ratio, root=root))
            weight += digit
        return tables

    def factor_tables(self, kind: Transform, scale: int) -> list[FactorTable]:
        """`near`, or `near` and `far`, or none; times scale * shift^(the coefficient's digit of this pass)."""
        ratio, root = (pow(base, 1 << self.weight_log2, R) for base in (kind.shift, kind.root))
        rows, columns = self.bits, self.columns_log2
        if not self.is_strided:
            if scale == ratio == 1:
                return []
            if not kind.inverse:
                return [FactorTable(rows_log2=rows, columns_log2=0, first=scale, ratio=ratio)]
            of_last_digit = pow(ratio, 1 << (rows - 3), R)
            return [FactorTable(rows_log2=3, columns_log2=3, first=scale, ratio=of_last_digit)]
        near_columns = columns if rows + columns <= _ONE_TABLE_LOG2 else _NEAR_LOG2
        near = FactorTable(rows_log2=rows, columns_log2=near_columns, first=scale, ratio=ratio, root=root)
        if near_columns == columns:
            return [near]
        far_root = pow(root, 1 << near_columns, R)
        return [near, FactorTable(rows_log2=columns - near_columns, columns_log2=rows, root=far_root)]


class NttPlan:
    """Transforms of 2^log2_n values on a device: tables are built when first needed, and kept until `close`.

    bits  sizes of the passes, instead of `pass_bits`
    """

    def __init__(self, device: CudaDevice, log2_n: int, *, bits: Sequence[int] | None = None) -> None:
        assert 0 <= log2_n <= FR_TWO_ADICITY, log2_n
        self.device = device
        self.log2_n = log2_n
        self.bits = tuple(pass_bits(log2_n) if bits is None else bits)
        assert sum(self.bits) == log2_n or not self.bits, (self.bits, log2_n)
        self._passes = [
            _Pass(
                bits=size,
                columns_log2=sum(self.bits[i + 1 :]),
                weight_log2=sum(self.bits[:i]),
                tile=self._tile(i),
            )
            for i, size in enumerate(self.bits)
        ]
        self._tables: dict[tuple[FactorTable, ...], DeviceArray] = {}
        self._constants: dict[tuple[int, ...], DeviceArray] = {}

    def _tile(self, i: int) -> int:
        if len(self.bits) == 1:
            return self.bits[0]
        is_big = i < len(self.bits) - 1 and self.log2_n >= _BIG_LOG2
        return max(self.bits[i], _BIG_TILE if is_big else _TILE)

    @property
    def n(self) -> int:
        return 1 << self.log2_n

    @property
    def table_bytes(self) -> int:
        """Device memory that this plan holds."""
        held = [*self._tables.values(), *self._constants.values()]
        return sum(array.nbytes for array in held)

    def close(self) -> None:
        for held in (self._tables, self._constants):
            for array in held.values():
                array.close()
            held.clear()

    def __enter__(self) -> NttPlan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Transforms

    def intt(self, vector: DeviceArray, *, stream: Stream | None = None) -> None:
        """Values in natural order to coefficients in reversed digits, in place."""
        self.run(Transform(self.log2_n, inverse=True), vector, stream=stream)

    def ntt(self, vector: DeviceArray, *, stream: Stream | None = None) -> None:
        """Coefficients in reversed digits to values in natural order, in place."""
        self.run(Transform(self.log2_n, inverse=False), vector, stream=stream)

    def run(
        self,
        kind: Transform,
        source: DeviceArray,
        *,
        times: DeviceArray | None = None,
        minus: DeviceArray | None = None,
        target: DeviceArray | None = None,
        stream: Stream | None = None,
    ) -> None:
        """target = kind(source * times) - minus, row by row; without a target, source is overwritten."""
        for launch in self.prepare(kind, source, times=times, minus=minus, target=target):
            launch.run(stream or self.device.stream)

    def prepare(
        self,
        kind: Transform,
        source: DeviceArray,
        *,
        times: DeviceArray | None = None,
        minus: DeviceArray | None = None,
        target: DeviceArray | None = None,
    ) -> list[Launch]:
        """The launches of `run`, in order. In either direction it is coefficient k that scale * shift^k multiplies.

        Table building is submitted to the device's own stream, and waited for.
        """
        assert kind.log2_n == self.log2_n, kind
        if times is not None:  # a Montgomery product of plain values lacks a factor
            kind = replace(kind, scale=kind.scale * FR_GPU.radix % R)
        rows = source.nbytes // FR_GPU.words // 4
        vectors = (source, target or source, times or source, minus or source)
        words = [_as_words(vector, rows) for vector in vectors]
        if not self._passes:
            return [self._small(kind, rows, words, times is not None, minus is not None)]
        passes = self._passes if kind.inverse else self._passes[::-1]
        launches = []
        for i, one in enumerate(passes):
            with_times = times is not None and i == 0
            with_minus = minus is not None and i == len(passes) - 1
            launches.append(self._launch(one, kind, rows, words, with_times, with_minus))
            words[0] = words[1]
        return launches

    def _launch(
        self, one: _Pass, kind: Transform, rows: int, words: list[DeviceArray], times: bool, minus: bool
    ) -> Launch:
        scales_here = one is self._passes[max(0, len(self._passes) - 2)]
        factors = one.factor_tables(kind, kind.whole_scale if scales_here else 1)
        shape = PassShape(
            bits=one.bits,
            tile=one.tile,
            strided=one.is_strided,
            inverse=kind.inverse,
            tables=len(factors),
            scaled=len(self._passes) == 1 and kind.inverse,
            times=times,
            minus=minus,
        )
        steps = self._table(*one.step_tables(kind))
        tables = [self._table(table) for table in factors]
        near, far = (*tables, steps, steps)[:2]  # a kernel without them does not look
        near_columns = factors[0].columns_log2 if factors else 0
        return self.device.load(pass_kernel(shape)).prepare(
            rows >> one.tile,
            shape.threads,
            *words,
            steps,
            near,
            far,
            one.columns_log2,
            near_columns,
            shared_bytes=shape.shared_bytes,
        )

    def _small(
        self, kind: Transform, rows: int, words: list[DeviceArray], times: bool, minus: bool
    ) -> Launch:
        lead, ratio = (kind.shift, 1) if kind.inverse else (1, kind.shift)
        constants = self._field_constants(kind.whole_scale, lead, ratio, kind.root)
        return self.device.load(ntt_small).prepare(
            rows >> self.log2_n, self.n, *words, constants, int(times), int(minus)
        )

    # Tables

    def _table(self, *parts: FactorTable) -> DeviceArray:
        """The tables one after another, on the device."""
        if parts not in self._tables:
            table = self.device.allocate((sum(part.entries for part in parts), _ENTRY_WORDS), np.uint32)
            self._tables[parts] = table
            begin = 0
            for part in parts:
                self._fill(table.rows(begin, begin + part.entries), part)
                begin += part.entries
            self.device.stream.synchronise()
        return self._tables[parts]

    def _fill(self, table: DeviceArray, part: FactorTable) -> None:
        constants = self._field_constants(part.first, part.ratio, part.root)
        blocks = -(-part.entries // TABLE_THREADS)
        self.device.launch(
            ntt_fill_table, blocks, TABLE_THREADS, table, constants, part.columns_log2, part.entries
        )

    def _field_constants(self, *values: int) -> DeviceArray:
        """In Montgomery form."""
        if values not in self._constants:
            words = [FR.limbs(value * FR_GPU.radix % R, _WORDS, 32) for value in values]
            self._constants[values] = self.device.upload(np.array(words, np.uint32))
            self.device.stream.synchronise()
        return self._constants[values]

    # Order

    def coefficients_at(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Which coefficients lie in these rows. Points that meet coefficients in an MSM are permuted by it."""
        coefficients = np.zeros(len(rows), np.int64)
        for one in self._passes:
            digit = rows.astype(np.int64) >> one.columns_log2 & ((1 << one.bits) - 1)
            coefficients |= digit << one.weight_log2
        return coefficients if self._passes else rows.astype(np.int64)

    def to_natural_order(
        self, source: DeviceArray, target: DeviceArray, *, stream: Stream | None = None
    ) -> None:
        """Coefficients from reversed digits to natural order, into another vector of n rows."""
        low, middle, high = (*(self.bits or (self.log2_n,)), 0, 0)[:3]
        words = [_as_words(vector, self.n) for vector in (source, target)]
        blocks = -(-self.n // TABLE_THREADS)
        self.device.launch(ntt_reorder, blocks, TABLE_THREADS, *words, low, middle, high, stream=stream)


def quotient(
    plan: NttPlan,
    a: DeviceArray,
    b: DeviceArray,
    c: DeviceArray | None = None,
    *,
    stream: Stream | None = None,
) -> DeviceArray:
    """The coefficients of (A*B - C) / (X^n - 1) in reversed digits, given the values of A, B, C on the domain.

    a, b, c  n rows, three vectors; they are overwritten. c=None means a*b, value by value, and takes a vector's memory
    returns  a. Its last row is coefficient n-1: 0 whenever a*b = c holds

    Six transforms, as on the CPU: `ntt.quotient`.
    """
    log2_n = plan.log2_n
    per_t = pow(pow(FR_GENERATOR, plan.n, R) - 1, -1, R)
    of_c = Transform(log2_n, inverse=True, scale=per_t)
    to_coset = Transform(log2_n, inverse=True, shift=FR_GENERATOR)
    from_coset = Transform(log2_n, inverse=True, scale=per_t, shift=pow(FR_GENERATOR, -1, R))
    c_is_ours = c is None
    if c is None:
        c = plan.device.allocate(a.shape, a.dtype)
        plan.run(of_c, a, times=b, target=c, stream=stream)
    else:
        plan.run(of_c, c, stream=stream)
    for vector in (a, b):
        plan.run(to_coset, vector, stream=stream)
        plan.ntt(vector, stream=stream)
    plan.run(from_coset, a, times=b, minus=c, stream=stream)
    if c_is_ours:
        c.close()  # waits for the device
    return a


def _as_words(vector: DeviceArray, rows: int) -> DeviceArray:
    assert vector.nbytes == rows * _WORDS * 4, (vector.shape, vector.dtype, rows)
    return vector.carve((rows, _WORDS), np.uint32)
