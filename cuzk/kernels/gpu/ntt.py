"""Transforms over Fr on a GPU, and the quotient polynomial of a proof: passes of `ntt_schedule`, launched.

Vectors are on the device: (m*n, 4) uint64 or the same bytes, canonical; m transforms of n, one after
another. Values are in natural order; coefficients in reversed digits, `Schedule.coefficients_at`: whatever
meets them is put into that order once, and no transform reorders anything.

Reference  `kernels.ntt`: the same transforms on the CPU, all in natural order.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext

import numpy as np

from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_launch import Launch
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.device.cuda_stream import Stream
from cuzk.kernels.field_type import FR_GPU
from cuzk.kernels.gpu.ntt_kernels import (
    TABLE_THREADS,
    ntt_fill_table,
    ntt_reorder,
    ntt_small,
    pass_kernel,
)
from cuzk.kernels.gpu.ntt_schedule import (
    ENTRY_BYTES,
    VALUE_BYTES,
    FactorTable,
    PassWork,
    QuotientKinds,
    Schedule,
    of_products,
)
from cuzk.kernels.modulus import FR
from cuzk.kernels.ntt import Transform

R = FR.p
_WORDS = VALUE_BYTES // 4
_ENTRY_WORDS = ENTRY_BYTES // 4


class NttPlan:
    """Transforms of one size on a device. Tables are made there when first needed, and kept until `close`.

    table_bytes  that they take now; at 2^27 some 88 MB a direction, 21 MB for every further scale or shift
    """

    def __init__(self, device: CudaDevice, log2_n: int, *, schedule: Schedule | None = None) -> None:
        self.device = device
        self.log2_n = log2_n
        self.schedule = schedule or Schedule(log2_n)
        self._tables: dict[tuple[FactorTable, ...], DeviceArray] = {}
        self._constants: dict[tuple[int, ...], DeviceArray] = {}

    @property
    def n(self) -> int:
        return 1 << self.log2_n

    @property
    def table_bytes(self) -> int:
        held = [*self._tables.values(), *self._constants.values()]
        return sum(array.nbytes for array in held)

    def close(self) -> None:
        for held in (self._tables, self._constants):
            for array in held.values():
                array.close()
        self._tables, self._constants = {}, {}

    def __enter__(self) -> NttPlan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Transforms

    def intt(self, vector: DeviceArray, *, stream: Stream | None = None) -> None:
        """Values on the domain to coefficients, in place."""
        self.run(Transform(self.log2_n, inverse=True), vector, stream=stream)

    def ntt(self, vector: DeviceArray, *, stream: Stream | None = None) -> None:
        """Coefficients to values on the domain, in place."""
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
        """target = kind(source * times) - minus, row by row; without a target, source is overwritten.

        In either direction it is coefficient k that scale * shift^k multiplies: of the output when inverse,
        of the input when forward.
        """
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
        """The launches of `run`, in order. Returns when their tables are made."""
        if times is not None:
            kind = of_products(kind)
        vectors = (source, target or source, times or source, minus or source)
        words = [_as_words(vector, source.nbytes // VALUE_BYTES) for vector in vectors]
        has_times, has_minus = times is not None, minus is not None
        if not self.schedule.passes:
            return [self._small(kind, words, has_times, has_minus)]
        launches = []
        for work in self.schedule.works(kind, times=has_times, minus=has_minus):
            launches.append(self._launch(work, words))
            words[0] = words[1]  # all but the first work in place
        return launches

    def _launch(self, work: PassWork, words: list[DeviceArray]) -> Launch:
        shape = work.shape
        steps, *factors = [self._table(*parts) for parts in work.arrays]
        near, far = (*factors, steps, steps)[:2]  # not read if not there
        return self.device.load(pass_kernel(shape)).prepare(
            words[0].shape[0] >> shape.tile,
            shape.threads,
            *words,
            steps,
            near,
            far,
            work.columns_log2,
            work.near_log2,
            shared_bytes=shape.shared_bytes,
        )

    def _small(self, kind: Transform, words: list[DeviceArray], has_times: bool, has_minus: bool) -> Launch:
        lead, ratio = (kind.shift, 1) if kind.inverse else (1, kind.shift)
        constants = self._field_constants(kind.whole_scale, lead, ratio, kind.root)
        blocks = words[0].shape[0] >> self.log2_n
        return self.device.load(ntt_small).prepare(
            blocks, self.n, *words, constants, int(has_times), int(has_minus)
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

    def to_natural_order(
        self, source: DeviceArray, target: DeviceArray, *, stream: Stream | None = None
    ) -> None:
        """Coefficients from reversed digits to natural order, into another vector; n rows."""
        low, middle, high = (*(self.schedule.bits or (self.log2_n,)), 0, 0)[:3]
        words = [_as_words(vector, self.n) for vector in (source, target)]
        blocks = -(-self.n // TABLE_THREADS)
        self.device.launch(ntt_reorder, blocks, TABLE_THREADS, *words, low, middle, high, stream=stream)


def quotient(
    plan: NttPlan,
    a: DeviceArray,
    b: DeviceArray,
    c: DeviceArray | None = None,
    *,
    scratch: DeviceArray | None = None,
    stream: Stream | None = None,
    around: Callable[[str], AbstractContextManager[None]] = lambda transform: nullcontext(),
) -> DeviceArray:
    """The coefficients of (A*B - C) / (X^n - 1), given the values of A, B, C on the domain.

    a, b, c  n rows each, overwritten. c=None means a*b, value by value, which takes a vector's memory
    scratch  (nbytes,) uint8 for that; without it, memory is allocated meanwhile
    around   is entered while each transform is submitted
    returns  a. Its last row is coefficient n-1, which is 0 whenever a*b = c holds

    Six transforms, as on the CPU: `ntt.quotient`.
    """
    kinds = QuotientKinds(plan.log2_n)
    with ExitStack() as held:
        if c is None:
            if scratch is None:
                scratch = held.enter_context(plan.device.allocate(a.nbytes, np.uint8))  # freeing it waits
            c = scratch.carve(a.shape, a.dtype)
            with around("C to coefficients"):
                plan.run(kinds.of_c, a, times=b, target=c, stream=stream)
        else:
            with around("C to coefficients"):
                plan.run(kinds.of_c, c, stream=stream)
        for name, vector in (("A", a), ("B", b)):
            with around(f"{name} to coefficients"):
                plan.run(kinds.to_coset, vector, stream=stream)
            with around(f"{name} on the coset"):
                plan.run(kinds.on_coset, vector, stream=stream)
        with around("quotient to coefficients"):
            plan.run(kinds.from_coset, a, times=b, minus=c, stream=stream)
    return a


def _as_words(vector: DeviceArray, rows: int) -> DeviceArray:
    assert vector.nbytes == rows * VALUE_BYTES, (vector.shape, vector.dtype, rows)
    return vector.carve((rows, _WORDS), np.uint32)
