"""Launches whose arguments are packed once: some 4 us each, where a plain Numba launch takes 14 to 29.

A kernel's parameters are raw pointers and integers only. A Numba array would be seven parameters (owner,
parent, length, item size, data, extent, stride) to pack at each launch, and each access would pay for
negative indices: `i + (i < 0 ? n : 0)`. A pointer is one parameter, `p[i]` one address; a shape that a kernel
needs is an integer beside it.
"""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np
from numba.core import types
from numba.np import numpy_support

from cuzk.kernels.device.cuda_driver import Context, Handle
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.device.cuda_stream import Stream

Extent = int | tuple[int, ...]

_WORD = (1 << 64) - 1
#: Shared memory, static and dynamic, that a block gets unasked on every card (CUDA programming guide).
_SHARED_UNASKED_BYTES = 48 << 10


class Compilable(Protocol):
    """A kernel before it is on a card: `gpu.jit.CudaKernel`."""

    name: str
    argument_types: tuple[types.Type, ...]

    def cubin(self, capability: tuple[int, int]) -> bytes: ...


class LoadedKernel(Handle):
    """A kernel on a card; `value` is its module.

    registers, local_bytes   of a thread; local memory is where spills and arrays without registers lie
    shared_bytes             static shared memory of a block
    max_threads              that a block may have
    """

    def __init__(self, context: Context, kernel: Compilable, capability: tuple[int, int]) -> None:
        self.name = kernel.name
        self.parameters = tuple(_Parameter(kind) for kind in kernel.argument_types)
        self._about = about = f"kernel {kernel.name}"
        module = context.call("cuModuleLoadData", kernel.cubin(capability), about=about)
        super().__init__(context, module, "cuModuleUnload")
        self.function = context.call("cuModuleGetFunction", module, kernel.name.encode(), about=about)
        self.registers = self._attribute("NUM_REGS")
        self.local_bytes = self._attribute("LOCAL_SIZE_BYTES")
        self.shared_bytes = self._attribute("SHARED_SIZE_BYTES")
        self.max_threads = self._attribute("MAX_THREADS_PER_BLOCK")
        self._granted_bytes = _SHARED_UNASKED_BYTES - self.shared_bytes

    def _attribute(self, name: str) -> int:
        which = getattr(self.context.api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self.context.call("cuFuncGetAttribute", which, self.function))

    def prepare(self, grid: Extent, block: Extent, *arguments: Any, shared_bytes: int = 0) -> Launch:
        """A launch of `grid` blocks of `block` threads, with that much dynamic shared memory a block.

        arguments  DeviceArrays for pointers, with the pointer's own dtype, and integers within their type
        """
        self._ask_for_shared(shared_bytes)
        return Launch(self, _three(grid), _three(block), shared_bytes, arguments)

    def blocks_at_once(self, threads: int, shared_bytes: int = 0) -> int:
        """Blocks of so many threads that one multiprocessor holds at the same time."""
        self._ask_for_shared(shared_bytes)
        call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return int(self.context.call(call, self.function, threads, shared_bytes))

    def _ask_for_shared(self, shared_bytes: int) -> None:
        """More dynamic shared memory than is usual must be asked for; what was granted stays granted."""
        if shared_bytes > self._granted_bytes:
            which = self.context.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.context.call("cuFuncSetAttribute", self.function, which, shared_bytes, about=self._about)
            self._granted_bytes = shared_bytes


class Launch:
    """One kernel with its geometry and packed arguments, ready to run any number of times.

    One thread at a time may use it: `rebind` writes where `run` reads. The arrays it was given must live.
    """

    def __init__(
        self,
        kernel: LoadedKernel,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared_bytes: int,
        arguments: Any,
    ) -> None:
        self._kernel = kernel
        self._geometry = (*grid, *block, shared_bytes)
        self._is_empty = 0 in grid
        count = len(kernel.parameters)
        # A word for each argument: the driver finds shorter ones in its low bytes, hosts being little-endian.
        self._words = (ctypes.c_uint64 * count)()
        size = ctypes.sizeof(ctypes.c_uint64)
        first = ctypes.addressof(self._words)
        self._addresses = (ctypes.c_void_p * count)(*(first + size * i for i in range(count)))
        self._parameters = ctypes.addressof(self._addresses)
        self._about = f"kernel {kernel.name}"
        self.rebind(*arguments)

    def rebind(self, *arguments: Any) -> None:
        """Other arguments for the runs to come."""
        expected = self._kernel.parameters
        assert len(arguments) == len(expected), (self._kernel.name, len(arguments), len(expected))
        for i, (argument, parameter) in enumerate(zip(arguments, expected, strict=True)):
            self._words[i] = parameter.word(argument)

    def run(self, stream: Stream) -> None:
        """Submit it. An empty grid is no work."""
        if not self._is_empty:
            self._kernel.context.call(
                "cuLaunchKernel",
                self._kernel.function,
                *self._geometry,
                stream.value,
                self._parameters,
                0,
                about=self._about,
            )


class _Parameter:
    """What a parameter of a kernel takes: an array of one dtype, or integers of a range."""

    def __init__(self, kind: types.Type) -> None:
        self._kind = kind
        self._is_pointer = isinstance(kind, types.CPointer)
        if self._is_pointer:
            self._dtype = numpy_support.as_dtype(kind.dtype)
        else:
            assert isinstance(kind, types.Integer), f"{kind}: kernels take pointers and integers only"
            self._least, self._greatest = kind.minval, kind.maxval

    def word(self, argument: Any) -> int:
        """The 64 bits from which the driver reads an argument."""
        if self._is_pointer:
            assert isinstance(argument, DeviceArray), f"{self._kind} takes a DeviceArray: {type(argument)}"
            assert argument.dtype == self._dtype, f"{self._kind}, array of {argument.dtype}"
            return argument.address
        assert isinstance(argument, int | np.integer), f"{self._kind} takes an integer: {type(argument)}"
        assert self._least <= argument <= self._greatest, f"{argument} is no {self._kind}"
        return int(argument) & _WORD


def _three(extent: Extent) -> tuple[int, ...]:
    extents = (extent,) if isinstance(extent, int) else extent
    return (*extents, 1, 1)[:3]
