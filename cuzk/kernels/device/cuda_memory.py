"""Memory of a card from one budget, pinned memory of the host, and copies between them.

Plain device memory only, never managed: what does not fit is an error with numbers, not a slow page fault.
Arrays are C-contiguous and freed explicitly, by `close` or `with`; kernels get their addresses as pointers.
A copy from or to ordinary host memory passes through two pinned pages, so that the card copies one while the
CPU fills or empties the other; from or to a PinnedArray the card copies directly.
"""

from __future__ import annotations

import ctypes
import math
import threading
from typing import Any

import numpy as np

from cuzk.errors import ResourceError
from cuzk.kernels.device.cuda_driver import Context, Handle
from cuzk.kernels.device.cuda_stream import Event, Stream
from cuzk.units import format_size

HostArray = np.ndarray[Any, np.dtype[Any]]

#: Of each pinned page: at 50 GB/s a copy of 0.3 ms, beside which its submission (some 10 us) is nothing.
STAGE_BYTES = 16 << 20
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for every card of the process


class DeviceArray:
    """Items of a NumPy dtype on the card; uninitialised when new. `close` frees them, and so does `with`.

    address  0 when the array is empty
    """

    def __init__(
        self, memory: DeviceMemory, shape: tuple[int, ...], dtype: np.dtype[Any], handle: Handle | None
    ):
        self.shape = shape
        self.dtype = dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self._memory = memory
        self._handle = handle
        self._offset_bytes = 0

    @property
    def address(self) -> int:
        if self._handle is None:
            return 0
        assert self._handle.value is not None, "this device array was freed"
        return int(self._handle.value) + self._offset_bytes

    def carve(self, shape: int | tuple[int, ...], dtype: Any, *, offset_bytes: int = 0) -> DeviceArray:
        """Some of this array's bytes as an array of another shape and dtype, which shares them."""
        part = DeviceArray(self._memory, _shape(shape), np.dtype(dtype), self._handle)
        part._offset_bytes = self._offset_bytes + offset_bytes
        assert 0 <= offset_bytes <= self.nbytes - part.nbytes, (offset_bytes, part.nbytes, self.nbytes)
        assert part._offset_bytes % part.dtype.alignment == 0, (offset_bytes, dtype)
        return part

    def rows(self, start: int, stop: int) -> DeviceArray:
        """Items start..stop of the first axis, shared."""
        assert 0 <= start <= stop <= self.shape[0], (start, stop, self.shape)
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        return self.carve((stop - start, *self.shape[1:]), self.dtype, offset_bytes=start * row_bytes)

    def close(self) -> None:
        """Free the memory; it waits for the card to be done with it. A second time does nothing."""
        if self._handle is not None:
            self._handle.close()

    def __enter__(self) -> DeviceArray:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Block(Handle):
    """Device memory that counts against the budget for as long as the driver's handle lives."""

    def __init__(self, memory: DeviceMemory, address: Any, nbytes: int) -> None:
        super().__init__(memory.context, address, "cuMemFree")
        self._memory = memory
        self._nbytes = nbytes

    def close(self) -> None:
        if self.value is not None:
            try:
                super().close()
            finally:
                self._memory.credit(self._nbytes)


