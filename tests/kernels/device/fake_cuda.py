"""A stand-in for `cuda.bindings.driver`: the same calls and answers, without a card.

Memory is real (host) memory, so copies can be checked byte for byte, and whoever leaves its bounds is told.
Work runs when it is submitted; a kernel does what the test's `effect` for its name does with its parameters.
Calls are counted by name, and fail on demand: `fail("cuMemAlloc", "OUT_OF_MEMORY", at=3)`.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

#: Numbers as in cuda.h.
CODES = {
    "SUCCESS": 0,
    "INVALID_VALUE": 1,
    "OUT_OF_MEMORY": 2,
    "NO_DEVICE": 100,
    "INVALID_DEVICE": 101,
    "INVALID_IMAGE": 200,
    "ECC_UNCORRECTABLE": 214,
    "NVLINK_UNCORRECTABLE": 220,
    "ILLEGAL_ADDRESS": 700,
    "LAUNCH_OUT_OF_RESOURCES": 701,
    "PEER_ACCESS_ALREADY_ENABLED": 704,
    "TOO_MANY_PEERS": 711,
    "LAUNCH_FAILED": 719,
    "STREAM_CAPTURE_INVALIDATED": 901,
    "UNKNOWN": 999,
}
Effect = Callable[..., None]


class Code(int):
    """An error code with its name, like CUresult."""

    name: str

    @classmethod
    def of(cls, name: str) -> Code:
        code = cls(CODES[name])
        code.name = f"CUDA_{'' if name == 'SUCCESS' else 'ERROR_'}{name}"
        return code


class Names:
    """An enumeration of the binding; its members are their own names."""

    def __getattr__(self, name: str) -> str:
        return name


def card(**changes: Any) -> dict[str, Any]:
    """What the driver says of an invented card; `changes` say what is different."""
    facts: dict[str, Any] = {
        "name": "Imaginary GPU",
        "pci_id": "0000:17:00.0",
        "uuid": "4f3c1d2e-0a1b-2c3d-4e5f-0123456789ab",
        "memory_bytes": 1 << 30,
        "COMPUTE_CAPABILITY_MAJOR": 9,
        "COMPUTE_CAPABILITY_MINOR": 0,
        "MULTIPROCESSOR_COUNT": 7,
        "CLOCK_RATE": 1_980_000,
        "L2_CACHE_SIZE": 50 << 20,
        "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    }
    assert changes.keys() <= facts.keys(), changes
    return facts | changes


class FakeDriver:
    """The calls that cuzk makes, over `cards`.

    calls     how often each was made
    held      what was made and not given back: handle -> the call that destroys it
    taken     bytes that other programs hold on each card
    """

    CUdevice_attribute = Names()
    CUfunction_attribute = Names()
    CUstreamCaptureMode = Names()

    def __init__(self, *cards: dict[str, Any], version: int = 13000, taken: int = 0) -> None:
        self.cards = cards or (card(),)
        self.version = version
        self.taken = taken
        self.calls: Counter[str] = Counter()
        self.held: dict[int, str] = {}
        self.effects: dict[str, Effect] = {}
        self.function_attributes: dict[str, int] = {}
        self._failures: dict[tuple[str, int], Code] = {}
        self._fault: Code | None = None
        self._memory: dict[int, Any] = {}
        self._pinned: dict[int, Any] = {}
        self._kernels: dict[int, str] = {}
        self._recordings: dict[int, list[Callable[[], None]]] = {}  # of streams
        self._graphs: dict[int, list[Callable[[], None]]] = {}
        self._numbers = itertools.count(1)

    def fail(self, call: str, code: str, *, at: int = 1) -> None:
        """Let the `at`-th call of that name from now on fail; a fault spoils all calls after it."""
        self._failures[call, self.calls[call] + at] = Code.of(code)

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if not name.startswith("cu") or not callable(found):
            return found

        def call(*args: Any) -> tuple[Any, ...]:
            self.calls[name] += 1
            if self._fault is not None and name != "cuDevicePrimaryCtxRelease":
                return (self._fault, None)
            code = self._failures.get((name, self.calls[name]))
            if code is None:
                answer = found(*args)
                if isinstance(answer, Code):
                    return (answer, None)
                return (Code.of("SUCCESS"), *(answer if isinstance(answer, tuple) else (answer,)))
            if code in (CODES["ILLEGAL_ADDRESS"], CODES["LAUNCH_FAILED"], CODES["ECC_UNCORRECTABLE"]):
                self._fault = code
            return (code, None)

        return call

    def _make(self, destroy: str) -> int:
        handle = next(self._numbers) << 8
        self.held[handle] = destroy
        return handle

    def _destroy(self, call: str, handle: int) -> tuple[()]:
        assert self.held.pop(handle, None) == call, f"{call} of something else"
        self._memory.pop(handle, None)
        self._pinned.pop(handle, None)
        return ()

    def _submit(self, h_stream: int, work: Callable[[], None]) -> tuple[()]:
        if h_stream in self._recordings:
            self._recordings[h_stream].append(work)
        else:
            work()
        return ()

    def _at(self, address: int, nbytes: int) -> int:
        """The address, if a block of device memory holds that many bytes there."""
        for start, block in list(self._memory.items()):
            if start <= address and address + nbytes <= start + len(block):
                return address
        raise AssertionError(f"{nbytes} bytes at {address:#x} are outside of device memory")

    # What follows is the binding's interface: the same names, arguments and values.

    def cuInit(self, flags):
        return ()

    def cuDriverGetVersion(self):
        return self.version

    def cuDeviceGetCount(self):
        return len(self.cards)

    def cuDeviceGet(self, ordinal):
        return ordinal if ordinal < len(self.cards) else Code.of("INVALID_DEVICE")

    def cuDeviceGetName(self, length, dev):
        return self.cards[dev]["name"].encode().ljust(length, b"\0")

    def cuDeviceGetUuid(self, dev):
        return SimpleNamespace(bytes=bytes.fromhex(self.cards[dev]["uuid"].replace("-", "")))

    def cuDeviceGetPCIBusId(self, length, dev):
        return self.cards[dev]["pci_id"].encode().ljust(length, b"\0")

    def cuDeviceTotalMem(self, dev):
        return self.cards[dev]["memory_bytes"]

    def cuDeviceGetAttribute(self, attrib, dev):
        return self.cards[dev][attrib.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuDevicePrimaryCtxRetain(self, dev):
        return self._make("cuDevicePrimaryCtxRelease")

    def cuDevicePrimaryCtxRelease(self, dev):
        del self.held[
            next(handle for handle, call in self.held.items() if call == "cuDevicePrimaryCtxRelease")
        ]
        return ()

    def cuCtxSetCurrent(self, ctx):
        return ()

    def cuCtxSynchronize(self):
        return ()

    @property
    def used_bytes(self) -> int:
        """Of device memory, by us."""
        return sum(len(block) for block in list(self._memory.values()))  # while other threads allocate

    def cuMemGetInfo(self):
        total = self.cards[0]["memory_bytes"]
        return total - self.taken - self.used_bytes, total

    def cuMemAlloc(self, bytesize):
        assert bytesize > 0
        if bytesize > self.cuMemGetInfo()[1]:
            return Code.of("OUT_OF_MEMORY")
        block = ctypes.create_string_buffer(bytesize)
        address = ctypes.addressof(block)
        self._memory[address] = block
        self.held[address] = "cuMemFree"
        return address

    def cuMemFree(self, dptr):
        return self._destroy("cuMemFree", dptr)

    def cuMemHostAlloc(self, bytesize, flags):
        block = ctypes.create_string_buffer(bytesize)
        address = ctypes.addressof(block)
        self.held[address] = "cuMemFreeHost"
        self._pinned[address] = block
        return address

    def cuMemFreeHost(self, p):
        return self._destroy("cuMemFreeHost", p)

    def cuMemcpyHtoDAsync(self, dst_device, src_host, byte_count, h_stream):
        return self._submit(
            h_stream, lambda: ctypes.memmove(self._at(dst_device, byte_count), src_host, byte_count)
        )

    def cuMemcpyDtoHAsync(self, dst_host, src_device, byte_count, h_stream):
        return self._submit(
            h_stream, lambda: ctypes.memmove(dst_host, self._at(src_device, byte_count), byte_count)
        )

    def cuMemcpyDtoDAsync(self, dst_device, src_device, byte_count, h_stream):
        source = self._at(src_device, byte_count)
        return self._submit(
            h_stream, lambda: ctypes.memmove(self._at(dst_device, byte_count), source, byte_count)
        )

    def cuDeviceCanAccessPeer(self, dev, peer_dev):
        return int(dev != peer_dev)

    def cuCtxEnablePeerAccess(self, peer_context, flags):
        assert peer_context in self.held and flags == 0
        return ()

    def cuMemcpyPeerAsync(self, dst_device, dst_context, src_device, src_context, byte_count, h_stream):
        assert {dst_context, src_context} <= self.held.keys()
        return self.cuMemcpyDtoDAsync(dst_device, src_device, byte_count, h_stream)

    def cuMemsetD8Async(self, dst_device, uc, n, h_stream):
        return self._submit(h_stream, lambda: ctypes.memset(self._at(dst_device, n), uc, n))

    def cuStreamCreate(self, flags):
        return self._make("cuStreamDestroy")

    def cuStreamDestroy(self, h_stream):
        return self._destroy("cuStreamDestroy", h_stream)

    def cuStreamSynchronize(self, h_stream):
        return ()

    def cuStreamWaitEvent(self, h_stream, h_event, flags):
        return ()

    def cuStreamBeginCapture(self, h_stream, mode):
        assert mode == "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL"
        self._recordings[h_stream] = []
        return ()

    def cuStreamEndCapture(self, h_stream):
        handle = self._make("cuGraphDestroy")
        self._graphs[handle] = self._recordings.pop(h_stream)
        return handle

    def cuGraphInstantiate(self, h_graph, flags):
        handle = self._make("cuGraphExecDestroy")
        self._graphs[handle] = self._graphs[h_graph]
        return handle

    def cuGraphDestroy(self, h_graph):
        return self._destroy("cuGraphDestroy", h_graph)

    def cuGraphExecDestroy(self, h_graph_exec):
        return self._destroy("cuGraphExecDestroy", h_graph_exec)

    def cuGraphLaunch(self, h_graph_exec, h_stream):
        for work in self._graphs[h_graph_exec]:
            work()
        return ()

    def cuEventCreate(self, flags):
        return self._make("cuEventDestroy")

    def cuEventDestroy(self, h_event):
        return self._destroy("cuEventDestroy", h_event)

    def cuEventRecord(self, h_event, h_stream):
        return ()

    def cuEventSynchronize(self, h_event):
        return ()

    def cuEventElapsedTime(self, h_start, h_end):
        return 0.25

    def cuModuleLoadData(self, image):
        assert isinstance(image, bytes)
        return self._make("cuModuleUnload")

    def cuModuleUnload(self, hmod):
        return self._destroy("cuModuleUnload", hmod)

    def cuModuleGetFunction(self, hmod, name):
        function = next(self._numbers) << 8
        self._kernels[function] = name.decode()
        return function

    def cuFuncGetAttribute(self, attrib, hfunc):
        return {"NUM_REGS": 40, "MAX_THREADS_PER_BLOCK": 1024}.get(
            attrib.removeprefix("CU_FUNC_ATTRIBUTE_"), 0
        )

    def cuFuncSetAttribute(self, hfunc, attrib, value):
        self.function_attributes[attrib] = value
        return ()

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, func, block_size, dynamic_s_mem_size):
        return 2048 // block_size

    def cuLaunchKernel(self, f, gx, gy, gz, bx, by, bz, shared_mem_bytes, h_stream, kernel_params, extra):
        assert min(gx, gy, gz, bx, by, bz) > 0 and extra == 0
        effect = self.effects[self._kernels[f]]
        return self._submit(
            h_stream, lambda: effect((gx, gy, gz), (bx, by, bz), shared_mem_bytes, kernel_params)
        )
