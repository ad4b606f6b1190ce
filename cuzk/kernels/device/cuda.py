"""An NVIDIA GPU as a device: one card, one budget of its memory, one stream unless more are asked for.

Reading order: `cuda_driver` (calls and errors), `cuda_card` (which card), `cuda_stream`, `cuda_memory` and
`cuda_launch`. What goes wrong is typed: ResourceError for memory, DeviceError for what cannot be had,
DeviceFault when the card became unusable: then every call says so, all can be closed, the process lives on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from cuzk.kernels.device.cuda_card import Card, check_driver, find_card
from cuzk.kernels.device.cuda_driver import Context, checked, load_api
from cuzk.kernels.device.cuda_launch import Compilable, Extent, LoadedKernel
from cuzk.kernels.device.cuda_memory import Copier, DeviceArray, DeviceMemory, HostArray, PinnedArray
from cuzk.kernels.device.cuda_stream import Event, Graph, Stream, record_graph


class CudaDevice:
    """A card, opened. `close` gives back everything that is still held; `with` does too.

    name          "cuda:N", a PCI id or a UUID, see `cuda_card`
    memory_limit  bytes for all arrays together; without it, what the driver has free at this moment
    api           stands in for the driver in tests

    card, memory, stream  facts of the card, its budget, the stream of all work that names none

    Threads may share a device: each call makes its card current in the calling thread.
    """

    def __init__(self, name: str = "cuda:0", *, memory_limit: int | None = None, api: Any = None) -> None:
        if api is None:
            from cuzk.kernels.gpu.compiler import compiler_version

            api = load_api()
            self.card: Card = find_card(api, name)
            check_driver(self.card, compiler_version())
        else:
            self.card = find_card(api, name)
        self.name = self.card.label
        self._context = Context(api, checked(api, self.name, "cuDeviceGet", self.card.index), self.name)
        self._kernels: dict[Compilable, LoadedKernel] = {}  # guarded by _lock
        self._lock = threading.Lock()
        try:
            self.memory = DeviceMemory(self._context, memory_limit)
            self.stream = Stream(self._context)
        except BaseException:
            self._context.close()
            raise
        self._copier = Copier(self._context)

    def allocate(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """An uninitialised array on the card. Raises ResourceError when budget or card lack the bytes."""
        return self.memory.allocate(shape, dtype)

    def pinned(self, shape: int | tuple[int, ...], dtype: Any) -> PinnedArray:
        """Page-locked host memory, from and to which copies are fastest and wait for nobody."""
        return PinnedArray(self._context, shape, dtype)

    def upload(
        self,
        source: HostArray | PinnedArray,
        *,
        into: DeviceArray | None = None,
        stream: Stream | None = None,
    ) -> DeviceArray:
        """A copy on the card, in a new array or in `into`, complete when the stream has come so far."""
        array = source.array if isinstance(source, PinnedArray) else source
        target = self.allocate(array.shape, array.dtype) if into is None else into
        assert (target.nbytes, target.dtype) == (array.nbytes, array.dtype), (target.shape, array.shape)
        try:
            self._copier.upload(source, target, stream or self.stream)
        except BaseException:
            if into is None:
                target.close()
            raise
        return target

    def download(
        self,
        source: DeviceArray,
        *,
        into: HostArray | PinnedArray | None = None,
        stream: Stream | None = None,
    ) -> HostArray:
        """The array on the host: complete on return, but in a PinnedArray when the stream has come so far."""
        target = np.empty(source.shape, source.dtype) if into is None else into
        array = target.array if isinstance(target, PinnedArray) else target
        assert (source.nbytes, source.dtype) == (array.nbytes, array.dtype), (source.shape, array.shape)
        self._copier.download(source, target, stream or self.stream)
        return array

    def copy(self, source: DeviceArray, into: DeviceArray, *, stream: Stream | None = None) -> None:
        """A copy within the card."""
        assert source.nbytes == into.nbytes, (source.shape, into.shape)
        if source.nbytes:
            stream = stream or self.stream
            self._context.call("cuMemcpyDtoDAsync", into.address, source.address, source.nbytes, stream.value)

    def copy_from(
        self, other: CudaDevice, source: DeviceArray, into: DeviceArray, *, stream: Stream | None = None
    ) -> None:
        """A copy of another card's array, which must not change until the stream has come so far.

        It goes straight from card to card where NVLink or the bus allows, else through the host.
        """
        assert source.nbytes == into.nbytes, (source.shape, into.shape)
        self._context.reach(other._context)
        if source.nbytes:
            self._context.call_between(
                other._context,
                "cuMemcpyPeerAsync",
                into.address, self._context.value, source.address, other._context.value, source.nbytes,
                (stream or self.stream).value,
            )  # fmt: skip

    def clear(self, array: DeviceArray, *, stream: Stream | None = None) -> None:
        """Every byte zero."""
        if array.nbytes:
            self._context.call(
                "cuMemsetD8Async", array.address, 0, array.nbytes, (stream or self.stream).value
            )

    def free_memory(self) -> int:
        """Bytes that can still be allocated: what the budget leaves, or the driver if it has less."""
        free, _ = self.memory.free_and_total()
        return max(0, min(free, self.memory.limit_bytes - self.memory.used_bytes))

    def load(self, kernel: Compilable) -> LoadedKernel:
        """The kernel on this card, compiled if the cache has no code for its capability; loaded once."""
        with self._lock:
            loaded = self._kernels.get(kernel)
            if loaded is None:
                loaded = self._kernels[kernel] = LoadedKernel(self._context, kernel, self.card.capability)
            return loaded

    def launch(
        self,
        kernel: Compilable,
        grid: Extent,
        block: Extent,
        *arguments: Any,
        shared_bytes: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """Run a kernel once. For one that runs often, `load(kernel).prepare(...)` packs arguments once."""
        launch = self.load(kernel).prepare(grid, block, *arguments, shared_bytes=shared_bytes)
        launch.run(stream or self.stream)

    def new_stream(self) -> Stream:
        """One more order of work beside `stream`."""
        return Stream(self._context)

    def new_event(self) -> Event:
        """For waiting between streams, and for times."""
        return Event(self._context)

    def record(self, submit: Callable[[], None], *, stream: Stream | None = None) -> Graph:
        """What `submit` puts into the stream, as a graph: its 100 launches, say, cost 2 us to submit."""
        return record_graph(stream or self.stream, submit)

    def synchronise(self) -> None:
        """Wait for all work of this card, in every stream. Raises what went wrong in it."""
        self._context.call("cuCtxSynchronize")

    @property
    def is_usable(self) -> bool:
        """False once a kernel or the card has failed: then the rest of this process has to do without it."""
        return self._context.fault is None

    @property
    def open_handles(self) -> int:
        """What the driver has made for this device and has not got back: arrays, streams, events, kernels."""
        return len(self._context.handles)

    def close(self) -> None:
        self._context.close()

    def __enter__(self) -> CudaDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