class DeviceMemory:
    """What one device hands out: never more than `limit_bytes` at a time.

    used_bytes, peak_bytes  now, and the most so far; guarded by _lock
    """

    def __init__(self, context: Context, limit_bytes: int | None) -> None:
        self.context = context
        self.used_bytes = self.peak_bytes = 0
        self._lock = threading.Lock()
        free, total = self.free_and_total()
        self.limit_bytes = free if limit_bytes is None else limit_bytes
        if self.limit_bytes > total:
            raise ResourceError(
                f"a budget of {format_size(self.limit_bytes)} exceeds the GPU's memory, {format_size(total)}",
                where=context.label,
                next="give a smaller budget",
            )

    def free_and_total(self) -> tuple[int, int]:
        """Bytes that the driver has free on the card, for other processes too, and all bytes of the card."""
        free, total = self.context.call("cuMemGetInfo")
        return int(free), int(total)

    def allocate(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """An array of the budget. Raises ResourceError when the budget or the card lacks the bytes."""
        array = DeviceArray(self, _shape(shape), np.dtype(dtype), None)
        if array.nbytes:
            self._debit(array.nbytes)
            try:
                address = self.context.call("cuMemAlloc", array.nbytes)
            except ResourceError as error:
                self.credit(array.nbytes)
                raise self._lacking(array.nbytes, "the GPU has too little free memory") from error
            except BaseException:
                self.credit(array.nbytes)
                raise
            array._handle = _Block(self, address, array.nbytes)
        return array

    def _debit(self, nbytes: int) -> None:
        with self._lock:
            fits = self.used_bytes + nbytes <= self.limit_bytes
            if fits:
                self.used_bytes += nbytes
                self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        if not fits:
            raise self._lacking(nbytes, "the budget of GPU memory is too small")

    def credit(self, nbytes: int) -> None:
        with self._lock:
            self.used_bytes -= nbytes

    def _lacking(self, nbytes: int, what: str) -> ResourceError:
        free, total = self.free_and_total()
        return ResourceError(
            f"{what}: asked for {format_size(nbytes)}, in use {format_size(self.used_bytes)}"
            f" of a budget of {format_size(self.limit_bytes)},"
            f" the driver has {format_size(free)} of {format_size(total)} free",
            where=self.context.label,
            next="end other programs on the GPU, raise the budget, or choose a smaller plan",
        )


class PinnedArray(Handle):
    """Page-locked memory of the host as a NumPy array, `.array`, which must not be touched after `close`."""

    def __init__(self, context: Context, shape: int | tuple[int, ...], dtype: Any) -> None:
        dims, kind = _shape(shape), np.dtype(dtype)
        nbytes = math.prod(dims) * kind.itemsize
        try:
            value = context.call("cuMemHostAlloc", max(nbytes, 1), _PORTABLE)
        except ResourceError as error:
            raise ResourceError(
                f"the system does not pin {format_size(nbytes)} of host memory",
                where=context.label,
                next="free host memory, or raise the limit of locked memory",
            ) from error
        super().__init__(context, value, "cuMemFreeHost")
        raw = (ctypes.c_char * nbytes).from_address(int(value))
        self.array: HostArray = np.frombuffer(raw, kind, count=math.prod(dims)).reshape(dims)


class Copier:
    """Copies of a device. Its two pinned pages are made when first needed, and used under _lock."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._pages: list[tuple[PinnedArray, Event]] = []

    def upload(self, source: HostArray | PinnedArray, target: DeviceArray, stream: Stream) -> None:
        """Submit a copy to the card. A pinned source must not change until the stream has come so far."""
        if isinstance(source, PinnedArray):
            self._to_card(target.address, source.array, stream)
            return
        data = _bytes_of(source)
        with self._lock:
            for index, first in enumerate(range(0, len(data), STAGE_BYTES)):
                page, free = self._page(index)
                chunk = data[first : first + STAGE_BYTES]
                free.synchronise()
                staged = page.array[: len(chunk)]
                staged[:] = chunk
                self._to_card(target.address + first, staged, stream)
                free.record(stream)

    def download(self, source: DeviceArray, target: HostArray | PinnedArray, stream: Stream) -> None:
        """Copy from the card. Complete on return; in a pinned target when the stream has come so far."""
        if isinstance(target, PinnedArray):
            self._from_card(target.array, source.address, stream)
            return
        data = _bytes_of(target)
        firsts = range(0, len(data), STAGE_BYTES)
        with self._lock:
            for index, first in enumerate(firsts):
                page, done = self._page(index)
                done.synchronise()  # an earlier upload, perhaps in another stream, may still read the page
                self._from_card(page.array[: len(data) - first], source.address + first, stream)
                done.record(stream)
                if index:
                    self._empty(index - 1, data, firsts[index - 1])
            if firsts:
                self._empty(len(firsts) - 1, data, firsts[-1])

    def _empty(self, index: int, data: HostArray, first: int) -> None:
        page, done = self._page(index)
        done.synchronise()
        chunk = data[first : first + STAGE_BYTES]
        chunk[:] = page.array[: len(chunk)]

    def _page(self, index: int) -> tuple[PinnedArray, Event]:
        while len(self._pages) < 2:
            self._pages.append((PinnedArray(self._context, STAGE_BYTES, np.uint8), Event(self._context)))
        return self._pages[index % 2]

    def _to_card(self, address: int, source: HostArray, stream: Stream) -> None:
        if source.nbytes:
            self._context.call("cuMemcpyHtoDAsync", address, source.ctypes.data, source.nbytes, stream.value)

    def _from_card(self, target: HostArray, address: int, stream: Stream) -> None:
        if target.nbytes:
            self._context.call("cuMemcpyDtoHAsync", target.ctypes.data, address, target.nbytes, stream.value)


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)


def _bytes_of(array: HostArray) -> HostArray:
    """The bytes of a C-contiguous array, shared."""
    assert array.flags.c_contiguous, "only C-contiguous arrays cross the bus"
    return array.reshape(-1).view(np.uint8)
